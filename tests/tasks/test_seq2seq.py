"""Seq2seq: loss, predictions and limits."""

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from manyheads import corpora
from manyheads.bundle import Bundle
from manyheads.data import Encoded, Texts
from manyheads.decode import DecodeSettings, EngineSelector
from manyheads.errors import DataError, RecipeError
from manyheads.model import Tap, Transformer, smoothed_cross_entropy, symmetric_kl
from manyheads.tasks import Seq2Seq, Seq2SeqSettings, Seq2SeqTrainingTask, TrainingData
from manyheads.tasks.seq2seq import TensorBatch
from manyheads.text.tokens.tokenizer import EOS, PAD

from tasks.makers import BLANK_TEXTS

GREEDY = DecodeSettings(method="greedy", max_new_tokens=5)


@pytest.fixture
def training_task(untrained: Bundle, tmp_path: Path) -> Seq2SeqTrainingTask:
    task = untrained.task
    Texts.write(tmp_path / "text", corpora.pairs("en", "zh", "train", 60), 2)
    texts = Texts.open(tmp_path / "text")
    encode = partial(Seq2Seq.encode_rows, tokenizer=task.tokenizer, settings=Seq2SeqSettings())
    Encoded.write(tmp_path / "ids", texts, encode, 63)
    data = TrainingData(Encoded.open(tmp_path / "ids", texts), batch_tokens=200)
    return Seq2SeqTrainingTask(task.model.eval(), task.tokenizer, Seq2SeqSettings(), data)


def test_the_longest_row_that_is_kept_fills_the_model_with_its_eos(training_task: Seq2SeqTrainingTask) -> None:
    settings = training_task.model.settings
    longest = Seq2Seq.max_row_length(settings, Seq2SeqSettings())
    rows = training_task.data.encoded.columns[0]
    index = max(range(len(rows)), key=lambda row: len(rows[row]))
    source = training_task.make(np.array([index]), seed=0).source
    assert longest + source.size(1) - len(rows[index]) == settings.max_length


def test_loss_is_the_mean_over_real_target_tokens(training_task: Seq2SeqTrainingTask) -> None:
    """Batched with padding or one by one, the sum over tokens is the same."""
    batch = training_task.make(np.arange(6), seed=0)
    single = [training_task.make(np.array([index]), seed=0) for index in range(6)]
    together = training_task.loss(batch, 1) * batch.n_tokens
    apart = sum(training_task.loss(one, 1) * one.n_tokens for one in single)
    assert batch.n_tokens == sum(one.n_tokens for one in single)
    torch.testing.assert_close(together, apart)


def test_loss_equals_cross_entropy_with_the_smoothed_distribution(training_task: Seq2SeqTrainingTask) -> None:
    batch = training_task.make(np.array([3]), seed=0)
    log_p = training_task.model(batch.source, batch.target_input).log_softmax(-1)[0]
    n_classes = log_p.size(-1)
    expected = torch.full_like(log_p, 0.1 / (n_classes - 1)).scatter(-1, batch.target_output[0, :, None], 0.9)
    torch.testing.assert_close(training_task.loss(batch, 1), -(expected * log_p).sum(-1).mean())


def fifty_losses(
    training_task: Seq2SeqTrainingTask, loss_of: Callable[[Seq2SeqTrainingTask, TensorBatch, int], torch.Tensor]
) -> list[float]:
    """The losses of fifty steps of a new model trained with this loss, without dropout."""
    torch.manual_seed(1)
    model = Transformer(replace(training_task.model.settings, dropout=0.0)).train()
    training_task = replace(training_task, model=model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    plans = [plan for epoch in range(50) for plan in training_task.plan(epoch)][:50]
    found = []
    for step, plan in enumerate(plans, start=1):
        loss = loss_of(training_task, training_task.make(plan, seed=step), step)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def slow_loss(training_task: Seq2SeqTrainingTask, batch: TensorBatch, step: int) -> torch.Tensor:
    """The loss with explicit attention and all logits at once."""
    is_real = batch.target_output != PAD
    logits = training_task.model(
        batch.source,
        batch.target_input,
        source_is_real=batch.source != PAD,
        target_is_real=batch.target_input != PAD,
        tap=Tap(),
    )
    return smoothed_cross_entropy(logits[is_real], batch.target_output[is_real], training_task.settings.smoothing)


def test_fifty_fused_steps_match_the_explicit_loss(training_task: Seq2SeqTrainingTask) -> None:
    fast, slow = fifty_losses(training_task, Seq2SeqTrainingTask.loss), fifty_losses(training_task, slow_loss)
    assert fast == pytest.approx(slow, abs=1e-4)
    assert fast[-1] < 0.9 * fast[0]  # without progress the comparison would show little


def test_r_drop_adds_the_disagreement_of_two_passes(training_task: Seq2SeqTrainingTask) -> None:
    """Two passes differ by dropout only. Before `consistency_after` there is one pass."""
    settings = Seq2SeqSettings(consistency=4.0, consistency_after=10)
    strict = replace(training_task, settings=settings)
    batch = training_task.make(np.arange(6), seed=0)
    torch.testing.assert_close(strict.loss(batch, 11), training_task.loss(batch, 11))  # the model is not training

    training_task.model.train()

    def loss(chosen: Seq2SeqTrainingTask, step: int) -> float:
        torch.manual_seed(5)
        return chosen.loss(batch, step).item()

    assert loss(strict, 10) == loss(training_task, 10)
    without = replace(training_task, settings=Seq2SeqSettings(consistency=1e-9))
    assert loss(strict, 11) > loss(without, 11) + 1e-3
    torch.manual_seed(5)
    hidden = training_task.model.hidden(
        batch.twice().source,
        batch.twice().target_input,
        source_is_real=batch.twice().source != PAD,
        target_is_real=batch.twice().target_input != PAD,
    )
    is_real = batch.target_output != PAD
    one, other = (training_task.model.output.logits(half[is_real]) for half in hidden.chunk(2))
    targets = batch.target_output[is_real]
    expected = (
        smoothed_cross_entropy(one, targets, 0.1) + smoothed_cross_entropy(other, targets, 0.1)
    ) / 2 + 2.0 * symmetric_kl(one, other)
    assert loss(strict, 11) == pytest.approx(expected.item(), rel=1e-5)


def test_sampled_tokens_depend_on_the_seed_only(training_task: Seq2SeqTrainingTask) -> None:
    sampled = replace(training_task, data=replace(training_task.data, sampling=0.2))
    plan = np.arange(20)
    assert torch.equal(sampled.make(plan, seed=1).source, sampled.make(plan, seed=1).source)
    assert len({str(sampled.make(plan, seed=seed).source.tolist()) for seed in range(3)}) == 3
    for row, index in zip(sampled.make(plan, seed=3).source.tolist(), plan.tolist(), strict=True):
        assert training_task.tokenizer.decode(
            [id for id in row if id not in (PAD, EOS)]
        ) == training_task.data.encoded.text(0, index)


def test_sample_too_long_for_the_model_is_replaced_by_the_likeliest_tokens(training_task: Seq2SeqTrainingTask) -> None:
    encoded = training_task.data.encoded
    limit = int(encoded.lengths.max())
    short = Transformer(replace(training_task.model.settings, max_length=limit))
    sampled = replace(training_task, model=short, data=replace(training_task.data, sampling=0.9))
    for seed in range(10):
        batch = sampled.make(np.arange(20), seed=seed)
        assert max(batch.source.size(1), batch.target_input.size(1)) <= limit


def texts(task: Seq2Seq, sources: list[str]) -> list[str]:
    return [one.answer for one in task.predict(sources, GREEDY)]


def test_predictions_keep_the_order_of_texts_and_ignore_batching(untrained: Bundle) -> None:
    sources = ["A cat sleeps.", "", "The two old teachers did not buy the red book yesterday.", "   ", "Who is it?"]
    together = texts(untrained.task, sources)
    assert together == [texts(untrained.task, [source])[0] for source in sources]
    assert together[1] == together[3] == ""
    assert together[0]


def test_blank_text_has_a_blank_translation(untrained: Bundle) -> None:
    *blank, translation = untrained.predict([*BLANK_TEXTS, "The dog sleeps."])
    assert {*blank} == {""}
    assert translation != ""


def test_samples_depend_on_the_index_of_a_text_only(untrained: Bundle) -> None:
    sources = ["The dog sleeps."] * 4
    whole = [row[0].text for row in untrained.candidates(sources, method="sample")]
    parts = [
        row[0].text
        for start in (0, 2)
        for row in untrained.candidates(sources[start : start + 2], method="sample", first=start)
    ]
    assert whole == parts
    assert len(set(whole)) > 1


def test_only_translations_of_long_texts_are_joined_from_parts(untrained: Bundle) -> None:
    summary = replace(untrained.task, settings=Seq2SeqSettings(purpose="summary"))
    with pytest.raises(DataError, match=r"text 2 has \d+ tokens; this model reads at most 39\. Split it up"):
        texts(summary, ["short", "word " * 100])
    assert not summary.fits("word " * 100)
    untrained.task.check("word " * 100, "Line 1")
    [prediction] = untrained.task.predict(["word " * 100], GREEDY)
    assert len(prediction.parts) >= 3
    assert prediction.parts[0][0] == 0
    assert prediction.parts[-1][1] == 499  # nothing is cut off


def test_smoothing_out_of_range() -> None:
    with pytest.raises(RecipeError, match=r"task\.smoothing = 1\.0 must be at least 0 and at most 0\.9"):
        Seq2SeqSettings(smoothing=1.0)


def test_language_must_be_a_code() -> None:
    Seq2SeqSettings(source_language="pt-BR", target_language="zh_CN")
    with pytest.raises(RecipeError, match=r'task\.target_language = "Chinese" should be a language code'):
        Seq2SeqSettings(target_language="Chinese")


def test_batch_is_described_by_its_first_pairs(training_task: Seq2SeqTrainingTask) -> None:
    plan = training_task.plan(0)[0]
    description = training_task.describe(plan)
    assert description.startswith(f"{len(plan)} pairs, “")
    assert training_task.data.encoded.text(0, int(plan[0]))[:50] in description
    assert training_task.data.encoded.text(1, int(plan[0]))[:50] in description


def test_dialogue_is_read_from_a_list_of_turns(tmp_path: Path) -> None:
    rows = [{"turns": ["Hi.", "Hello!"], "reply": "How are you?"}, {"turns": "Bye.", "reply": "See you."}]
    (tmp_path / "chat.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = {"source": "turns", "target": "reply"}
    settings = Seq2SeqSettings(purpose="dialogue", turns=" / ")
    found = list(Seq2Seq.read([str(tmp_path / "chat.jsonl")], columns, settings))
    assert found == [("Hi. / Hello!", "How are you?"), ("Bye.", "See you.")]
    with pytest.raises(DataError, match=r'"turns" is \["Hi\."'):
        list(Seq2Seq.read([str(tmp_path / "chat.jsonl")], columns, Seq2SeqSettings()))


def test_summary_is_scored_with_rouge(untrained: Bundle) -> None:
    task = replace(untrained.task, settings=Seq2SeqSettings(purpose="summary", target_language="en"))
    card = task.score([("A cat sleeps.", "A cat."), ("The dog barks.", "A dog.")], GREEDY)
    assert [score.name for score in card.scores] == ["ROUGE-1", "ROUGE-2", "ROUGE-L", "BLEU", "chrF"]


def make_looping(bundle: Bundle, *, can_end: bool = True) -> Seq2Seq:
    """A model that always repeats one token; if it can end, EOS is second best."""
    task = bundle.task
    assert isinstance(task, Seq2Seq)
    model, cat = deepcopy(task.model), task.tokenizer.encode("猫")[-1]
    norm = model.decoder[-1].feed_forward_sublayer.norm
    with torch.no_grad():
        model.output.weight[cat] *= 10.0
        model.output.weight[EOS] = model.output.weight[cat] * (0.5 if can_end else -1.0)
        norm.weight.zero_()
        norm.bias.copy_(model.output.weight[cat])
    return replace(task, model=model)


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
@pytest.mark.parametrize("engine", ["torch", "native"])
def test_a_loop_is_decoded_again_without_repetition(untrained: Bundle, method: str, engine: str) -> None:
    looping = make_looping(untrained)
    task = looping.with_engine(EngineSelector(engine))
    how = DecodeSettings(method=method, max_new_tokens=12, temperature=0.01)  # type: ignore[arg-type]
    texts = ["The cat.", "", "Two cats are sleeping."]
    raw, guarded = task.predict(texts, replace(how, repetition_guard=False)), task.predict(texts, how)
    assert [len(one.answer) >= 11 for one in raw] == [True, False, True]
    assert [len(one.answer) for one in guarded] == [3, 0, 3]  # no sequence of three tokens twice
    assert [list(one.warnings) for one in guarded] == [["repetition"], [], ["repetition"]]
    assert [one.warnings for one in raw] == [one.warnings for one in guarded]  # it is reported in either case
    assert guarded == looping.predict(texts, how)


def test_output_is_kept_if_the_second_search_does_not_end(untrained: Bundle) -> None:
    task, how = make_looping(untrained, can_end=False), DecodeSettings(method="greedy", max_new_tokens=12)
    [raw], [guarded] = (task.predict(["The cat."], replace(how, repetition_guard=on)) for on in (False, True))
    assert not raw.candidates[0].finished
    assert guarded == raw
    assert guarded.warnings == ["repetition"]


def test_unusual_length_is_reported(untrained: Bundle) -> None:
    assert isinstance(untrained.task, Seq2Seq)
    rows = [("a b c d", "a b"), ("The cat.", "猫。")] * 500
    task = Seq2Seq.create(untrained.task.model, untrained.task.tokenizer, untrained.task.settings, rows)
    sizes = [[len(ids) + 1 for ids in task.tokenizer.encode_batch(row)] for row in rows[:2]]
    assert task.length_ratio == pytest.approx(max(target / source for source, target in sizes))
    restored = Seq2Seq.restore(task.model, task.tokenizer, task.settings, task.metadata())
    assert restored.length_ratio == task.length_ratio
    usual = 2 * task.length_ratio * sizes[1][0] + 10  # more than twice as long, and a few tokens
    for n_tokens, expected in ((int(usual) - 1, []), (int(usual), ["length"])):
        how = DecodeSettings(method="greedy", max_new_tokens=n_tokens)  # an untrained model does not end
        [prediction] = restored.predict(["The cat."], how)
        assert [warning for warning in prediction.warnings if warning == "length"] == expected
    [unknown] = untrained.task.predict(["The cat."], DecodeSettings(method="greedy", max_new_tokens=39))
    assert "length" not in unknown.warnings
