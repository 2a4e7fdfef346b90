"""Tokenizers of imported models: renumbered ids, spans, and words, for each kind of vocabulary."""

import json
import pickle
from typing import Any

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.errors import DataError
from manyheads.text.tokens.imported_tokenizer import ImportedTokenizer, Numbering, SpecialIds
from manyheads.text.tokens.text_streamer import TextStreamer
from manyheads.text.tokens.tokenizer import BOS, EOS, PAD, UNK, Tokenizer

from interop import foreign

N_WORD_PIECES, N_BYTES = 96, 288
CONTENTS: dict[str, dict[str, Any]] = {
    "word pieces": foreign.word_piece(N_WORD_PIECES),
    "bytes": foreign.byte_level(N_BYTES, ("<s>", "<pad>", "</s>", "<unk>", "<mask>")),
    "metaspace": foreign.metaspace(N_WORD_PIECES, ("<pad>", "</s>", "<unk>")),
}
SPECIAL = {
    "word pieces": SpecialIds(pad=0, mask=85, bos=86, eos=84),
    "bytes": SpecialIds(pad=1, mask=4, bos=0, eos=2),
    "metaspace": SpecialIds(pad=0, mask=2, bos=0, eos=1),
}
TEXTS = ("the cat sleeps", "The Cats, unable.", " two  spaces ", "é猫😀", "a\u0301\u200b\x00", "")


def make(kind: str) -> ImportedTokenizer:
    n_ids = N_BYTES if kind == "bytes" else N_WORD_PIECES
    return ImportedTokenizer.make(CONTENTS[kind], SPECIAL[kind], n_ids, is_closed=True)


TOKENIZERS = {kind: make(kind) for kind in CONTENTS}


def test_special_tokens_are_first_and_the_others_keep_their_order() -> None:
    numbering = Numbering(SpecialIds(pad=0, mask=85, bos=86, eos=84), 96)
    assert numbering.theirs[:6] == [0, 85, 86, 84, 1, 2] and len(numbering) == 96
    assert not any(numbering.is_copy)
    assert all(numbering.ours[theirs] == ours for ours, theirs in enumerate(numbering.theirs))


def test_a_token_with_several_roles_has_copies_that_are_never_generated() -> None:
    numbering = Numbering(SpecialIds(pad=None, mask=None, bos=7, eos=7), 9)
    assert numbering.theirs == [7, 7, 7, 7, 0, 1, 2, 3, 4, 5, 6, 8]
    assert numbering.is_copy == [True, True, True, False, *[False] * 8]
    assert numbering.ours[7] == EOS


@pytest.mark.parametrize("kind", CONTENTS)
@settings(max_examples=30, deadline=None)
@given(text=st.one_of(st.sampled_from(TEXTS), st.text(max_size=20)))
def test_ids_are_those_of_the_library(kind: str, text: str) -> None:
    tokenizer = TOKENIZERS[kind]
    content = {**CONTENTS[kind], "truncation": None, "padding": None}
    library = tokenizers.Tokenizer.from_str(json.dumps(content))
    found = tokenizer.encode(text)
    assert [tokenizer.numbering.theirs[number] for number in found] == library.encode(
        text, add_special_tokens=False
    ).ids
    assert [token.id for token in tokenizer.tokenize(text)] == found
    assert all(0 <= token.start <= token.end <= len(text) for token in tokenizer.tokenize(text))


@pytest.mark.parametrize("kind", CONTENTS)
def test_it_survives_bytes_and_pickling(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    for other in (Tokenizer.from_bytes(tokenizer.to_bytes()), pickle.loads(pickle.dumps(tokenizer))):  # noqa: S301
        assert isinstance(other, ImportedTokenizer)
        assert other.encode_batch(list(TEXTS)) == tokenizer.encode_batch(list(TEXTS))
        assert (other.closes, other.n_framing, other.vocab_size) == (EOS, 2, tokenizer.vocab_size)


@pytest.mark.parametrize("kind", ["bytes", "metaspace"])
def test_text_is_decoded_with_spans(kind: str) -> None:
    tokenizer, text = TOKENIZERS[kind], "the cat sings"
    ids = tokenizer.encode(text)
    assert tokenizer.decode([BOS, *ids, EOS, PAD, UNK]) == text
    tokens = list(tokenizer.tokens_from_ids(ids))
    assert "".join(text[token.start : token.end] for token in tokens) == text
    assert tokens[-1].end == len(text)


def test_parts_of_a_character_have_its_span_and_are_streamed_together() -> None:
    tokenizer = TOKENIZERS["bytes"]
    ids = tokenizer.encode("a猫b")
    assert len(ids) == 5
    assert [(token.start, token.end) for token in tokenizer.tokens_from_ids(ids)] == [
        (0, 1), (1, 2), (1, 2), (1, 2), (2, 3),
    ]  # fmt: skip
    assert [tokenizer.byte_of(number) for number in ids] == [None, 0xE7, 0x8C, 0xAB, None]
    streamer = TextStreamer(tokenizer, [], ())
    assert [streamer.add(number) for number in ids] == ["a", "", "", "猫", "b"]


def test_words_are_those_within_a_text() -> None:
    tokenizer = TOKENIZERS["bytes"]
    within = [*tokenizer.encode_words(["the"])[0], *tokenizer.encode_words(["cat"])[0]]
    assert within == tokenizer.encode(" the cat")
    assert [tokenizer.id_to_token(number) for number in within] == ["▁the", "▁cat"]
    assert [token.id for token in tokenizer.word_tokens("cat")] == tokenizer.encode_words(["cat"])[0]
    metaspace = TOKENIZERS["metaspace"]
    assert metaspace.encode_continuation("ing") == [metaspace.encode("sing")[-1]]


def test_a_text_never_contains_padding() -> None:
    for kind, name in (("word pieces", "[PAD]"), ("bytes", "<pad>"), ("metaspace", "<pad>")):
        assert PAD not in TOKENIZERS[kind].encode(f"a {name} b")


def test_sampling_and_surrogates_are_refused() -> None:
    tokenizer = TOKENIZERS["bytes"]
    assert tokenizer.sample_batch(["the"], 0.0, 1) == [tokenizer.encode("the")]
    with pytest.raises(DataError, match=r"^tokenizer\.sampling is for tokenizers that manyheads trains"):
        tokenizer.sample_batch(["the"], 0.1, 1)
    with pytest.raises(DataError, match="unpaired surrogate"):
        tokenizer.encode("\ud800")
