"""Streaming text, up to a stop string."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from manyheads.text.tokens.text_streamer import TextStreamer
from manyheads.text.tokens.tokenizer import Tokenizer, TokenizerSettings

LINES = ["the cat sat on the mat.\n\nTHE DOG:\nNo, no.\n", "the dog ran to the cat, and\nthe mat was red.\n\n"] * 60
TOKENIZERS = [Tokenizer.train(LINES, TokenizerSettings(kind=kind, vocab_size=400)) for kind in ("bpe", "character")]
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
def test_streamed_text_ends_before_the_first_stop(
    tokenizer: Tokenizer, before: str, after: str, stops: list[str]
) -> None:
    read = tokenizer.encode(before)
    ids = tokenizer.encode_continuation(after) if read else tokenizer.encode(after)
    streamer = TextStreamer(tokenizer, read, stops)
    parts, n_read = [], 0
    for token_id in ids:
        parts.append(streamer.add(token_id))
        n_read += 1
        if streamer.is_stopped:
            break
        assert after.startswith("".join(parts)), "nothing is taken back"
    parts.append(streamer.finish())
    seen = tokenizer.decode_continuation(read, ids[:n_read])
    ends = [seen.find(stop) for stop in stops if stop in seen]
    assert streamer.is_stopped == bool(ends)
    assert "".join(parts) == (seen[: min(ends)] if ends else after)


@each
def test_incomplete_characters_and_stops_are_held_back(tokenizer: Tokenizer) -> None:
    streamer = TextStreamer(tokenizer, tokenizer.encode("a"), ["😀!"])
    ids = tokenizer.encode_continuation("😀")
    assert len(ids) == 4
    assert [streamer.add(token_id) for token_id in ids] == [""] * 4
    assert not streamer.is_stopped
    assert streamer.finish() == "😀"
    assert [streamer.add(token_id) for token_id in ids[:3]] == [""] * 3
    assert streamer.finish() == "", "half a character is none"


@each
def test_invalid_bytes_are_streamed_as_decoded(tokenizer: Tokenizer) -> None:
    bad = (
        tokenizer.encode_continuation("😀")[:2]
        + tokenizer.encode_continuation("cat")
        + tokenizer.encode_continuation("é")[1:]
    )
    streamer = TextStreamer(tokenizer, tokenizer.encode("a"))
    text = "".join(streamer.add(token_id) for token_id in bad) + streamer.finish()
    assert text == tokenizer.decode_continuation(tokenizer.encode("a"), bad) == "\ufffd\ufffdcat\ufffd"
