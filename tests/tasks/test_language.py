"""Language models: packed rows, scoring and generation."""

import math
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from manyheads.decode import DecodeSettings
from manyheads.errors import DataError, RecipeError
from manyheads.tasks import Language, LanguageSettings, LanguageTrainingTask
from manyheads.tasks.language.language_training import hidden_of
from manyheads.tasks.language.perplexity import sliding_windows, token_nll
from manyheads.text.tokens.tokenizer import BOS, EOS

from tasks.makers import DOCUMENTS, TOKENIZERS, make_model, make_training_data

POSITIONS = ("rotary", "learned", "alibi", "sinusoidal")
GREEDY = DecodeSettings(method="greedy", max_new_tokens=12)
SAMPLE = DecodeSettings(method="sample", max_new_tokens=12, n_best=2)


def make_language(kind: str = "character", stride: int | None = None, **changes: object) -> Language:
    tokenizer = TOKENIZERS[kind]
    return Language.create(make_model(tokenizer, "decoder", **changes), tokenizer, LanguageSettings(stride=stride))


def make_training_task(language: Language, folder: Path, **changes: object) -> LanguageTrainingTask:
    return language.training_task(
        make_training_data(folder, Language, language.tokenizer, language.settings, **changes)
    )


@pytest.mark.parametrize("positions", POSITIONS)
def test_packed_documents_do_not_attend_to_one_another(tmp_path: Path, positions: str) -> None:
    language = make_language(positions=positions, norm_placement="pre")
    training_task = make_training_task(language, tmp_path)
    seen = 0
    for plan in training_task.plan(0):
        hidden, written = hidden_of(language.model, training_task.make(plan, 0))
        # Row by row, in the order of the plan.
        for _, document, start, end in plan.tolist():
            ids = [*language.tokenizer.encode(DOCUMENTS[document]), EOS][start:end]
            alone = language.model.hidden(target=torch.tensor([[BOS, *ids[:-1]]]))[0]
            torch.testing.assert_close(hidden[: len(ids)], alone, atol=1e-5, rtol=0)
            assert written[: len(ids)].tolist() == ids
            hidden, written = hidden[len(ids) :], written[len(ids) :]
            seen += 1
    assert seen > len(DOCUMENTS), "one of them is longer than the context"
    assert any(len(plan) > len(set(plan[:, 0])) for plan in training_task.plan(0)), "some rows hold several"


def test_every_token_is_trained_on_once_per_epoch(tmp_path: Path) -> None:
    language = make_language()
    training_task = make_training_task(language, tmp_path)
    expected = sorted(i for text in DOCUMENTS for i in [*language.tokenizer.encode(text), EOS])
    for epoch in (0, 1):
        batches = [training_task.make(plan, 0) for plan in training_task.plan(epoch)]
        written = torch.cat([batch.written[batch.segment_ids > 0] for batch in batches])
        assert sorted(written.tolist()) == expected
        assert all(batch.read.numel() <= 120 for batch in batches)
        assert sum(batch.n_tokens for batch in batches) == len(expected)


def test_order_depends_on_the_epoch(tmp_path: Path) -> None:
    training_task = make_training_task(make_language(), tmp_path)
    first, again, other = ([plan.tolist() for plan in training_task.plan(epoch)] for epoch in (0, 0, 1))
    assert first == again
    assert first != other


def test_loss_is_the_mean_over_real_tokens(tmp_path: Path) -> None:
    language = make_language()
    training_task = make_training_task(language, tmp_path)
    batch = training_task.make(training_task.plan(0)[0], 0)
    hidden, written = hidden_of(language.model, batch)
    expected = torch.nn.functional.cross_entropy(language.model.output.logits(hidden), written)
    torch.testing.assert_close(training_task.loss(batch, 1), expected)


def test_norm_over_positions_gets_one_window_per_row(tmp_path: Path) -> None:
    training_task = make_training_task(make_language(norm="sample"), tmp_path)
    assert all(len(plan) == len(set(plan[:, 0].tolist())) for plan in training_task.plan(0))


def test_weights_choose_documents(tmp_path: Path) -> None:
    language = make_language()
    training_task = make_training_task(language, tmp_path, boundaries=(0, 2, 4), weights=(2.0, 1.0))
    counts = np.bincount(np.concatenate([plan[plan[:, 2] == 0, 1] for plan in training_task.plan(0)]))
    assert counts.tolist()[:2] == [2, 2]
    assert counts.tolist()[2:] == [1, 1]


def test_batch_is_described_by_the_beginnings_of_its_windows(tmp_path: Path) -> None:
    training_task = make_training_task(make_language(), tmp_path)
    plan = np.array([[0, 0, 0, 30], [1, 3, 7, 47]])
    assert training_task.describe(plan) == f"2 windows, “{DOCUMENTS[0][:20]}…”, “{DOCUMENTS[3][7:27]}…”"


def test_subword_sampling_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"tokenizer\.sampling = 0\.1: a language model is trained on stored tokens"):
        make_training_task(make_language("bpe"), tmp_path, sampling=0.1)


def test_windows_slide_by_the_stride() -> None:
    assert sliding_windows(10, 4, 2) == [(0, 0, 4), (2, 4, 6), (4, 6, 8), (6, 8, 10)]
    assert sliding_windows(9, 4, 3) == [(0, 0, 4), (3, 4, 7), (5, 7, 9)]
    assert sliding_windows(3, 4, 2) == [(0, 0, 3)]
    assert sliding_windows(0, 4, 2) == []


@pytest.mark.parametrize("stride", [1, 7, 40])
def test_every_token_is_predicted_from_its_window(stride: int) -> None:
    language = make_language()
    documents = [language.tokenizer.encode(text) for text in DOCUMENTS]
    found = token_nll(language.model, documents, stride)
    for ids, nats in zip(documents, found, strict=True):
        assert len(nats) == len(ids)
        for start, first, end in sliding_windows(len(ids), 40, stride)[:30]:
            logits = language.model(target=torch.tensor([[BOS, *ids[start : end - 1]]]))[0]
            alone = -logits.log_softmax(-1)[range(end - start), ids[start:end]]
            np.testing.assert_allclose(nats[first:end], alone[first - start :].detach().numpy(), atol=1e-5)


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_card_counts_every_token_of_every_text(kind: str) -> None:
    language = make_language(kind, stride=10)
    rows = [(text,) for text in [*DOCUMENTS, "né 😀\n"]]
    done: list[int] = []
    card = language.score(rows, GREEDY, done.append)
    text = "".join(row[0] for row in rows)
    assert card.n_characters == len(text)
    assert card.n_bytes == len(text.encode())
    assert card.n_words == sum(len(row[0].split()) for row in rows) + text.count("\n")
    assert card.n_tokens == sum(len(language.tokenizer.encode(row[0])) for row in rows)
    total = sum(language.nats(row[0]).sum() for row in rows)
    assert card.n_nats == pytest.approx(total, rel=1e-5)
    values = {score.name: score.value for score in card.scores}
    assert values["nats per character"] == pytest.approx(total / len(text), rel=1e-5)
    assert values["bits per byte"] == pytest.approx(total / len(text.encode()) / math.log(2), rel=1e-5)
    assert "context:40|stride:10" in card.scores[0].signature
    assert len(done) == len(rows)
    assert card.samples[0].prompt
    assert text.startswith(card.samples[0].prompt)


def test_many_documents_are_resampled_individually() -> None:
    language = make_language()
    card = language.score([("the cat\n",)] * 40, GREEDY)
    assert card.n_texts == 40
    assert "documents:40" in card.scores[0].signature


def test_short_context_is_scored_with_any_decoding_method() -> None:
    """A prompt that `predict` would refuse must not end a training run."""
    card = make_language().score([(DOCUMENTS[0],)], DecodeSettings(method="beam", max_new_tokens=500))
    assert len(card.samples) == 1


def test_empty_test_set_is_refused() -> None:
    with pytest.raises(DataError, match="there is nothing to score"):
        make_language().score([("",)], GREEDY)


def test_validation_is_the_log_likelihood_with_sample_continuations() -> None:
    language = make_language()
    result = language.validate([(text,) for text in DOCUMENTS], language.metrics[0])
    assert result.score < 0
    nats = token_nll(language.model, [language.tokenizer.encode(text) for text in DOCUMENTS], 20)
    assert result.score == pytest.approx(-sum(part.sum() for part in nats) / len("".join(DOCUMENTS)), rel=1e-5)
    prompt, answer, reference = result.samples[0]
    assert DOCUMENTS[0].startswith(prompt + reference)
    assert answer


def whole(parts: Generator[str, None, bool]) -> tuple[str, bool]:
    """The text of a stream, and whether it is finished."""
    texts = []
    while True:
        try:
            texts.append(next(parts))
        except StopIteration as end:
            return "".join(texts), end.value


PROMPTS = ["the cat", "", "a", "the dog sat\n", "the cat", " the  mat was red" * 6]


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize(
    "settings", [GREEDY, SAMPLE, replace(GREEDY, stop=("a", "the d"))], ids=["greedy", "sample", "stop"]
)
def test_stream_equals_the_prediction_and_batching_changes_nothing(kind: str, settings: DecodeSettings) -> None:
    language = make_language(kind)
    found = language.predict(PROMPTS, settings)
    for number, (prompt, one) in enumerate(zip(PROMPTS, found, strict=True)):
        assert one.prompt == prompt
        [alone] = language.predict([prompt], settings, first=number)
        assert [c.text for c in one.candidates] == [c.text for c in alone.candidates]
        assert one.candidates[0].score == pytest.approx(alone.candidates[0].score, abs=1e-4)
        assert len(one.candidates) == settings.n_best
        streamed, is_finished = whole(language.stream(prompt, replace(settings, n_best=1), number))
        assert (streamed, is_finished) in [(candidate.text, candidate.finished) for candidate in one.candidates]


def test_stop_string_across_tokens_is_found_and_left_out() -> None:
    """A stop string in the middle of the free continuation ends the answer there."""
    language = make_language(max_length=80)
    settings = DecodeSettings(method="sample", max_new_tokens=40, seed=4)
    free = language.predict(["the cat"], settings)[0].answer
    stop = free[10:13]
    for method in (settings, replace(settings, stop=(stop,)), replace(settings, stop=("not there", stop))):
        found = language.predict(["the cat"], method)[0]
        expected = free if not method.stop else free[: free.index(stop)]
        assert found.answer == expected
        assert whole(language.stream("the cat", method)) == (expected, bool(method.stop))
        assert found.candidates[0].finished == bool(method.stop)


def test_beams_end_at_a_stop_string() -> None:
    language = make_language()
    settings = DecodeSettings(method="beam", beam=3, n_best=3, max_new_tokens=12, stop=("a", "e", "\n"))
    for candidate in language.predict(["the cat"], settings)[0].candidates:
        assert not set(candidate.text) & set("ae\n")
    assert "".join(language.stream("the cat", settings)) == language.predict(["the cat"], settings)[0].answer


def test_prompt_longer_than_the_context_slides_or_is_refused() -> None:
    language = make_language()
    long = "the cat sat on the mat. " * 5
    whole, newest = language.predict([long, long[-39:]], GREEDY)
    assert whole.answer == newest.answer
    with pytest.raises(
        DataError, match=r"text 1 has 120 tokens; with decode\.max_new_tokens = 12 more they do not fit"
    ):
        language.predict([long], DecodeSettings(method="beam", max_new_tokens=12))


def test_continuation_may_exceed_the_context() -> None:
    found = (
        make_language().predict(["the"], DecodeSettings(method="sample", max_new_tokens=100, top_k=5))[0].candidates[0]
    )
    assert len(found.text) > 60 or found.finished


def test_trailing_space_of_a_prompt_belongs_to_the_next_token() -> None:
    """Otherwise the model would continue after a space token that it never sees in training."""
    language = make_language("bpe")
    with_space, without = language.predict(["the cat ", "the cat"], GREEDY)
    assert with_space.answer == without.answer.removeprefix(" ")
    assert "".join(language.stream("the cat ", GREEDY)) == with_space.answer


def test_line_escapes_line_breaks() -> None:
    language = make_language()
    assert replace(language.predict(["a\\b\n"], GREEDY)[0], candidates=()).prompt == "a\\b\n"
    assert language.predict(["a\\b\nc"], GREEDY)[0].line().startswith("a\\\\b\\nc")
    assert "\n" not in language.predict(["a\\b\n"], GREEDY)[0].line()


def test_stride_beyond_the_context_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"task\.stride = 41 would skip tokens"):
        make_language(stride=41)
    with pytest.raises(RecipeError, match=r"task\.stride = 0 must be at least 1 and at most 1,000,000\. Leave it out"):
        LanguageSettings(stride=0)


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
def test_an_empty_prompt_without_new_tokens_has_an_empty_answer(method: Any) -> None:
    (prediction,) = make_language().predict([""], DecodeSettings(method=method, max_new_tokens=0))
    assert prediction.answer == ""
