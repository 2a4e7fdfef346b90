import re
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.errors import DataError
from manyheads.text.reading.tag_schemes import (
    AnyScheme,
    Scheme,
    Span,
    detect_scheme,
    is_tag,
    spans_to_tags,
    tags_to_spans,
)

from text.makers import refuses

SCHEMES: tuple[Scheme, ...] = get_args(Scheme)


@st.composite
def spans_with_length(draw: st.DrawFn) -> tuple[list[Span], int]:
    """Draw adjacent and separate spans, with few labels so that neighbors often share one."""
    spans, position = [], 0
    for gap, length, label in draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from(["", "PER", "LOC", "a-b"])))
    ):
        spans.append(Span(position + gap, position + gap + length, label))
        position += gap + length
    return spans, position + draw(st.integers(0, 2))


class TestRoundTrip:
    @settings(deadline=None)
    @given(spans_with_length(), st.sampled_from(SCHEMES))
    def test_every_scheme_round_trips(self, drawn: tuple[list[Span], int], scheme: Scheme) -> None:
        spans, length = drawn
        tags = spans_to_tags(reversed(spans), length, scheme)
        assert len(tags) == length
        assert tags_to_spans(tags, scheme) == spans

    @settings(deadline=None)
    @given(st.lists(spans_with_length()), st.sampled_from(SCHEMES))
    def test_detected_scheme_gives_the_same_spans(self, drawn: list[tuple[list[Span], int]], scheme: Scheme) -> None:
        sequences = [spans_to_tags(spans, length, scheme) for spans, length in drawn]
        found = detect_scheme(sequences)
        assert [tags_to_spans(tags, found) for tags in sequences] == [spans for spans, _ in drawn]

    @settings(deadline=None)
    @given(st.lists(st.sampled_from(["O", "B-x", "I-x", "M-x", "E-x", "S-x", "B-y", "I-y", "E-y", "B", "I"])))
    def test_valid_tags_round_trip_and_are_read_the_same_leniently(self, tags: list[str]) -> None:
        for scheme in SCHEMES:
            errors: list[DataError] = []
            lenient = tags_to_spans(tags, scheme, on_bad=errors.append)
            assert tags_to_spans(spans_to_tags(lenient, len(tags), scheme), scheme) == lenient
            if errors:
                with pytest.raises(DataError, match=re.escape(str(errors[0]))):
                    tags_to_spans(tags, scheme)
            else:
                assert tags_to_spans(tags, scheme) == lenient
                assert spans_to_tags(lenient, len(tags), scheme) == tags


class TestTags:
    @pytest.mark.parametrize(
        ("scheme", "tags"),
        [
            ("IOB1", "I-P I-P B-P I-L O I-P"),
            ("IOB2", "B-P I-P B-P B-L O B-P"),
            ("BIOES", "B-P E-P S-P S-L O S-P"),
            ("BMES", "B-P E-P S-P S-L O S-P"),
            ("BIOES", "B-P L-P U-P U-L O U-P"),
        ],
    )
    def test_all_schemes_give_the_same_spans(self, scheme: Scheme, tags: str) -> None:
        spans = [Span(0, 2, "P"), Span(2, 3, "P"), Span(3, 4, "L"), Span(5, 6, "P")]
        assert tags_to_spans(tags.split(), scheme) == spans
        if "U" not in tags:
            assert spans_to_tags(spans, 6, scheme) == tags.split()

    def test_bare_letters(self) -> None:
        assert tags_to_spans(list("BMESBE"), "BMES") == [Span(0, 3, ""), Span(3, 4, ""), Span(4, 6, "")]

    @pytest.mark.parametrize("spans", [[Span(0, 2, "a"), Span(1, 3, "b")], [Span(1, 1, "a")], [Span(2, 4, "a")]])
    def test_invalid_spans(self, spans: list[Span]) -> None:
        with pytest.raises(
            DataError,
            match=r"Span\(.*\) is not valid after .*: spans must not overlap, and each must cover at least one of",
        ):
            spans_to_tags(spans, 3, "IOB2")

    def test_is_tag(self) -> None:
        assert all(map(is_tag, ["O", "B-a", "U-a-b", "M", "I-a_b.c"]))
        assert not any(map(is_tag, ["", "NN", "o", "X-a", "Bob", "-", "0"]))


class TestDetect:
    @pytest.mark.parametrize(
        ("sequences", "scheme"),
        [
            ([], "IOB2"),
            (["O O"], "IOB2"),
            (["I-P I-P O", "O B-P"], "IOB2"),  # a tie
            (["I-P I-P O I-L"], "IOB1"),
            (["I-P I-L"], "IOB1"),
            (["I-P B-P"], "IOB1"),
            (["B-P I-P", "B-P B-P", "O I-P"], "IOB2"),  # one annotation error
            (["B-P I-P", "B-P I-P O B-P E-P", "O B-P"], "IOB2"),
            (["S-P O"], "BIOES"),
            (["B-P I-P E-P"], "BIOES"),
            (["B-P I-P L-P U-P"], "BIOES"),
            (["B-P M-P E-P S-P"], "BMES"),
            (["B M E S"], "BMES"),
            (["NN I-P"], "IOB1"),
        ],
    )
    def test_scheme_is_detected(self, sequences: list[str], scheme: Scheme) -> None:
        assert detect_scheme(iter([tags.split() for tags in sequences])) == scheme


class TestFaults:
    @pytest.mark.parametrize(
        ("scheme", "tags", "fault", "spans"),
        [
            ("IOB2", "O I-P I-P", "tag 2 of 3, I-P after O, is not valid in IOB2.", [Span(1, 3, "P")]),
            (
                "IOB2",
                "B-P I-L",
                "tag 2 of 2, I-L after B-P, is not valid in IOB2.",
                [Span(0, 1, "P"), Span(1, 2, "L")],
            ),
            ("IOB1", "B-P O", "tag 1 of 2, B-P at the start, is not valid in IOB1.", [Span(0, 1, "P")]),
            ("BIOES", "B-P O", "tag 2 of 2, O after B-P, is not valid in BIOES.", [Span(0, 1, "P")]),
            ("BIOES", "O E-P", "tag 2 of 2, E-P after O, is not valid in BIOES.", [Span(1, 2, "P")]),
            ("BIOES", "S-P E-P", "tag 2 of 2, E-P after S-P, is not valid", [Span(0, 1, "P"), Span(1, 2, "P")]),
        ],
    )
    def test_tag_in_invalid_position(self, scheme: Scheme, tags: str, fault: str, spans: list[Span]) -> None:
        errors: list[DataError] = []
        assert tags_to_spans(tags.split(), scheme, on_bad=errors.append) == spans
        assert str(errors[0]).startswith(f"tags: {fault}")
        with refuses(f"a.txt, line 3: {fault}*"):
            tags_to_spans(tags.split(), scheme, where="a.txt, line 3")

    def test_unfinished_span(self) -> None:
        with refuses("tags: tag 2 of 2, M-P, starts a span that does not end. Correct the tag."):
            tags_to_spans(["B-P", "M-P"], "BMES")

    def test_letter_of_another_scheme(self) -> None:
        with refuses(
            "tags: tag 2 of 2, M-P after B-P, is not valid: BIOES has no such letter. Correct the tag, or set the "
            "scheme."
        ):
            tags_to_spans(["B-P", "M-P"], "BIOES")

    def test_string_that_is_not_a_tag_always_raises(self) -> None:
        errors: list[DataError] = []
        with refuses(
            'tags: tag 2 of 2 is "NNP"; a tag must be O or one of B-…, I-…. Choose the column that holds the tags.'
        ):
            tags_to_spans(["O", "NNP"], "IOB2", on_bad=errors.append)
        assert not errors


@pytest.mark.parametrize(
    ("sequences", "scheme", "spans"),
    [
        ([["DT", "NN", "NN"], ["VB"]], "words", [Span(0, 1, "DT"), Span(1, 2, "NN"), Span(2, 3, "NN")]),
        ([["O", "PER", "PER"], ["LOC", "O"]], "IO", [Span(1, 3, "PER")]),
        ([["PER", "LOC", "O"]], "IO", [Span(0, 1, "PER"), Span(1, 2, "LOC")]),
        ([["B-X", "I-X", "?"]], "IOB2", None),
    ],
)
def test_labels_without_letters(sequences: list[list[str]], scheme: AnyScheme, spans: list[Span] | None) -> None:
    assert detect_scheme(sequences) == scheme
    if spans is not None:
        assert tags_to_spans(sequences[0], scheme) == spans


@pytest.mark.parametrize("tags", [["x" * 5000], ["I-" + "x" * 5000], ["O", "B-" + "x" * 5000], ["Q-" + "x" * 5000]])
def test_message_shows_the_start_of_a_long_tag(tags: list[str]) -> None:
    with pytest.raises(DataError) as caught:
        tags_to_spans(tags, "BIOES")
    assert "xxx…" in str(caught.value)
    assert len(str(caught.value)) < 500
