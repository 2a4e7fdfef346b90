"""The repetition guard: loops are found, normal text is not, and no n-gram is generated twice if that is forbidden."""

import time
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads import corpora
from manyheads.decode import DecodeSettings, generate, is_looping, search, stream
from manyheads.decode.hypotheses import forbid_repeats, loop_length

from decode.small import BOS, EOS, FORBIDDEN, SPECIAL, FixedStepper, random_model, random_sources

METHODS: dict[str, dict[str, Any]] = {
    "greedy": {"method": "greedy"},
    "beam": {"method": "beam", "beam": 3, "n_best": 3},
    "sample": {"method": "sample", "n_best": 2},
}


def slow_loop_length(ids: list[int]) -> int:
    """The longest stretch that consists of a block, at least four times, and a part of it."""
    lengths = [0]
    for start in range(len(ids)):
        for end in range(start + 4, len(ids) + 1):
            part = ids[start:end]
            periods = range(1, len(part) // 4 + 1)
            if any(all(part[i] == part[i - period] for i in range(period, len(part))) for period in periods):
                lengths.append(len(part))
    return max(lengths)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 2), max_size=16))
def test_loop_length_equals_its_definition(ids: list[int]) -> None:
    assert loop_length(ids) == slow_loop_length(ids)


@pytest.mark.parametrize(
    ("output", "source", "expected"),
    [
        ("我爱我爱我爱我爱我猫", "I love cats", True),
        ("abcabcabcabc", "xyz", True),
        ("abcabcabcab", "xyz", False),  # three times and a part
        ("aaaaaaa", "x", False),  # few
        ("aaaaaaaa", "x", True),
        ("the end aaaaaaaaaa.", "x", True),
        ("哈哈哈哈哈哈哈哈", "haha", False),  # the source repeats itself
        ("........", "x....", False),
        (".........", "x....", True),
        ("", "", False),
    ],
)
def test_loops_that_the_source_does_not_have(output: str, source: str, expected: bool) -> None:
    source_ids = [1, 2] * 4 if source == "haha" else [ord(character) for character in source]
    assert is_looping([ord(character) for character in output], source_ids) is expected


@pytest.mark.parametrize("language", ["en", "zh", "de"])
def test_no_normal_sentence_is_a_loop(language: str) -> None:
    other = "en" if language != "en" else "zh"
    for source, target in corpora.pairs(other, language, "train", 300):
        assert not is_looping([ord(character) for character in target], [ord(character) for character in source])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), min_size=7, max_size=7), min_size=1, max_size=3), st.integers(1, 8))
def test_forbidden_ids_are_those_that_complete_an_ngram_again(rows: list[list[int]], n: int) -> None:
    log_probabilities = torch.zeros(len(rows), 5)
    forbid_repeats(log_probabilities, torch.tensor(rows), n)
    for row, forbidden in zip(rows, log_probabilities.isneginf().tolist(), strict=True):
        ngrams = {tuple(row[start : start + n]) for start in range(len(row) - n + 1)}
        latest = row[len(row) - n + 1 :]
        assert forbidden == [n <= len(row) + 1 and (*latest, token_id) in ngrams for token_id in range(5)]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_no_ngram_is_generated_twice(method: str, n: int) -> None:
    def repeated(no_repeat_ngram: int | None) -> list[bool]:
        how = DecodeSettings(**METHODS[method], no_repeat_ngram=no_repeat_ngram)
        found = search(FixedStepper([0, 0, 0, -9, -1, -1.1, -1.5, -2]), [20, 15], settings=how, **SPECIAL)
        ngrams = [[h.ids[i : i + n] for i in range(len(h.ids) - n + 1)] for row in found for h in row]
        return [len(set(map(tuple, own))) < len(own) for own in ngrams]

    assert any(repeated(None))
    assert not any(repeated(n))


@pytest.mark.parametrize("method", ["greedy", "sample"])
def test_a_stream_is_what_search_generates(method: str) -> None:
    model = random_model(4, shape="decoder")
    how = DecodeSettings(method=method, max_new_tokens=12, no_repeat_ngram=1)
    (found,) = generate(model, prompt=torch.tensor([[4, 5]]), settings=how, **SPECIAL)
    streamed = [one.id for one in stream(model, [4, 5], bos=BOS, eos=EOS, forbidden=FORBIDDEN, settings=how)]
    assert streamed == [*found[0].ids, *([EOS] if found[0].finished else [])]
    free = stream(model, [4, 5], bos=BOS, eos=EOS, forbidden=FORBIDDEN, settings=DecodeSettings(method=method))
    assert [one.id for one in free][:12] != streamed


def test_a_setting_that_forbids_nothing_changes_nothing() -> None:
    model, (source, is_real) = random_model(5), random_sources(5, [3, 6, 1])
    free, bound = (
        generate(model, source, is_real, settings=DecodeSettings(max_new_tokens=8, no_repeat_ngram=n), **SPECIAL)
        for n in (None, 100)
    )
    assert free == bound


def test_a_very_long_prompt_takes_little_time() -> None:
    started = time.process_time()
    assert is_looping([1] * 20, [number**2 % 9973 for number in range(300_000)])
    assert time.process_time() - started < 5
