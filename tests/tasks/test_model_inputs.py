"""Windows of long texts, and the tokens that a model reads of one text."""

from collections.abc import Sequence

import pytest
import torch

from manyheads.tasks import Language, LanguageSettings, Masked, MaskedSettings, Seq2Seq, Seq2SeqSettings
from manyheads.tasks.model_inputs import Pool, Pooling, batches_by_length, windows
from manyheads.text.tokens.tokenizer import BOS, EOS, UNK, Token

from tasks.makers import TOKENIZERS, make_model


def test_windows_cover_everything_and_overlap_by_half() -> None:
    assert windows([1] * 8, 8) == [(0, 8)]
    assert windows([], 8) == [(0, 0)]
    assert windows([1] * 20, 8) == [(0, 8), (4, 12), (8, 16), (12, 20)]
    assert windows([3, 3, 3, 3], 7) == [(0, 2), (1, 3), (2, 4)]
    assert windows([1, 9, 1], 4) == [(0, 1), (1, 2), (2, 3)]  # an item larger than the limit has its own window


@pytest.mark.parametrize("length", [9, 17, 100, 101])
def test_no_window_exceeds_the_limit(length: int) -> None:
    found = windows([1] * length, 8)
    assert all(end - start <= 8 for start, end in found)
    assert {index for start, end in found for index in range(start, end)} == set(range(length))


def test_every_text_is_read_once() -> None:
    batches = list(batches_by_length([5000, 3, 1, 900, 900, 900, 900, 900]))
    assert sorted(number for batch in batches for number in batch) == list(range(8))


@pytest.mark.parametrize("kind", ["first", "mean", "max", "mean-max", "attention"])
def test_pooling_ignores_padding(kind: Pooling) -> None:
    torch.manual_seed(1)
    pool, x = Pool(kind, 6), torch.randn(2, 5, 6)
    is_real = torch.tensor([[True] * 3 + [False] * 2, [True] * 5])
    pooled = pool(x, is_real)
    torch.testing.assert_close(pooled[:1], pool(x[:1, :3], is_real[:1, :3]))
    assert pooled.shape == (2, pool.width)


ODD = "the cat▁ 😀 sat\n on  the mat"


def shown(text: str, tokens: Sequence[Token]) -> list[str]:
    return [text[token.start : token.end] for token in tokens]


@pytest.mark.parametrize("kind", ["bpe", "character"])
def test_tokens_of_source_and_answer_have_their_offsets(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    task = Seq2Seq(make_model(tokenizer, "encoder-decoder"), tokenizer, Seq2SeqSettings())
    found = task.model_input(ODD, "a dog")
    assert [token.id for token in found.source] == [*tokenizer.encode(ODD), EOS]
    assert [token.id for token in found.target] == [BOS, *tokenizer.encode("a dog")]
    assert [token.id for token in found.written] == [*tokenizer.encode("a dog"), EOS]
    covered = {index for token in found.source for index in range(token.start, token.end)}
    assert covered == set(range(len(ODD)))
    for text, tokens in ((ODD, found.source), ("a dog", found.target)):
        for token in tokens:
            if token.id > EOS and tokenizer.byte_of(token.id) is None:
                assert text[token.start : token.end] == token.text.replace("▁", " ")[-(token.end - token.start) or 99 :]


@pytest.mark.parametrize("kind", ["bpe", "character"])
def test_mask_is_one_token_with_its_offsets(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    task = Masked(make_model(tokenizer, "encoder"), tokenizer, MaskedSettings())
    text = "the [MASK] sat on[MASK] mat."
    found = task.model_input(text).source
    gaps = [text[token.start : token.end] for token in found if token.id == UNK]
    assert [gap.strip() for gap in gaps] == ["[MASK]", "[MASK]"]
    assert gaps[0].startswith(" ") == (kind == "bpe")
    assert "".join(shown(text, found)) == text
    assert [token.id for token in task.model_input("a cat").source] == [BOS, *tokenizer.encode("a cat")]


@pytest.mark.parametrize("kind", ["bpe", "character"])
@pytest.mark.parametrize("prompt", ["the cat", "the cat ", "the cat\n"])
def test_offsets_of_a_continuation_count_from_the_text(kind: str, prompt: str) -> None:
    tokenizer = TOKENIZERS[kind]
    task = Language(make_model(tokenizer, "decoder"), tokenizer, LanguageSettings())
    answer = "sat on" if prompt.endswith((" ", "\n")) else " sat on"
    found = task.model_input(prompt, answer)
    whole = prompt + answer
    assert tokenizer.decode([token.id for token in found.target[1:]]) == whole
    assert "".join(shown(whole, found.target)) == whole
    assert found.written == (*found.target[1:], Token("</s>", EOS, len(whole), len(whole)))
