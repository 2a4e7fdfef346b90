"""Windows of long texts, temperatures, and the pieces that a model reads of one text."""

from collections.abc import Sequence

import pytest
import torch

from manyheads.tasks import Language, LanguageSettings, Masked, MaskedSettings, Seq2Seq, Seq2SeqSettings
from manyheads.tasks.pooling import Pool, Pooling
from manyheads.tasks.reading import fit_temperature, like_lengths, windows
from manyheads.text.tokenizer import BEGIN, END, UNKNOWN, Piece
from tasks.makers import TOKENIZERS, make_model


def test_windows_hold_everything_and_overlap_by_half() -> None:
    assert windows([1] * 8, 8) == [(0, 8)]
    assert windows([], 8) == [(0, 0)]
    assert windows([1] * 20, 8) == [(0, 8), (4, 12), (8, 16), (12, 20)]
    assert windows([3, 3, 3, 3], 7) == [(0, 2), (1, 3), (2, 4)]
    assert windows([1, 9, 1], 4) == [(0, 1), (1, 2), (2, 3)]  # what is too long stands alone


@pytest.mark.parametrize("length", [9, 17, 100, 101])
def test_no_window_is_longer_than_allowed(length: int) -> None:
    found = windows([1] * length, 8)
    assert all(end - start <= 8 for start, end in found)
    assert {place for start, end in found for place in range(start, end)} == set(range(length))


def test_every_text_is_read_once() -> None:
    batches = list(like_lengths([5000, 3, 1, 900, 900, 900, 900, 900]))
    assert sorted(number for batch in batches for number in batch) == list(range(8))


def test_a_temperature_takes_back_what_was_multiplied() -> None:
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(4000, 3, generator=generator)
    drawn = torch.multinomial(logits.softmax(-1), 1, generator=generator)[:, 0]
    wanted = torch.nn.functional.one_hot(drawn, 3).float()
    assert fit_temperature(5.0 * logits, wanted, several=False) == pytest.approx(5.0, rel=0.1)
    several = torch.bernoulli(logits.sigmoid(), generator=generator)
    assert fit_temperature(3.0 * logits, several, several=True) == pytest.approx(3.0, rel=0.1)
    assert fit_temperature(logits[:0], wanted[:0], several=False) == 1.0


@pytest.mark.parametrize("kind", ["first", "mean", "max", "mean-max", "attention"])
def test_pooling_never_sees_what_is_not_real(kind: Pooling) -> None:
    torch.manual_seed(1)
    pool, x = Pool(kind, 6), torch.randn(2, 5, 6)
    is_real = torch.tensor([[True] * 3 + [False] * 2, [True] * 5])
    pooled = pool(x, is_real)
    torch.testing.assert_close(pooled[:1], pool(x[:1, :3], is_real[:1, :3]))
    assert pooled.shape == (2, pool.width)


ODD = "the cat▁ 😀 sat\n on  the mat"


def shown(text: str, pieces: Sequence[Piece]) -> list[str]:
    return [text[piece.start : piece.end] for piece in pieces]


@pytest.mark.parametrize("kind", ["bpe", "character"])
def test_pieces_of_source_and_answer_stand_where_they_say(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    task = Seq2Seq(make_model(tokenizer, "encoder-decoder"), tokenizer, Seq2SeqSettings())
    found = task.reading(ODD, "a dog")
    assert [piece.id for piece in found.source] == [*tokenizer.encode(ODD), END]
    assert [piece.id for piece in found.target] == [BEGIN, *tokenizer.encode("a dog")]
    assert [piece.id for piece in found.written] == [*tokenizer.encode("a dog"), END]
    covered = {place for piece in found.source for place in range(piece.start, piece.end)}
    assert covered == set(range(len(ODD)))
    for text, pieces in ((ODD, found.source), ("a dog", found.target)):
        for piece in pieces:
            if piece.id > END and tokenizer.byte_of(piece.id) is None:
                assert text[piece.start : piece.end] == piece.text.replace("▁", " ")[-(piece.end - piece.start) or 99 :]


@pytest.mark.parametrize("kind", ["bpe", "character"])
def test_a_gap_is_one_piece_that_stands_where_it_was_written(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    task = Masked(make_model(tokenizer, "encoder"), tokenizer, MaskedSettings())
    text = "the [MASK] sat on[MASK] mat."
    found = task.reading(text).source
    gaps = [text[piece.start : piece.end] for piece in found if piece.id == UNKNOWN]
    assert [gap.strip() for gap in gaps] == ["[MASK]", "[MASK]"]
    assert gaps[0].startswith(" ") == (kind == "bpe")
    assert "".join(shown(text, found)) == text
    assert [piece.id for piece in task.reading("a cat").source] == [BEGIN, *tokenizer.encode("a cat")]


@pytest.mark.parametrize("kind", ["bpe", "character"])
@pytest.mark.parametrize("prompt", ["the cat", "the cat ", "the cat\n"])
def test_an_answer_goes_on_in_the_line_of_its_text(kind: str, prompt: str) -> None:
    tokenizer = TOKENIZERS[kind]
    task = Language(make_model(tokenizer, "decoder"), tokenizer, LanguageSettings())
    answer = "sat on" if prompt.endswith((" ", "\n")) else " sat on"
    found = task.reading(prompt, answer)
    whole = prompt + answer
    assert tokenizer.decode([piece.id for piece in found.target[1:]]) == whole
    assert "".join(shown(whole, found.target)) == whole
    assert found.written == (*found.target[1:], Piece("</s>", END, len(whole), len(whole)))
