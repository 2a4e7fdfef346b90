"""The linear CRF of a tagger: what it learns, how it is restored, and its part of the answer."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from manyheads.bundle import Bundle, load
from manyheads.compress.head_removal import remove_heads
from manyheads.decode import DecodeSettings
from manyheads.settings import to_table
from manyheads.tasks import LabelingTask, Tag, TagSettings
from manyheads.tasks.tag import linear_tagger
from manyheads.tasks.tag.crf import States
from manyheads.tasks.tag.linear_tagger import LinearTagger
from manyheads.tasks.tag.tagging import Scores, Shares

from tasks.small import make_task
from tasks.test_tag import PLAIN, ROWS

ANY = DecodeSettings()
TEXTS = [row[0].split(" ") for row in ROWS]
STATES = States(["LOC", "PER"])
NEW = ["Ada", "rains", "in", "Narvik", "."]


def fit(rows: list[tuple[str, ...]], *, are_characters: bool = False) -> LinearTagger:
    paths = [STATES.path_of(row[1].split(" ")) for row in rows]
    intents = [int(row[2] == "state") for row in rows if len(row) > 2]
    texts = [row[0].split(" ") for row in rows]
    n_intents = 2 if intents else 0
    return LinearTagger.fit(texts, paths, STATES, intents, n_intents, are_characters=are_characters)


@pytest.mark.parametrize("are_characters", [False, True])
def test_tags_and_intents_are_learned(are_characters: bool) -> None:
    linear = fit(ROWS, are_characters=are_characters)
    words, intents = linear.scores(TEXTS)
    expected = [STATES.path_of(row[1].split(" ")) for row in ROWS]
    assert [own.argmax(1).tolist() for own in words] == expected
    assert intents.argmax(1).tolist() == [int(row[2] == "state") for row in ROWS]
    assert len(linear.weight) == len(linear.features) + 1
    assert not linear.weight[-1].any()


def test_scores_do_not_depend_on_other_texts() -> None:
    linear = fit(ROWS)
    together, intents = linear.scores([*TEXTS, NEW, []])
    alone, own_intents = linear.scores([NEW])
    torch.testing.assert_close(together[-2], alone[0])
    torch.testing.assert_close(intents[-2], own_intents[0])
    assert together[-1].shape == (0, len(STATES)) and not intents[-1].any()


def test_fitting_is_deterministic_and_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    one, other = fit(ROWS), fit(ROWS)
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(one.weight, other.weight) and torch.equal(one.transitions, other.transitions)


def test_it_is_restored_from_its_tensors() -> None:
    linear = fit(ROWS)
    again = LinearTagger.from_tensors(linear.tensors, len(STATES), 2, are_characters=False)
    assert torch.equal(linear.scores([NEW])[0][0], again.scores([NEW])[0][0])
    assert torch.equal(linear.scores([NEW])[1], again.scores([NEW])[1])
    features = linear.tensors["features"]
    for wrong, message in (
        ({"weight": features}, "the tensors must be features"),
        ({"more": features}, "the tensors must be features"),
        ({"features": features.flip(0)}, "features must be sorted"),
    ):
        with pytest.raises(ValueError, match=message):
            LinearTagger.from_tensors(linear.tensors | wrong, len(STATES), 2, are_characters=False)


def test_long_texts_are_learned_in_parts_and_many_states_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(" ".join(row[0] for row in ROWS), " ".join(row[1] for row in ROWS))]
    monkeypatch.setattr(linear_tagger, "_LONGEST", 7)
    monkeypatch.setattr(linear_tagger, "_MAX_CHAIN_STATES", 2)
    linear = fit(rows)
    assert linear.scores([rows[0][0].split(" ")])[0][0].argmax(1).tolist() == STATES.path_of(rows[0][1].split(" "))
    assert not linear.transitions.any()


def test_frequent_features_are_kept_if_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_tagger, "_MAX_NUMBERS", 50 * len(STATES))
    monkeypatch.setattr(linear_tagger, "_MIN_WEIGHT", 0.0)
    assert len(fit([row[:2] for row in ROWS]).features) == 50


def test_before_calibration_it_validates_but_does_not_answer() -> None:
    task = make_task(Tag, TagSettings(), PLAIN)
    assert task.validate(PLAIN, "F1").score == 100.0  # the Transformer is not trained
    assert task.score(PLAIN, ANY).scores[0].value < 60.0
    assert task.shares == Shares(0.0, 0.0)


def test_calibration_makes_it_part_of_the_bundle(tmp_path: Path) -> None:
    task = make_task(Tag, TagSettings(intents=True), ROWS).calibrate(ROWS)
    assert isinstance(task, LabelingTask) and task.baseline_name
    assert task.baseline_name == "linear CRF"
    assert task.baseline_tally(ROWS).value == 100.0
    assert 0.0 < task.baseline_share(ROWS) <= 1.0
    assert replace(task, shares=Shares(0.0, 0.0)).baseline_share(ROWS) == 0.0
    assert task.tally(ROWS, ANY).value == 100.0
    Bundle(task, ANY, {"task": to_table(task.settings)}).save(tmp_path / "bundle")
    again = load(tmp_path / "bundle").task
    assert again.metadata() == task.metadata()
    texts = ["Ada lives in Narvik .", "who knows Oslo ?"]
    assert again.predict(texts, ANY) == task.predict(texts, ANY)
    assert again.baseline_tally(ROWS).value == 100.0


def test_shares_follow_the_better_part() -> None:
    task = make_task(Tag, TagSettings(), PLAIN)
    torch.nn.init.normal_(task.module.output.weight, std=30.0)  # a Transformer that is wrong, and certain
    assert task.calibrate(PLAIN).shares.tags >= 0.8
    task.linear.weight.zero_()
    task.linear.transitions.zero_()
    nothing = task.calibrate(PLAIN)
    with_it, without = (replace(nothing, shares=Shares(share, share)).tally(PLAIN, ANY) for share in (0.5, 0.0))
    assert with_it.value == without.value  # it has no opinion
    for share in (-0.1, 1.1):
        with pytest.raises(ValueError, match=r"metadata\.shares must be"):
            Shares(share, 0.5)


def test_one_row_is_scored_without_another_to_choose_shares_by() -> None:
    task = make_task(Tag, TagSettings(), PLAIN)
    assert task.score_calibrated(PLAIN[:1], ANY).scores[0].value == 100.0
    assert task.calibrate([]).shares == Shares(0.5, 0.5)


def test_it_can_be_turned_off() -> None:
    task = make_task(Tag, TagSettings(baseline=False), PLAIN)
    assert task.linear is None and task.baseline_name == ""
    assert task.calibrate(PLAIN) is task
    with pytest.raises(ValueError, match=r"task\.baseline is false"):
        task.baseline_tally(PLAIN)


def test_every_word_has_a_tag_of_its_own() -> None:
    rows = [("the cat sleeps", "B-DET B-NOUN B-VERB"), ("a dog runs", "B-DET B-NOUN B-VERB")] * 4
    task = make_task(Tag, TagSettings(), rows)
    assert task.states.names == ("DET", "NOUN", "VERB")
    task = task.calibrate(rows)
    assert [score.name for score in task.score(rows, ANY).scores] == ["accuracy", "exact sentences"]
    tally = task.tally(rows, ANY)
    assert (tally.name, tally.value) == ("accuracy", 100.0)
    (found,) = task.predict(["the dog sleeps"], ANY)
    assert [span.label for span in found.spans] == ["DET", "NOUN", "VERB"]
    again = Tag.restore(task.model, task.tokenizer, task.settings, json.loads(json.dumps(task.metadata())))
    assert again.states.is_every_word


def test_pruned_tagger_keeps_its_baseline() -> None:
    task = make_task(Tag, TagSettings(), PLAIN).calibrate(PLAIN)
    smaller = remove_heads(task, ["encoder.0.self/1"])
    assert smaller.baseline_tally(PLAIN).value == task.baseline_tally(PLAIN).value == 100.0
    assert smaller.shares == task.shares


def test_scores_and_transitions_are_mixed_by_the_shares() -> None:
    own, linear = (Scores([torch.randn(4, 9), torch.randn(2, 9)], torch.randn(2, 3)) for _ in range(2))
    mixed = own.mixed(linear, Shares(tags=0.25, intents=0.75))
    for words, one, other in zip(mixed.words, own.words, linear.words, strict=True):
        torch.testing.assert_close(words, 0.75 * one + 0.25 * other)
    torch.testing.assert_close(mixed.intents, 0.25 * own.intents + 0.75 * linear.intents)

    task = replace(make_task(Tag, TagSettings(intents=True), ROWS), shares=Shares(tags=0.25, intents=0.75))
    torch.nn.init.normal_(task.module.crf.transitions)
    torch.nn.init.normal_(task.linear.transitions)
    expected = 0.75 * task.module.crf.transitions.detach() + 0.25 * task.linear.transitions
    torch.testing.assert_close(task.word_tagger.crf.transitions, expected)


def test_transitions_of_the_linear_tagger_decide_with_its_share() -> None:
    """Scores leave the second word open; transitions of the linear tagger continue a span, the others end it."""
    task = make_task(Tag, TagSettings(), PLAIN)
    for transitions in (task.module.crf.transitions.data, task.linear.transitions):
        transitions.zero_()
    begin, inside = STATES.path_of(["B-PER", "I-PER", "I-PER"])[:2]
    single = STATES.path_of(["B-PER", "O"])[0]
    task.linear.transitions[begin, inside] = 8.0
    task.module.crf.transitions.data[single, single] = 5.0
    scores = Scores([torch.zeros(3, len(STATES))], torch.zeros(1, 0))
    lengths = [
        len(replace(task, shares=Shares(share, 0.0)).word_tagger.decode(scores, scores)[0].spans)
        for share in (0.0, 1.0)
    ]
    assert lengths == [3, 1]


def test_tags_and_intents_have_shares_of_their_own() -> None:
    """The linear tagger is right about tags and wrong about intents, the Transformer the other way round."""
    task = make_task(Tag, TagSettings(intents=True), ROWS)
    right, _ = task.linear.scores(TEXTS)
    intents = torch.tensor([[10.0 if row[2] == name else 0.0 for name in task.intents] for row in ROWS])
    wrong = [-10 * words for words in right]
    shares = task._best_shares(ROWS, Scores(wrong, intents), Scores(right, -intents))
    assert shares.tags >= 0.8 and shares.intents <= 0.2


def test_intents_are_scored_by_the_sum_over_the_root_of_the_number_of_features() -> None:
    weight = torch.tensor([[1.0, 0.0], [2.0, 4.0], [5.0, 1.0], [0.0, 0.0]])
    bags = [torch.tensor([0, 1, 2]), torch.tensor([], dtype=torch.long), torch.tensor([1])]
    found = linear_tagger._score_bags(bags, weight)
    torch.testing.assert_close(
        found, torch.tensor([[8.0, 5.0], [0.0, 0.0], [2.0, 4.0]]) / torch.tensor([3.0, 1, 1])[:, None].sqrt()
    )
    assert linear_tagger._score_bags([], weight).shape == (0, 2)
    assert not linear_tagger._score_bags([bags[1]], weight).any()


def test_features_that_are_not_known_have_the_last_row() -> None:
    known = np.array([3, 5, 9], dtype=np.uint64)
    assert linear_tagger._find(np.array([[5, 4], [9, 10]], dtype=np.uint64), known).tolist() == [[1, 3], [2, 3]]
    assert linear_tagger._find(known, known[:0]).tolist() == [0, 0, 0]  # without features it is the only row


def test_an_update_adds_up_what_the_rows_of_a_feature_have_in_common_and_keeps_the_last_at_0() -> None:
    weight = torch.zeros(4, 1)
    optimizer = linear_tagger._AdaGrad(weight)
    before = optimizer.squares.clone()
    optimizer.update_bags(torch.tensor([[0, 3], [0, 1]]), torch.tensor([[1.0], [2.0]]), rate=0.5)
    summed = torch.tensor([3.0, 2.0])  # of features 0 and 1
    expected = -0.5 * summed / (before[:2, 0] + summed**2).sqrt()
    torch.testing.assert_close(weight[:, 0], torch.cat([expected, torch.zeros(2)]))
