"""The translation task: its loss, its predictions, its limits."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from manyheads.bundle import Bundle
from manyheads.data import Encoded, Texts
from manyheads.decode import DecodeSettings
from manyheads.errors import DataError, RecipeError
from manyheads.model import Tap, Transformer, disagreement, smoothed_cross_entropy
from manyheads.tasks import Material, Seq2Seq, Seq2SeqLesson, Seq2SeqSettings
from manyheads.tasks.seq2seq import TensorBatch
from manyheads.text import grammar
from manyheads.text.tokenizer import END, PAD

GREEDY = DecodeSettings(method="greedy", max_extra=5)


@pytest.fixture
def lesson(untrained: Bundle, tmp_path: Path) -> Seq2SeqLesson:
    task = untrained.task
    Texts.write(tmp_path / "text", grammar.pairs("en", "zh", "train", 60), 2)
    texts = Texts.open(tmp_path / "text")
    encode = partial(Seq2Seq.encode_rows, tokenizer=task.tokenizer, settings=Seq2SeqSettings())
    Encoded.write(tmp_path / "ids", texts, encode, 63)
    material = Material(Encoded.open(tmp_path / "ids", texts), batch_tokens=200)
    return Seq2SeqLesson(task.model.eval(), task.tokenizer, Seq2SeqSettings(), material)


def test_the_loss_is_the_mean_over_real_target_tokens(lesson: Seq2SeqLesson) -> None:
    """Batched with padding or one by one, the sum over tokens is the same."""
    batch = lesson.make(np.arange(6), seed=0)
    single = [lesson.make(np.array([index]), seed=0) for index in range(6)]
    together = lesson.loss(batch, 1) * batch.n_tokens
    apart = sum(lesson.loss(one, 1) * one.n_tokens for one in single)
    assert batch.n_tokens == sum(one.n_tokens for one in single)
    torch.testing.assert_close(together, apart)


def test_the_loss_is_that_of_the_smoothed_distribution(lesson: Seq2SeqLesson) -> None:
    batch = lesson.make(np.array([3]), seed=0)
    log_p = lesson.model(batch.source, batch.target_read).log_softmax(-1)[0]
    n_classes = log_p.size(-1)
    wanted = torch.full_like(log_p, 0.1 / (n_classes - 1)).scatter(-1, batch.target_written[0, :, None], 0.9)
    torch.testing.assert_close(lesson.loss(batch, 1), -(wanted * log_p).sum(-1).mean())


def fifty_losses(
    lesson: Seq2SeqLesson, loss_of: Callable[[Seq2SeqLesson, TensorBatch, int], torch.Tensor]
) -> list[float]:
    """Of a model that begins anew and learns by this loss, without dropout."""
    torch.manual_seed(1)
    model = Transformer(replace(lesson.model.settings, dropout=0.0)).train()
    lesson = replace(lesson, model=model)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    plans = [plan for epoch in range(50) for plan in lesson.plan(epoch)][:50]
    found = []
    for step, plan in enumerate(plans, start=1):
        loss = loss_of(lesson, lesson.make(plan, seed=step), step)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        found.append(loss.item())
    return found


def slow_loss(lesson: Seq2SeqLesson, batch: TensorBatch, step: int) -> torch.Tensor:
    """Attention in the open, and all logits at once."""
    is_real = batch.target_written != PAD
    logits = lesson.model(
        batch.source,
        batch.target_read,
        source_is_real=batch.source != PAD,
        target_is_real=batch.target_read != PAD,
        tap=Tap(),
    )
    return smoothed_cross_entropy(logits[is_real], batch.target_written[is_real], lesson.settings.smoothing)


def test_fifty_steps_the_fast_way_come_to_the_loss_of_the_slow_way(lesson: Seq2SeqLesson) -> None:
    fast, slow = fifty_losses(lesson, Seq2SeqLesson.loss), fifty_losses(lesson, slow_loss)
    assert fast == pytest.approx(slow, abs=1e-4)
    assert fast[-1] < 0.9 * fast[0]  # it has learnt something, or the comparison would say little


def test_r_drop_adds_the_disagreement_of_two_passes(lesson: Seq2SeqLesson) -> None:
    """With different dropout in each; without dropout there is nothing to disagree on; before its step, one pass."""
    settings = Seq2SeqSettings(consistency=4.0, consistency_after=10)
    strict = replace(lesson, settings=settings)
    batch = lesson.make(np.arange(6), seed=0)
    torch.testing.assert_close(strict.loss(batch, 11), lesson.loss(batch, 11))  # the model is not training

    lesson.model.train()

    def loss(chosen: Seq2SeqLesson, step: int) -> float:
        torch.manual_seed(5)
        return chosen.loss(batch, step).item()

    assert loss(strict, 10) == loss(lesson, 10)
    without = replace(lesson, settings=Seq2SeqSettings(consistency=1e-9))
    assert loss(strict, 11) > loss(without, 11) + 1e-3
    torch.manual_seed(5)
    hidden = lesson.model.hidden(
        batch.twice().source,
        batch.twice().target_read,
        source_is_real=batch.twice().source != PAD,
        target_is_real=batch.twice().target_read != PAD,
    )
    is_real = batch.target_written != PAD
    one, other = (lesson.model.output.logits(half[is_real]) for half in hidden.chunk(2))
    targets = batch.target_written[is_real]
    expected = (
        smoothed_cross_entropy(one, targets, 0.1) + smoothed_cross_entropy(other, targets, 0.1)
    ) / 2 + 2.0 * disagreement(one, other)
    assert loss(strict, 11) == pytest.approx(expected.item(), rel=1e-5)


def test_sampling_changes_the_pieces_with_the_seed_and_with_nothing_else(lesson: Seq2SeqLesson) -> None:
    sampled = replace(lesson, material=replace(lesson.material, sampling=0.2))
    plan = np.arange(20)
    assert torch.equal(sampled.make(plan, seed=1).source, sampled.make(plan, seed=1).source)
    assert len({str(sampled.make(plan, seed=seed).source.tolist()) for seed in range(3)}) == 3
    for row, index in zip(sampled.make(plan, seed=3).source.tolist(), plan.tolist(), strict=True):
        assert lesson.tokenizer.decode([id for id in row if id not in (PAD, END)]) == lesson.material.encoded.text(
            0, index
        )


def test_a_sample_too_long_for_the_model_keeps_its_likeliest_pieces(lesson: Seq2SeqLesson) -> None:
    encoded = lesson.material.encoded
    limit = int(encoded.lengths.max())
    short = Transformer(replace(lesson.model.settings, max_length=limit))
    sampled = replace(lesson, model=short, material=replace(lesson.material, sampling=0.9))
    for seed in range(10):
        batch = sampled.make(np.arange(20), seed=seed)
        assert max(batch.source.size(1), batch.target_read.size(1)) <= limit


def texts(task: Seq2Seq, sources: list[str]) -> list[str]:
    return [candidates[0].text for candidates in task.answers(sources, GREEDY)]


def test_each_text_is_answered_in_its_place_whatever_its_neighbours(untrained: Bundle) -> None:
    sources = ["A cat sleeps.", "", "The two old teachers did not buy the red book yesterday.", "   ", "Who is it?"]
    together = texts(untrained.task, sources)
    assert together == [texts(untrained.task, [source])[0] for source in sources]
    assert together[1] == together[3] == ""
    assert together[0]


def test_samples_are_drawn_by_a_texts_number_wherever_the_texts_are_cut(untrained: Bundle) -> None:
    sources = ["The dog sleeps."] * 4
    whole = [row[0].text for row in untrained.candidates(sources, method="sample")]
    parts = [
        row[0].text
        for start in (0, 2)
        for row in untrained.candidates(sources[start : start + 2], method="sample", first=start)
    ]
    assert whole == parts
    assert len(set(whole)) > 1


def test_a_text_too_long_for_the_model_is_refused_by_name(untrained: Bundle) -> None:
    with pytest.raises(DataError, match=r"text 2 has \d+ pieces; this model reads at most 39\. Split it up"):
        texts(untrained.task, ["short", "word " * 100])


def test_smoothing_out_of_range() -> None:
    with pytest.raises(RecipeError, match=r"task\.smoothing = 1\.0 must be at least 0 and at most 0\.9"):
        Seq2SeqSettings(smoothing=1.0)


def test_a_language_is_a_code() -> None:
    Seq2SeqSettings(source_language="pt-BR", target_language="zh_CN")
    with pytest.raises(RecipeError, match=r'task\.target_language = "Chinese" should be a language code'):
        Seq2SeqSettings(target_language="Chinese")


def test_a_batch_is_described_by_its_first_pairs(lesson: Seq2SeqLesson) -> None:
    plan = lesson.plan(0)[0]
    told = lesson.describe(plan)
    assert told.startswith(f"{len(plan)} pairs, “")
    assert lesson.material.encoded.text(0, int(plan[0]))[:50] in told
    assert lesson.material.encoded.text(1, int(plan[0]))[:50] in told


def test_a_dialogue_is_read_from_a_list_of_turns(tmp_path: Path) -> None:
    rows = [{"turns": ["Hi.", "Hello!"], "reply": "How are you?"}, {"turns": "Bye.", "reply": "See you."}]
    (tmp_path / "chat.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = {"source": "turns", "target": "reply"}
    settings = Seq2SeqSettings(purpose="dialogue", turns=" / ")
    found = list(Seq2Seq.read([str(tmp_path / "chat.jsonl")], columns, settings))
    assert found == [("Hi. / Hello!", "How are you?"), ("Bye.", "See you.")]
    with pytest.raises(DataError, match=r'"turns" is \["Hi\."'):
        list(Seq2Seq.read([str(tmp_path / "chat.jsonl")], columns, Seq2SeqSettings()))


def test_a_summary_is_scored_by_rouge(untrained: Bundle) -> None:
    task = replace(untrained.task, settings=Seq2SeqSettings(purpose="summary", target_language="en"))
    card = task.score([("A cat sleeps.", "A cat."), ("The dog barks.", "A dog.")], GREEDY)
    assert [score.name for score in card.scores] == ["ROUGE-1", "ROUGE-2", "ROUGE-L", "BLEU", "chrF"]
