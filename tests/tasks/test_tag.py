"""Tagging: words and tokens, spans of raw text, intents."""

import json
import random
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from manyheads.decode import DecodeSettings
from manyheads.errors import DataError, RecipeError
from manyheads.settings import build
from manyheads.tasks import Tag, TagSettings
from manyheads.tasks.calibration import Calibration
from manyheads.tasks.tag.tag_training import NgramTagger, swap_mentions
from manyheads.tasks.tag.tagging import TaggedWords
from manyheads.text.reading.tag_schemes import tags_to_spans
from manyheads.training import Trainer, TrainSettings

from tasks.makers import BLANK_TEXTS
from tasks.small import make_task, make_training_data

NAMES = ("Ada", "Ben Ng", "Cleo van Dyck", "Dee")
TOWNS = ("Rome", "New York", "Oslo")
ANY = DecodeSettings()


def tags(words: str, label: str) -> str:
    return " ".join(f"{'B' if position == 0 else 'I'}-{label}" for position in range(len(words.split(" "))))


ROWS = [
    row
    for name in NAMES
    for town in TOWNS
    for row in (
        (f"{name} lives in {town} .", f"{tags(name, 'PER')} O O {tags(town, 'LOC')} O", "state"),
        (f"who knows {name} ?", f"O O {tags(name, 'PER')} O", "ask"),
        (f"{town} rains .", f"{tags(town, 'LOC')} O O", "state"),
    )
]
PLAIN = [row[:2] for row in ROWS]
JOINT = TagSettings(intents=True)


@pytest.fixture
def task() -> Tag:
    return make_task(Tag, JOINT, ROWS)


def test_tokens_of_words_are_those_of_the_joined_text(task: Tag) -> None:
    texts = [*(row[0] for row in ROWS), "▁ odd ▁▁word 😀 ， 吴重阳 a▁", "Hello ▁x"]
    ids, sizes = Tag.encode_rows([(text, "") for text in texts], task.tokenizer, JOINT)
    for text, tokens, counts in zip(texts, ids, sizes, strict=True):
        assert len(counts) == len(text.split(" "))
        assert sum(counts) == len(tokens)
        if "▁" not in text:  # SentencePiece adds no space before its own space character
            assert tokens == task.tokenizer.encode(text)


def test_labels_and_intents_are_restored_from_metadata(task: Tag) -> None:
    assert task.states.kinds == ("LOC", "PER")
    assert task.intents == ("ask", "state")
    metadata = json.loads(json.dumps(replace(task, calibration=Calibration(1.5, 20)).metadata()))
    again = Tag.restore(task.model, task.tokenizer, task.settings, metadata)
    again.module.load_state_dict(task.module.state_dict())
    again.module.eval()
    assert again.metadata() == metadata
    assert again.predict(["Ada lives ."], ANY)[0].spans == task.predict(["Ada lives ."], ANY)[0].spans


@pytest.mark.parametrize("decoder", ["crf", "constrained"])
def test_tagger_learns_spans_and_intents(decoder: str, tmp_path: Path) -> None:
    settings = TagSettings(intents=True, decoder=decoder, swapping=0.3)  # type: ignore[arg-type]
    task = make_task(Tag, settings, ROWS)
    data = make_training_data(task, ROWS, tmp_path)
    train = TrainSettings(steps=60, learning_rate=4e-3, warmup=10, batch_tokens=300)
    losses = [step.loss for step in Trainer(task.module, task.training_task(data), train, width=32, seed=1).run()]
    task.module.eval()
    assert losses[-1] < losses[0] / 4
    card = task.score(ROWS, ANY)
    *scores, error = card.scores
    assert {score.name: score.value for score in scores} == {
        "F1": 100.0, "precision": 100.0, "recall": 100.0, "intent accuracy": 100.0, "exact sentences": 100.0,
    }  # fmt: skip
    assert error.name == "calibration error of intents" and 0 < error.value < 30
    calibrated = task.calibrate(ROWS)
    assert calibrated.calibration.temperature != 1.0
    assert max(calibrated.predict(["Ada lives ."], ANY)[0].probabilities.values()) < 1 - 0.4 / len(ROWS)
    result = task.validate(ROWS[:2], "F1")
    assert result.samples[0] == (ROWS[0][0], "Ada (PER); Rome (LOC)", "Ada (PER); Rome (LOC)")
    (found,) = task.predict(["  Cleo van Dyck  lives in New York."], ANY)
    assert [(span.text, span.label) for span in found.spans] == [("Cleo van Dyck", "PER"), ("New York", "LOC")]
    assert all(found.text[span.start : span.end] == span.text for span in found.spans)
    assert all(0.5 < span.probability <= 1.0 for span in found.spans)
    assert found.line() == "state\t  [Cleo van Dyck](PER)  lives in [New York](LOC)."
    assert json.loads(json.dumps(asdict(found)))["spans"][0]["start"] == 2


def test_batch_padding_and_order_change_no_prediction(task: Tag) -> None:
    texts = [row[0].split(" ") for row in ROWS[:12]] + [["Ada"] * 90, ["x"]]
    together = task.word_tagger.tag(texts)
    backwards = task.word_tagger.tag(texts[::-1])[::-1]
    for text, one, other in zip(texts, together, backwards, strict=True):
        (alone,) = task.word_tagger.tag([text])
        for found in (other, alone):
            assert one.path == found.path
            torch.testing.assert_close(one.scores, found.scores, atol=1e-5, rtol=0)
            torch.testing.assert_close(one.intent_logits, found.intent_logits, atol=1e-5, rtol=0)


def test_untrained_tagger_predicts_valid_spans(task: Tag) -> None:
    torch.nn.init.normal_(task.module.output.weight, std=3.0)
    for found in task.word_tagger.tag([row[0].split(" ") for row in ROWS]):
        names = [task.states.names[state] for state in found.path]
        assert tags_to_spans(names, "BIOES") == task.states.spans(found.path)  # raises where they are not


def test_span_probability_equals_enumeration(task: Tag) -> None:
    torch.nn.init.normal_(task.module.crf.transitions)
    torch.nn.init.normal_(task.module.output.weight, std=1.0)
    words = ["Ada", "lives", "New", "York"]
    (found,) = task.word_tagger.tag([words])
    spans = task.states.spans(found.path)
    assert spans
    total = through_span = 0.0
    for path in np.ndindex(*[len(task.states)] * len(words)):
        try:
            is_here = spans[0] in tags_to_spans([task.states.names[state] for state in path], "BIOES")
        except DataError:
            continue
        scored = sum(found.scores[position, state].item() for position, state in enumerate(path))
        scored += sum(task.module.crf.transitions[path[position], path[position + 1]].item() for position in range(3))
        total += np.exp(scored)
        through_span += np.exp(scored) * is_here
    assert task.word_tagger.span_probabilities(found)[0] == pytest.approx(through_span / total, rel=1e-4)


def test_swapping_keeps_labels_and_everything_outside() -> None:
    mentions = {"PER": [("Eve", "X", "Y")], "LOC": [("Bern",)]}
    words = ["Ada", "met", "Ben", "Ng", "in", "New", "York", "today"]
    tags = ["B-PER", "O", "B-PER", "I-PER", "O", "B-LOC", "I-LOC", "O"]
    assert swap_mentions(words, tags, mentions, 0.0, random.Random(1)) == (words, tags)
    new_words, new_tags = swap_mentions(words, tags, mentions, 1.0, random.Random(1))
    assert " ".join(new_words) == "Eve X Y met Eve X Y in Bern today"
    assert " ".join(new_tags) == "B-PER I-PER I-PER O B-PER I-PER I-PER O B-LOC O"


def test_batch_depends_on_plan_and_seed_only(tmp_path: Path) -> None:
    task = make_task(Tag, TagSettings(swapping=0.5), PLAIN)
    training_task = task.training_task(make_training_data(task, PLAIN, tmp_path, sampling=0.2))
    plan = np.arange(len(PLAIN))
    one, same, other = (training_task.make(plan, seed) for seed in (1, 1, 2))
    assert one.read.ids.equal(same.read.ids) and one.paths.equal(same.paths)
    assert not (one.read.ids.shape == other.read.ids.shape and one.read.ids.equal(other.read.ids))
    plain = replace(task, settings=TagSettings()).training_task(replace(training_task.data, sampling=0.0)).make(plan, 1)
    assert plain.n_tokens == sum(len(row[0].split(" ")) for row in PLAIN)
    assert plain.paths[plain.read.is_real].tolist() == [
        state for row in PLAIN for state in task.states.path_of(row[1].split(" "))
    ]
    assert training_task.describe(plan).startswith("36 texts, “Ada lives in Rome .”")


def test_swapped_rows_that_are_too_long_stay_unchanged(tmp_path: Path) -> None:
    rows = [*PLAIN, ("who ?", "B-PER O"), (" ".join(["Ada"] * 12), " ".join(["B-PER"] + ["I-PER"] * 11))]
    task = make_task(Tag, TagSettings(swapping=1.0), rows, max_length=40)
    training_task = task.training_task(make_training_data(task, rows, tmp_path))
    for seed in range(5):
        batch = training_task.make(np.arange(len(training_task.data.encoded)), seed)
        assert batch.read.ids.size(1) <= 40


@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_word_longer_than_the_model_can_read(positions: str) -> None:
    task = make_task(Tag, TagSettings(), PLAIN, max_length=12, positions=positions)
    short, long = task.predict(["Ada " + "x" * n + " Bob" for n in (200, 20_000)], ANY)
    assert [(span.start, span.label, span.probability) for span in short.spans] == [
        (span.start if span.start < 200 else span.start - 19_800, span.label, span.probability) for span in long.spans
    ]


def test_blank_text_has_no_spans(task: Tag) -> None:
    *blank, _ = task.predict([*BLANK_TEXTS, "Ada"], ANY)
    assert {one.spans for one in blank} == {()}
    assert {one.label for one in blank} == {""}
    assert [one.line() for one in blank] == [text.replace("\r", " ") for text in BLANK_TEXTS]


def test_unknown_gold_labels_and_intents_are_counted(task: Tag) -> None:
    rows = [*ROWS[:5], ("Acme rains .", "B-ORG O O", "grumble")]
    card = task.score(rows, ANY)
    assert card.n_unknown == 1
    assert task.calibrate(rows).calibration.n_rows == 5


def test_rows_without_spans_or_with_a_single_intent_are_refused() -> None:
    with pytest.raises(DataError, match="every tag is O"):
        make_task(Tag, TagSettings(), [("a b", "O O")])
    with pytest.raises(DataError, match=r"Every row has the intent “x”. Set task\.intents = false"):
        make_task(Tag, JOINT, [("a b", "O B-X", "x"), ("b", "O", "x")])


def test_invalid_settings_are_refused() -> None:
    with pytest.raises(RecipeError, match=r"task\.swapping = 2\.0 must be at least 0 and at most 1"):
        TagSettings(swapping=2.0)
    with pytest.raises(RecipeError, match=r'task\.decoder = "beam" is not one of "constrained", "crf"'):
        build(TagSettings, {"decoder": "beam"}, "task.")


def test_ngrams_of_a_word_ignore_padding() -> None:
    ngrams = NgramTagger(3, max_n=3, dropout=0.5).eval()
    names = torch.tensor([[5, 7, 9, 5]])
    ngrams.count([names, names])
    with torch.no_grad():
        ngrams.evidence.normal_()
    padded = torch.tensor([[5, 7, 9, 5, 0, 0], [8, 8, 8, 8, 8, 8]])
    torch.testing.assert_close(ngrams(padded)[:1, :4], ngrams(names))
    assert ngrams.buckets(names).shape == (1, 4, 6)  # itself, two pairs, three triples
    assert not torch.equal(ngrams(names)[0, 0], ngrams(names)[0, 3])  # the same word with other neighbors


def test_ngrams_seen_once_are_ignored() -> None:
    ngrams = NgramTagger(3, max_n=2, dropout=0.0)
    ngrams.count([torch.tensor([[5, 7]]), torch.tensor([[5, 9]])])
    with torch.no_grad():
        ngrams.evidence.fill_(1.0)
    scores = ngrams(torch.tensor([[5, 7], [9, 5]]))[:, :, 0]
    # 5 occurs twice at the beginning of a text, as a unigram and as a bigram with padding; 7 once; 9 before 5 never.
    assert scores.tolist() == [[2.0, 0.0], [0.0, 1.0]]


def test_ngrams_alone_learn_from_the_next_word() -> None:
    torch.manual_seed(0)
    ngrams = NgramTagger(2, max_n=2, dropout=0.2)
    names = torch.randint(1, 6, (200, 6))
    targets = (torch.nn.functional.pad(names[:, 1:], (0, 1)) == 3).long()  # whether the next one is 3
    ngrams.count([names])
    optimizer = torch.optim.Adam(ngrams.parameters(), lr=0.1)
    for _ in range(60):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(ngrams(names).flatten(0, 1), targets.flatten()).backward()
        optimizer.step()
    assert torch.equal(ngrams.eval()(names).argmax(-1), targets)


def test_tagger_with_ngrams_is_restored_from_its_weights() -> None:
    settings = TagSettings(ngrams=2)
    task = make_task(Tag, settings, PLAIN)
    with torch.no_grad():
        task.module.ngrams.evidence.normal_()
    again = Tag.restore(task.model, task.tokenizer, settings, task.metadata())
    again.module.load_state_dict(task.module.state_dict())
    again.module.eval()
    texts = ["Ada lives in Rome .", "who knows Ben Ng ?"]
    for one, other in zip(
        task.word_tagger.tag([t.split() for t in texts]), again.word_tagger.tag([t.split() for t in texts]), strict=True
    ):
        torch.testing.assert_close(one.scores, other.scores)
    with pytest.raises(TypeError, match="read twice"):
        make_task(Tag, settings, iter(PLAIN))


def test_ngrams_and_their_dropout_have_bounds() -> None:
    with pytest.raises(RecipeError, match=r"task\.ngrams = 6 must be at least 0 and at most 5"):
        TagSettings(ngrams=6)
    with pytest.raises(RecipeError, match=r"task\.ngram_dropout = 1\.0 must be"):
        TagSettings(ngram_dropout=1.0)


def test_rows_that_calibrated_are_scored_by_cross_fitting(task: Tag) -> None:
    own, crossed = (score(ROWS, ANY) for score in (task.calibrate(ROWS).score, task.calibrate(ROWS).score_calibrated))
    assert [score.value for score in crossed.scores[:-1]] == [score.value for score in own.scores[:-1]]
    assert crossed.scores[-1].value != own.scores[-1].value
    without = make_task(Tag, TagSettings(baseline=False), PLAIN)
    assert without.score_calibrated(PLAIN, ANY) == without.score(PLAIN, ANY)


def test_a_text_is_scored_by_a_fit_to_the_other_half(task: Tag, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tags and the intent of a text must not reach its own prediction: neither shares nor temperature."""
    found: list[list[TaggedWords]] = []
    card = Tag._card

    def record(task: Tag, rows: Any, predicted: Any) -> object:
        found.append(predicted)
        return card(task, rows, predicted)

    monkeypatch.setattr(Tag, "_card", record)
    for half in (0, 1):
        changed = [
            (text, " ".join("O" for _ in tags.split(" ")), "ask") if row % 2 == half else (text, tags, intent)
            for row, (text, tags, intent) in enumerate(ROWS)
        ]
        found.clear()
        for rows in (ROWS, changed):
            task.score_calibrated(rows, ANY)
        before, after = ([(words.scores.tolist(), words.intents) for words in predicted] for predicted in found)
        assert before[half::2] == after[half::2]
        assert before[1 - half :: 2] != after[1 - half :: 2]
