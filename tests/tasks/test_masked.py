"""Masked language models: masks, loss and filling."""

from pathlib import Path

import numpy as np
import pytest
import torch

from manyheads.decode import DecodeSettings
from manyheads.errors import DataError, RecipeError
from manyheads.tasks import Masked, MaskedSettings, MaskedTrainingTask
from manyheads.tasks.masked.masked_training import MASK, MASK_TEXT, Masker
from manyheads.text.tokens.tokenizer import BOS, PAD
from manyheads.text.tokens.words import WordTable

from tasks.makers import BLANK_TEXTS, DOCUMENTS, TOKENIZERS, make_model, make_training_data

CPU = torch.device("cpu")
ANY = DecodeSettings()


def make_masked(kind: str = "bpe", **settings: object) -> Masked:
    tokenizer = TOKENIZERS[kind]
    return Masked.create(make_model(tokenizer, "encoder", positions="rotary"), tokenizer, MaskedSettings(**settings))


def make_training_task(masked: Masked, folder: Path, **changes: object) -> MaskedTrainingTask:
    return masked.training_task(make_training_data(folder, Masked, masked.tokenizer, masked.settings, **changes))


def ids_of(masked: Masked) -> list[np.ndarray]:
    return [np.array(masked.tokenizer.encode(text))[:30] for text in DOCUMENTS]


def test_no_text_is_encoded_with_the_mask_token() -> None:
    for tokenizer in TOKENIZERS.values():
        assert MASK not in tokenizer.encode("any text: \0 \ufffd 😀 ⁇ <unk> ▁")


def test_masks_depend_on_the_seed_only() -> None:
    masked = make_masked()
    texts = ids_of(masked)
    one, same, other = (masked.masker.mask(texts, seed, CPU) for seed in (1, 1, 2))
    assert torch.equal(one.ids, same.ids)
    assert torch.equal(one.masked_ids, same.masked_ids)
    assert not torch.equal(one.is_masked, other.is_masked)


@pytest.mark.parametrize("share", [0.15, 0.4])
def test_share_of_masked_tokens(share: float) -> None:
    masked = make_masked("character", mask_probability=share)
    texts = [np.arange(4, 4 + 60)] * 400
    batch = masked.masker.mask(texts, 5, CPU)
    assert batch.n_tokens == 400 * round(60 * share)
    original = torch.from_numpy(np.stack(texts))
    assert torch.equal(batch.masked_ids, original[batch.is_masked[:, 1:]])
    read = batch.ids[batch.is_masked]
    assert (read == MASK).float().mean().item() == pytest.approx(0.8, abs=0.03)
    assert (read == batch.masked_ids).float().mean().item() == pytest.approx(0.1, abs=0.02)
    assert read[read != MASK].min() >= 4
    assert torch.equal(batch.ids[:, 1:][~batch.is_masked[:, 1:]], original[~batch.is_masked[:, 1:]])
    assert (batch.ids[:, 0] == BOS).all()


def test_every_text_has_a_mask_and_padding_has_none() -> None:
    masked = make_masked()
    batch = masked.masker.mask(ids_of(masked), 3, CPU)
    assert batch.is_masked.any(1).all()
    assert not (batch.is_masked & (batch.ids == PAD)).any()


def test_whole_words_are_masked_together() -> None:
    masked = make_masked("character", whole_words=True)
    table = WordTable.of(masked.tokenizer)
    texts = ids_of(masked)
    batch = masked.masker.mask(texts, 2, CPU)
    for text, is_masked in zip(texts, batch.is_masked, strict=True):
        numbers = table.word_ids(text)
        for word in range(numbers[-1] + 1):
            assert len(set(is_masked[1 : len(text) + 1][numbers == word].tolist())) == 1
    assert Masker.of(masked.tokenizer, MaskedSettings()).words is None


def test_every_token_is_in_one_window_an_epoch(tmp_path: Path) -> None:
    masked = make_masked()
    training_task = make_training_task(masked, tmp_path)
    plans = training_task.plan(0)
    assert sum((plan[:, 2] - plan[:, 1]).sum() for plan in plans) == sum(
        len(masked.tokenizer.encode(text)) for text in DOCUMENTS
    )
    assert all((plan[:, 2] - plan[:, 1]).max() <= 39 for plan in plans)
    assert torch.equal(training_task.make(plans[0], 4).ids, training_task.make(plans[0], 4).ids)
    assert "windows, “" in training_task.describe(plans[0])


def test_loss_is_of_masked_tokens_only(tmp_path: Path) -> None:
    masked = make_masked()
    training_task = make_training_task(masked, tmp_path)
    batch = training_task.make(training_task.plan(0)[0], 1)
    logits = masked.model(batch.ids, source_is_real=batch.ids != PAD)[batch.is_masked]
    torch.testing.assert_close(
        training_task.loss(batch, 1), torch.nn.functional.cross_entropy(logits, batch.masked_ids)
    )


def test_masks_are_filled_with_the_likeliest_tokens() -> None:
    masked = make_masked()
    text = f"the {MASK_TEXT} sat on  the {MASK_TEXT}.\n"
    [filling] = masked.predict([text], ANY)
    assert len(filling.gaps) == 2
    for guesses in filling.gaps:
        probabilities = [guess.probability for guess in guesses]
        assert probabilities == sorted(probabilities, reverse=True)
        assert 0 < sum(probabilities) <= 1
    first, second = (guesses[0].text for guesses in filling.gaps)
    if not first.startswith("<0x") and not second.startswith("<0x"):
        assert filling.answer == f"the{first} sat on  the{second}.\n"
    assert "\n" not in filling.line()
    # The same numbers by hand.
    tokenizer = masked.tokenizer
    ids = [BOS, *tokenizer.encode("the"), MASK, *tokenizer.encode_continuation(" sat on  the"), MASK]
    ids += tokenizer.encode_continuation(".\n")
    logits = masked.model(torch.tensor([ids]))[0, ids.index(MASK)]
    logits[:4] = -torch.inf
    assert filling.gaps[0][0].probability == pytest.approx(logits.softmax(-1).max().item(), abs=1e-5)


def test_batching_changes_no_filling() -> None:
    masked = make_masked("character")
    texts = [f"{MASK_TEXT}", f"the c{MASK_TEXT}t sat", f"{MASK_TEXT}{MASK_TEXT} the dog ran to the cat"]
    together = masked.predict(texts, ANY)
    for text, filling in zip(texts, together, strict=True):
        [alone] = masked.predict([text], ANY)
        assert alone.text == filling.text
        for mine, other in zip(alone.gaps, filling.gaps, strict=True):
            np.testing.assert_allclose([g.probability for g in mine], [g.probability for g in other], atol=1e-5)


def test_blank_text_needs_no_mask() -> None:
    masked = make_masked()
    for text in BLANK_TEXTS:
        masked.check(text, "Line 1")
    *blank, filled = masked.predict([*BLANK_TEXTS, f"the {MASK_TEXT} sat"], ANY)
    assert {(one.text, len(one.gaps)) for one in blank} == {("", 0)}
    assert len(filled.gaps) == 1


def test_text_without_mask_or_too_long_is_refused() -> None:
    masked = make_masked("character")
    with pytest.raises(DataError, match=r"text 2 has no \[MASK\]: write it where a token is to be predicted"):
        masked.predict([MASK_TEXT, "the cat"], ANY)
    with pytest.raises(DataError, match=r"text 1 has 101 tokens; this model reads at most 39\. Split it up"):
        masked.predict(["a" * 100 + MASK_TEXT], ANY)


def test_validation_and_scorecard_count_the_same_tokens() -> None:
    masked = make_masked(mask_probability=0.3)
    rows = [(text,) for text in DOCUMENTS]
    result = masked.validate(rows, masked.metrics[0])
    done: list[int] = []
    card = masked.score(rows, ANY, done.append)
    assert card.scores[0].value == pytest.approx(result.score)
    assert card.n_texts == sum(done) == len(DOCUMENTS)
    assert card.n_masked >= sum(round(0.3 * len(masked.tokenizer.encode(text))) for text in DOCUMENTS) - 9
    assert masked.validate(rows[::-1], masked.metrics[0]).score == pytest.approx(result.score)
    text, guessed, hidden = result.samples[0]
    assert MASK_TEXT in text
    assert guessed
    assert hidden


def test_model_learns_to_predict_masked_tokens(tmp_path: Path) -> None:
    masked = make_masked("character", mask_probability=0.2)
    training_task = make_training_task(masked, tmp_path)
    optimizer = torch.optim.Adam(masked.model.parameters(), lr=0.01)
    before = masked.score([(DOCUMENTS[3],)], ANY).scores[0].value
    for step in range(60):
        plans = training_task.plan(step)
        optimizer.zero_grad()
        training_task.loss(training_task.make(plans[0], step), step).backward()
        optimizer.step()
    assert masked.score([(DOCUMENTS[3],)], ANY).scores[0].value > before + 10


def test_settings_out_of_range(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"task\.mask_probability = 0\.5 must be greater than 0 and at most 0\.4"):
        MaskedSettings(mask_probability=0.5)
    with pytest.raises(RecipeError, match=r"tokenizer\.sampling = 0\.1: a masked language model is trained on stored"):
        make_training_task(make_masked(), tmp_path, sampling=0.1)
    with pytest.raises(DataError, match="There is nothing to score"):
        make_masked().score([("",)], ANY)


def test_validation_reads_as_many_tokens_as_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    masked = make_masked()
    rows = [(text,) for text in DOCUMENTS] * 20
    n_tokens = len(masked.tokenizer.encode(DOCUMENTS[0]))
    windows: list[int] = []
    predict = Masked._predict_windows
    monkeypatch.setattr(
        Masked, "_predict_windows", lambda self, found: predict(self, windows.append(len(found)) or found)
    )
    masked.validate(rows, masked.metrics[0])
    monkeypatch.setattr("manyheads.tasks.masked.masked_task._VALIDATION_TOKENS", n_tokens)
    masked.validate(rows, masked.metrics[0])
    assert windows[0] >= len(rows) > 3 >= windows[1] >= 1
