"""Cleaning: each reason, their order, and the hash set against a Python set."""

import random
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from manyheads.data.cleaning import Cleaner, CleanSettings, clean, tolerate_bad_lines
from manyheads.errors import DataError, RecipeError
from manyheads.text.reading.readers import Pair

ANY = CleanSettings(max_ratio=0.0, drop_bad_encoding=False, drop_leaked=False, drop_duplicates=False)


def cleaned(
    pairs: list[Pair], settings: CleanSettings | None = None, held_out: list[Pair] | None = None
) -> tuple[list[Pair], dict[str, int]]:
    counts: Counter[str] = Counter()
    kept = list(clean(pairs, settings or CleanSettings(), counts, held_out or []))
    return kept, dict(counts)


def test_reasons_are_counted_and_other_rows_kept_in_order() -> None:
    good = [("a cat sleeps", "eine Katze schläft"), ("two", "zwei")]
    pairs = [
        good[0],
        ("", "leer"),
        ("blank", " \t\u3000"),
        ("caf\ufffd", "Kaffee"),
        ("zero\0", "null"),
        ("one", "x" * 60),
        good[0],
        ("A  Dog ", "ein anderer Hund"),
        ("another dog", "Ein Hund"),
        good[1],
    ]
    kept, counts = cleaned(pairs, held_out=[("a dog", "ein  hund")])
    assert kept == good
    assert counts == {
        "kept": 2,
        "empty": 2,
        "bad encoding": 2,
        "length ratio": 1,
        "in valid or test": 2,
        "duplicate": 1,
    }


def test_first_reason_counts() -> None:
    long = "x" * 200
    held_out = [("y", "y"), ("a", long)]
    assert cleaned([(" ", "\ufffd")])[1] == {"kept": 0, "empty": 1}
    assert cleaned([("\ufffd", long)])[1] == {"kept": 0, "bad encoding": 1}
    assert cleaned([("a", long)], held_out=held_out)[1] == {"kept": 0, "length ratio": 1}
    assert cleaned([("y", "z"), ("y", "z")], held_out=held_out)[1] == {"kept": 0, "in valid or test": 2}


def test_settings_disable_all_reasons_but_empty() -> None:
    pairs = [("a\0", "x" * 500), ("a\0", "x" * 500), ("b", ""), ("c", "d")]
    kept, counts = cleaned(pairs, ANY, held_out=[("c", "d")])
    assert kept == [pairs[0], pairs[1], pairs[3]]
    assert counts == {"kept": 3, "empty": 1}


@pytest.mark.parametrize(("n_bytes", "is_kept"), [(70, True), (71, False)])
def test_ratio_is_of_bytes_plus_twenty(n_bytes: int, is_kept: bool) -> None:
    pair = ("一二三a", "x" * n_bytes)  # 10 bytes: 30 × 3 is 90
    for both in (pair, pair[::-1]):
        assert (cleaned([both])[0] == [both]) is is_kept


def test_same_text_with_other_field_boundary_is_not_a_duplicate() -> None:
    pairs = [("a", "bc"), ("ab", "c"), ("1 a", "b"), ("1", " ab")]
    assert cleaned(pairs)[0] == pairs


def test_cleaner_remembers_earlier_corpora() -> None:
    cleaner = Cleaner(CleanSettings())
    first, second = Counter[str](), Counter[str]()
    assert list(cleaner.clean([("a", "b")], first)) == [("a", "b")]
    assert list(cleaner.clean([("a", "b"), ("c", "d")], second)) == [("c", "d")]
    assert (first["kept"], second["duplicate"]) == (1, 1)


@pytest.mark.parametrize("ratio", [-1.0, 0.5, float("nan")])
def test_invalid_ratio_raises(ratio: float) -> None:
    with pytest.raises(RecipeError, match=r"clean\.max_ratio = .* must be at least 1, or 0 for any ratio"):
        CleanSettings(max_ratio=ratio)


@pytest.mark.parametrize("ratio", [0.0, 1.0, 9.0])
def test_valid_ratios(ratio: float) -> None:
    assert CleanSettings(max_ratio=ratio).max_ratio == ratio


def test_several_chunks_match_a_python_set() -> None:
    rng = random.Random(4)
    pairs = [(f"s{rng.randrange(300)}", f"t{rng.randrange(300)}") for _ in range(60_000)]
    held_out = [(f"S{n}", f"t{n + 100}") for n in range(20)]
    sources, targets = ({pair[side].lower() for pair in held_out} for side in (0, 1))
    usable = [(source, target) for source, target in pairs if source not in sources and target not in targets]
    kept, counts = cleaned(pairs, held_out=held_out)
    assert kept == list(dict.fromkeys(usable))
    assert counts["in valid or test"] == len(pairs) - len(usable)
    assert counts["duplicate"] == len(usable) - len(kept)


def read_with(n_bad: int, n_pairs: int) -> Callable[[Callable[[DataError], None]], Iterator[Pair]]:
    def read(on_bad: Callable[[DataError], None]) -> Iterator[Pair]:
        for number in range(n_pairs):
            if number < n_bad:
                on_bad(DataError(f"line {number + 1} is not UTF-8"))
            yield ("a\ufffd" if number < n_bad else "a", "b")

    return read


@pytest.mark.parametrize(("n_bad", "n_pairs"), [(10, 20), (11, 1100), (0, 3)])
def test_few_bad_lines_are_tolerated(n_bad: int, n_pairs: int) -> None:
    counts = Counter[str]()
    list(clean(tolerate_bad_lines(read_with(n_bad, n_pairs)), CleanSettings(drop_duplicates=False), counts))
    assert (counts["bad encoding"], counts["kept"]) == (n_bad, n_pairs - n_bad)


def test_many_bad_lines_raise() -> None:
    with pytest.raises(DataError, match="line 1 is not UTF-8"):
        list(tolerate_bad_lines(read_with(11, 1099)))


def test_encoding_error_takes_precedence_over_column_error() -> None:
    def read(on_bad: Callable[[DataError], None]) -> Iterator[Pair]:
        on_bad(DataError("line 1 is not UTF-8"))
        yield "\ufffd", "\ufffd"
        raise DataError("line 2: the number of columns is 1")

    with pytest.raises(DataError, match="line 1 is not UTF-8"):
        list(tolerate_bad_lines(read))


def test_an_error_without_invalid_lines_is_raised() -> None:
    def read(on_bad: Callable[[DataError], None]) -> Iterator[Pair]:
        yield "a", "b"
        raise DataError("line 2: the number of columns is 1")

    with pytest.raises(DataError, match="the number of columns is 1"):
        list(tolerate_bad_lines(read))
