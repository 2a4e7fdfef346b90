"""Masked language models: what is hidden, what is learnt from it, how gaps are filled."""

from pathlib import Path

import numpy as np
import pytest
import torch

from manyheads.decode import DecodeSettings
from manyheads.errors import DataError, RecipeError
from manyheads.tasks import Masked, MaskedLesson, MaskedSettings
from manyheads.tasks.masked import HIDDEN, MASK, Hider
from manyheads.text.tokenizer import BEGIN, PAD
from manyheads.text.words import WordTable
from tasks.makers import DOCUMENTS, TOKENIZERS, make_material, make_model

CPU = torch.device("cpu")
ANY = DecodeSettings()


def make_masked(kind: str = "bpe", **settings: object) -> Masked:
    tokenizer = TOKENIZERS[kind]
    return Masked.begin(make_model(tokenizer, "encoder", positions="rotary"), tokenizer, MaskedSettings(**settings))


def make_lesson(masked: Masked, folder: Path, **changes: object) -> MaskedLesson:
    return masked.lesson(make_material(folder, Masked, masked.tokenizer, masked.settings, **changes))


def ids_of(masked: Masked) -> list[np.ndarray]:
    return [np.array(masked.tokenizer.encode(text))[:30] for text in DOCUMENTS]


def test_no_text_needs_the_piece_that_hides() -> None:
    for tokenizer in TOKENIZERS.values():
        assert MASK not in tokenizer.encode("any text: \0 \ufffd 😀 ⁇ <unk> ▁")


def test_what_is_hidden_is_a_function_of_the_seed() -> None:
    masked = make_masked()
    texts = ids_of(masked)
    one, same, other = (masked.hider.hide(texts, seed, CPU) for seed in (1, 1, 2))
    assert torch.equal(one.ids, same.ids)
    assert torch.equal(one.hidden, same.hidden)
    assert not torch.equal(one.is_hidden, other.is_hidden)


@pytest.mark.parametrize("share", [0.15, 0.4])
def test_a_share_is_hidden_and_most_of_it_is_masked(share: float) -> None:
    masked = make_masked("character", share=share)
    texts = [np.arange(4, 4 + 60)] * 400
    batch = masked.hider.hide(texts, 5, CPU)
    assert batch.n_tokens == 400 * round(60 * share)
    original = torch.from_numpy(np.stack(texts))
    assert torch.equal(batch.hidden, original[batch.is_hidden[:, 1:]])
    read = batch.ids[batch.is_hidden]
    assert (read == MASK).float().mean().item() == pytest.approx(0.8, abs=0.03)
    assert (read == batch.hidden).float().mean().item() == pytest.approx(0.1, abs=0.02)
    assert read[read != MASK].min() >= 4
    assert torch.equal(batch.ids[:, 1:][~batch.is_hidden[:, 1:]], original[~batch.is_hidden[:, 1:]])
    assert (batch.ids[:, 0] == BEGIN).all()


def test_something_is_hidden_of_every_text_and_nothing_of_padding() -> None:
    masked = make_masked()
    batch = masked.hider.hide(ids_of(masked), 3, CPU)
    assert batch.is_hidden.any(1).all()
    assert not (batch.is_hidden & (batch.ids == PAD)).any()


def test_whole_words_are_hidden_together() -> None:
    masked = make_masked("character", whole_words=True)
    table = WordTable.of(masked.tokenizer)
    texts = ids_of(masked)
    batch = masked.hider.hide(texts, 2, CPU)
    for text, is_hidden in zip(texts, batch.is_hidden, strict=True):
        numbers = table.number(text)
        for word in range(numbers[-1] + 1):
            assert len(set(is_hidden[1 : len(text) + 1][numbers == word].tolist())) == 1
    assert Hider.of(masked.tokenizer, MaskedSettings()).words is None


def test_every_piece_is_in_one_window_an_epoch(tmp_path: Path) -> None:
    masked = make_masked()
    lesson = make_lesson(masked, tmp_path)
    plans = lesson.plan(0)
    assert sum((plan[:, 2] - plan[:, 1]).sum() for plan in plans) == sum(
        len(masked.tokenizer.encode(text)) for text in DOCUMENTS
    )
    assert all((plan[:, 2] - plan[:, 1]).max() <= 39 for plan in plans)
    assert torch.equal(lesson.make(plans[0], 4).ids, lesson.make(plans[0], 4).ids)
    assert "windows, “" in lesson.describe(plans[0])


def test_the_loss_is_of_hidden_pieces_alone(tmp_path: Path) -> None:
    masked = make_masked()
    lesson = make_lesson(masked, tmp_path)
    batch = lesson.make(lesson.plan(0)[0], 1)
    logits = masked.model(batch.ids, source_is_real=batch.ids != PAD)[batch.is_hidden]
    torch.testing.assert_close(lesson.loss(batch, 1), torch.nn.functional.cross_entropy(logits, batch.hidden))


def test_gaps_are_filled_with_the_likeliest_pieces() -> None:
    masked = make_masked()
    text = f"the {HIDDEN} sat on  the {HIDDEN}.\n"
    [filling] = masked.predict([text], ANY)
    assert len(filling.gaps) == 2
    for guesses in filling.gaps:
        chances = [guess.probability for guess in guesses]
        assert chances == sorted(chances, reverse=True)
        assert 0 < sum(chances) <= 1
    first, second = (guesses[0].text for guesses in filling.gaps)
    if not first.startswith("<0x") and not second.startswith("<0x"):
        assert filling.answer == f"the{first} sat on  the{second}.\n"
    assert "\n" not in filling.line()
    # The same numbers by hand.
    tokenizer = masked.tokenizer
    ids = [BEGIN, *tokenizer.encode("the"), MASK, *tokenizer.encode_inner(" sat on  the"), MASK]
    ids += tokenizer.encode_inner(".\n")
    logits = masked.model(torch.tensor([ids]))[0, ids.index(MASK)]
    logits[:4] = -torch.inf
    assert filling.gaps[0][0].probability == pytest.approx(logits.softmax(-1).max().item(), abs=1e-5)


def test_neighbours_change_no_filling() -> None:
    masked = make_masked("character")
    texts = [f"{HIDDEN}", f"the c{HIDDEN}t sat", f"{HIDDEN}{HIDDEN} the dog ran to the cat"]
    together = masked.predict(texts, ANY)
    for text, filling in zip(texts, together, strict=True):
        [alone] = masked.predict([text], ANY)
        assert alone.text == filling.text
        for mine, other in zip(alone.gaps, filling.gaps, strict=True):
            np.testing.assert_allclose([g.probability for g in mine], [g.probability for g in other], atol=1e-5)


def test_a_text_without_a_gap_or_too_long_is_refused() -> None:
    masked = make_masked("character")
    with pytest.raises(DataError, match=r"text 2 has no \[MASK\]: write it where a piece is to be found"):
        masked.predict([HIDDEN, "the cat"], ANY)
    with pytest.raises(DataError, match=r"text 1 has 101 pieces; this model reads at most 39\. Split it up"):
        masked.predict(["a" * 100 + HIDDEN], ANY)


def test_the_look_and_the_card_count_the_same_pieces() -> None:
    masked = make_masked(share=0.3)
    rows = [(text,) for text in DOCUMENTS]
    look = masked.look(rows, masked.metrics[0])
    done: list[int] = []
    card = masked.score(rows, ANY, done.append)
    assert card.scores[0].value == pytest.approx(look.score)
    assert card.n_texts == sum(done) == len(DOCUMENTS)
    assert card.n_hidden >= sum(round(0.3 * len(masked.tokenizer.encode(text))) for text in DOCUMENTS) - 9
    assert masked.look(rows[::-1], masked.metrics[0]).score == pytest.approx(look.score)
    text, guessed, hidden = look.samples[0]
    assert HIDDEN in text
    assert guessed
    assert hidden


def test_a_model_learns_to_find_what_is_hidden(tmp_path: Path) -> None:
    masked = make_masked("character", share=0.2)
    lesson = make_lesson(masked, tmp_path)
    optimiser = torch.optim.Adam(masked.model.parameters(), lr=0.01)
    before = masked.score([(DOCUMENTS[3],)], ANY).scores[0].value
    for step in range(60):
        plans = lesson.plan(step)
        optimiser.zero_grad()
        lesson.loss(lesson.make(plans[0], step), step).backward()
        optimiser.step()
    assert masked.score([(DOCUMENTS[3],)], ANY).scores[0].value > before + 10


def test_settings_out_of_range(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"task\.share = 0\.5 must be more than 0 and at most 0\.4"):
        MaskedSettings(share=0.5)
    with pytest.raises(RecipeError, match=r"tokenizer\.sampling = 0\.1: a masked language model learns from stored"):
        make_lesson(make_masked(), tmp_path, sampling=0.1)
    with pytest.raises(DataError, match="There is nothing to score"):
        make_masked().score([("",)], ANY)
