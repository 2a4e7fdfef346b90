"""Output collapse: outputs that are the same, copied, repetitive or empty."""

import pytest

from manyheads.tasks.task_doctor import check_outputs, is_repetitive


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ja ja ja ja", True),
        ("ja ja ja", False),
        ("well the cat the cat the cat the cat", True),
        ("the cat the cat the cat", False),
        ("今天今天今天今天", True),
        ("今天今天今天", False),
        ("哈哈哈哈", True),
        ("", False),
        ("a b c d a b c d", False),
    ],
)
def test_a_phrase_four_times_in_a_row_is_repetitive(text: str, expected: bool) -> None:
    assert is_repetitive(text) is expected


@pytest.mark.parametrize(
    ("outputs", "verdict", "counts"),
    [
        ([f"eins {n}" for n in range(20)], "good", (0, 0, 0, 0)),
        ([*["gleich"] * 3, *(f"eins {n}" for n in range(17))], "good", (3, 0, 0, 0)),  # 15 %
        ([*["gleich"] * 4, *(f"eins {n}" for n in range(16))], "warning", (4, 0, 0, 0)),
        ([*["gleich"] * 9, *(f"eins {n}" for n in range(11))], "bad", (9, 0, 0, 0)),
        ([*[""] * 9, *(f"eins {n}" for n in range(11))], "bad", (0, 0, 0, 9)),
        ([*(f"source {n}" for n in range(9)), *(f"eins {n}" for n in range(11))], "bad", (0, 9, 0, 0)),
        ([*(f"{n} {n} {n} {n}" for n in range(9)), *(f"eins {n}" for n in range(11))], "bad", (0, 0, 9, 0)),
    ],
)
def test_the_most_frequent_fault_decides(outputs: list[str], verdict: str, counts: tuple[int, ...]) -> None:
    finding = check_outputs("outputs", [f"source {n}" for n in range(20)], outputs)
    assert finding.verdict == verdict
    same, copied, repetitive, empty = counts
    assert finding.message == (
        f"of 20 different sentences, {same} have the same translation, {copied} are copied, {repetitive} are"
        f" repetitive, {empty} are empty."
    )
    assert bool(finding.examples) == (verdict != "good")
