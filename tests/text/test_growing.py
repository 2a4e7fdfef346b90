"""Text given out as it becomes certain."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from manyheads.text.growing import GrowingText
from manyheads.text.tokenizer import Tokenizer, TokenizerSettings

LINES = ["the cat sat on the mat.\n\nTHE DOG:\nNo, no.\n", "the dog ran to the cat, and\nthe mat was red.\n\n"] * 60
TOKENIZERS = [Tokenizer.learn(LINES, TokenizerSettings(kind=kind, vocabulary=400)) for kind in ("bpe", "character")]
each = pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=["bpe", "character"])

WORDS = ["the", " cat", "\n", "\n\n", ".", "é", "你好", "😀", " ", "▁", "THE DOG:", "ab", "abc", "\ufffd"]
STOPS = ["\n\n", "abc", "b", "你", "😀", "cat\n"]
texts = st.lists(st.sampled_from(WORDS), max_size=12).map("".join)


@each
@settings(max_examples=200, deadline=None)
@given(
    before=texts, after=texts, stops=st.lists(st.sampled_from(["\n\n", "abc", "b", "你", "😀", "cat\n"]), max_size=3)
)
@example(before="a", after="x\n\ny", stops=["\n\n"])
@example(before="", after=" two", stops=[])
@example(before="é", after="😀é", stops=["😀"])
def test_what_is_given_out_is_the_text_before_the_first_stop(
    tokenizer: Tokenizer, before: str, after: str, stops: list[str]
) -> None:
    read = tokenizer.encode(before)
    ids = tokenizer.encode_inner(after) if read else tokenizer.encode(after)
    growing = GrowingText(tokenizer, read, stops)
    parts, n_read = [], 0
    for piece_id in ids:
        parts.append(growing.add(piece_id))
        n_read += 1
        if growing.is_over:
            break
        assert after.startswith("".join(parts)), "nothing is taken back"
    parts.append(growing.finish())
    seen = tokenizer.decode_after(read, ids[:n_read])
    ends = [seen.find(stop) for stop in stops if stop in seen]
    assert growing.is_over == bool(ends)
    assert "".join(parts) == (seen[: min(ends)] if ends else after)


@each
def test_half_a_character_is_held_back_and_half_a_stop_too(tokenizer: Tokenizer) -> None:
    growing = GrowingText(tokenizer, tokenizer.encode("a"), ["😀!"])
    ids = tokenizer.encode_inner("😀")
    assert len(ids) == 4
    assert [growing.add(piece_id) for piece_id in ids] == [""] * 4
    assert not growing.is_over
    assert growing.finish() == "😀"
    assert [growing.add(piece_id) for piece_id in ids[:3]] == [""] * 3
    assert growing.finish() == "", "half a character is none"


@each
def test_bytes_that_are_no_character_come_out_as_the_tokenizer_writes_them(tokenizer: Tokenizer) -> None:
    bad = tokenizer.encode_inner("😀")[:2] + tokenizer.encode_inner("cat") + tokenizer.encode_inner("é")[1:]
    growing = GrowingText(tokenizer, tokenizer.encode("a"))
    text = "".join(growing.add(piece_id) for piece_id in bad) + growing.finish()
    assert text == tokenizer.decode_after(tokenizer.encode("a"), bad) == "\ufffd\ufffdcat\ufffd"
