"""Classification: training, predictions and errors."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from manyheads.decode import DecodeSettings
from manyheads.errors import DataError, RecipeError
from manyheads.settings import build
from manyheads.tasks import Classify, ClassifySettings, TrainingData
from manyheads.tasks.calibration import Calibration
from manyheads.tasks.classify.ngram_svm import Mixture
from manyheads.training import Trainer, TrainSettings

from tasks.makers import BLANK_TEXTS
from tasks.small import make_task, make_training_data

ROWS = [
    (f"{start} {noun} was {judgement} {end}".strip(), label)
    for label, judgements in (("good", ("lovely", "great")), ("bad", ("awful", "dull")))
    for judgement in judgements
    for noun in ("film", "hotel", "book", "meal")
    for start in ("the", "our")
    for end in ("", "indeed", "on the whole of it")
]
SEVERAL = [
    ("red and round", "color|shape"), ("red", "color"), ("round", "shape"), ("nothing", ""), ("blue", "color"),
    ("square", "shape"), ("blue and square", "shape|color"), ("heavy", ""),
]  # fmt: skip
ANY = DecodeSettings()


@pytest.fixture
def task() -> Classify:
    return make_task(Classify, ClassifySettings(), ROWS)


def test_labels_are_those_of_the_rows_and_are_restored_from_metadata(task: Classify) -> None:
    assert task.labels == ("bad", "good")
    assert task.counts == (48, 48)
    metadata = json.loads(json.dumps(replace(task, calibration=Calibration(1.5, 20)).metadata()))
    again = Classify.restore(task.model, task.tokenizer, task.settings, metadata)
    again.module.load_state_dict(task.module.state_dict())
    again.module.eval()
    assert (again.labels, again.counts, again.calibration) == (task.labels, task.counts, Calibration(1.5, 20))
    assert again.logits(["a film"]).equal(task.logits(["a film"]))


def test_batch_padding_and_order_change_no_prediction(task: Classify) -> None:
    texts = [row[0] for row in ROWS[:20]] + ["film " * 200, "", "x"]
    together = task.probabilities(texts)
    backwards = task.probabilities(texts[::-1])[::-1]
    alone = np.concatenate([task.probabilities([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose(together, backwards, atol=1e-5)


def test_logits_of_a_long_text_are_averaged_over_windows(task: Classify) -> None:
    text = " ".join(f"{noun} number {number}" for number in range(60) for noun in ("film", "hotel"))
    ids = task.tokenizer.encode(text)
    assert len(ids) > 2 * task.limit
    parts = [ids[start : start + task.limit] for start in range(0, len(ids) - task.limit // 2, (task.limit + 1) // 2)]
    with torch.no_grad():
        mean = torch.stack([task.module(task.to_ids([part]))[0] for part in parts]).mean(0)
    torch.testing.assert_close(task.logits([text])[0], mean, atol=1e-5, rtol=0)


def learn(task: Classify, data: TrainingData, steps: int = 40) -> list[float]:
    settings = TrainSettings(steps=steps, learning_rate=3e-3, warmup=10, batch_tokens=300)
    trainer = Trainer(task.module, task.training_task(data), settings, width=32, seed=1)
    losses = [step.loss for step in trainer.run()]
    task.module.eval()
    return losses


def test_classifier_learns_labels(task: Classify, tmp_path: Path) -> None:
    losses = learn(task, make_training_data(task, ROWS, tmp_path))
    assert losses[-1] < 0.4 < 0.6 < losses[0]
    card = task.score(ROWS, ANY)
    assert {score.name: score.value for score in card.scores}["accuracy"] == 100.0
    assert task.validate(ROWS[:5], "accuracy").score == 100.0
    finished = task.calibrate(ROWS)
    assert finished.calibration.temperature != 1.0
    assert finished.calibration.n_rows == len(ROWS)
    best = finished.predict(["the film was awful"], ANY)[0]
    assert best.labels == ("bad",) and best.answer == "bad"
    assert list(best.probabilities) == ["bad", "good"]
    assert sum(best.probabilities.values()) == pytest.approx(1.0)
    assert best.line() == f"bad\t{best.probability:.4f}"
    assert json.loads(json.dumps(asdict(best)))["labels"] == ["bad"]


def test_mixture_of_transformer_and_linear_classifier(task: Classify) -> None:
    texts = ["the film was awful", "our hotel was great"]
    transformer, linear = task.transformer_logits(texts), task.linear_logits(texts)
    assert linear.argmax(-1).tolist() == [0, 1]  # without any training
    assert task.logits(texts).equal(transformer)  # until it is calibrated
    mixed = replace(task, mixture=Mixture(0.25, 2.0, 0.5))
    torch.testing.assert_close(mixed.logits(texts), 0.75 * transformer / 2.0 + 0.25 * linear / 0.5)
    finished = task.calibrate(ROWS)
    assert finished.mixture.share > 0.5  # the Transformer is not trained yet
    assert [prediction.answer for prediction in finished.predict(texts, ANY)] == ["bad", "good"]
    assert all(prediction.ngram_share > 0.5 for prediction in finished.predict(texts, ANY))


def test_share_of_a_decision_is_that_of_the_lead_over_the_next_label(task: Classify) -> None:
    mixed = replace(task, mixture=Mixture(0.5))
    texts = ["the film was awful", ""]
    one, other = mixed.predict(texts, ANY)
    transformer, linear = (0.5 * logits(texts)[0] for logits in (task.transformer_logits, task.linear_logits))
    lead, own = transformer[0] + linear[0] - transformer[1] - linear[1], linear[0] - linear[1]
    assert one.ngram_share == pytest.approx(min(1.0, max(0.0, float(own / lead))), abs=1e-3)
    assert other.ngram_share is None


def test_linear_classifier_is_restored_from_its_tensors(task: Classify) -> None:
    finished = task.calibrate(ROWS)
    metadata = json.loads(json.dumps(finished.metadata()))
    again = Classify.restore(task.model, task.tokenizer, task.settings, metadata)
    again.module.load_state_dict(task.module.state_dict())
    again.module.eval()
    again = again.with_baseline(finished.baseline_tensors())
    assert again.mixture == finished.mixture
    assert again.logits(["a dull film"]).equal(finished.logits(["a dull film"]))
    tensors = dict(finished.baseline_tensors())
    for name, changed, message in (
        ("bias", torch.zeros(3), "bias has the shape"),
        ("weights", tensors["weights"] * torch.inf, "not finite"),
        ("hashes", tensors["hashes"].flip(0), "not sorted"),
        ("idf", tensors["idf"].double(), "expected int64 hashes and float32"),
    ):
        with pytest.raises(ValueError, match=message):
            again.with_baseline(tensors | {name: changed})


def test_classifier_without_a_baseline() -> None:
    task = make_task(Classify, ClassifySettings(baseline=False), ROWS)
    assert task.baseline_name == "" and not task.baseline_tensors()
    assert task.calibrate(ROWS).mixture.share == 0
    with pytest.raises(ValueError, match=r"task\.baseline is false"):
        task.linear_logits(["a film"])


def test_baseline_is_scored_like_the_model(task: Classify) -> None:
    rows = [*ROWS[:5], ("a film that was great", "bad")]
    assert task.baseline_name == "n-gram SVM"
    tally = task.baseline_tally(rows)
    assert (tally.name, tally.value) == ("accuracy", pytest.approx(100 * 5 / 6))
    assert tally.name == task.tally(rows, ANY).name


def test_convolution_ignores_padding(tmp_path: Path) -> None:
    task = make_task(Classify, ClassifySettings(convolution=3), ROWS)
    texts = [row[0] for row in ROWS[::9]] + ["film " * 100]
    alone = np.concatenate([task.probabilities([text]) for text in texts])
    np.testing.assert_allclose(task.probabilities(texts), alone, atol=1e-5)
    before = task.module.convolution.filters.weight.clone()
    learn(task, make_training_data(task, ROWS, tmp_path), steps=5)
    assert not task.module.convolution.filters.weight.equal(before)


def test_multi_label_predicts_any_number_of_labels(tmp_path: Path) -> None:
    task = make_task(Classify, ClassifySettings(multi_label=True, class_weights="balanced"), SEVERAL * 6)
    learn(task, make_training_data(task, SEVERAL * 6, tmp_path), steps=60)
    answers = {text: task.predict([text], ANY)[0].labels for text, _ in SEVERAL}
    assert answers["red and round"] == ("color", "shape")
    assert answers["nothing"] == ()
    assert task.predict(["nothing"], ANY)[0].line().startswith("?\t")
    assert task.validate(SEVERAL, "accuracy").metric == "exact match"
    assert task.validate(SEVERAL, "micro-F1").score == 100.0
    assert task.calibrate(SEVERAL).calibration.n_rows == len(SEVERAL)


def test_no_label_is_predicted_below_the_threshold(task: Classify) -> None:
    shy = replace(task, settings=ClassifySettings(threshold=0.99))
    found = shy.predict(["the film"], ANY)[0]
    assert found.labels == () and found.probability < 0.99
    assert found.line().startswith("?\t0.")
    assert shy.score(ROWS, ANY).n_abstained == len(ROWS)


def test_blank_text_has_no_label(task: Classify) -> None:
    *blank, text = task.predict([*BLANK_TEXTS, "film"], ANY)
    assert {one.labels for one in blank} == {()}
    assert {one.probability for one in blank} == {None}
    assert all(one.probabilities == {} for one in blank)
    assert {one.line() for one in blank} == {one.answer for one in blank} == {""}
    assert text.probability is not None


def test_unknown_gold_label_is_counted(task: Classify) -> None:
    rows = [*ROWS[:9], ("the film was so so", "medium")]
    card = task.score(rows, ANY)
    assert card.n_unknown == 1
    assert task.calibrate(rows).calibration.n_rows == 9
    assert task.validate(rows, "accuracy").score <= 90.0


def test_batch_depends_on_plan_and_seed_only(task: Classify, tmp_path: Path) -> None:
    rows = [*ROWS, ("film " * 100, "good")]
    data = make_training_data(task, rows, tmp_path, sampling=0.1)
    training_task = task.training_task(data)
    assert sorted(np.concatenate(training_task.plan(0)).tolist()) == list(range(len(rows)))
    one, same, other = (training_task.make(np.arange(len(rows)), seed).ids for seed in (1, 1, 2))
    assert one.equal(same) and not one.equal(other)
    assert one.size(1) == task.limit + 1  # the long one, in part
    assert "49 texts, “the film was lovely” (good)" in training_task.describe(np.arange(49))


def test_loss_is_a_mean_over_texts_and_balanced_weights_raise_rare_labels(tmp_path: Path) -> None:
    rows = [row for row in ROWS if row[1] == "good"] + [row for row in ROWS if row[1] == "bad"][:6]
    task = make_task(Classify, ClassifySettings(class_weights="balanced"), rows)
    assert task.label_weights is not None
    torch.testing.assert_close(task.label_weights, torch.tensor([54 / 12, 54 / 96]))
    training_task = replace(task, settings=ClassifySettings()).training_task(make_training_data(task, rows, tmp_path))
    plan = np.arange(10)
    together = training_task.loss(training_task.make(plan, 0), 1)
    alone = torch.stack([training_task.loss(training_task.make(plan[i : i + 1], 0), 1) for i in range(10)]).mean()
    torch.testing.assert_close(together, alone)


def test_the_loss_of_several_labels_is_that_of_smoothed_targets(tmp_path: Path) -> None:
    settings = ClassifySettings(multi_label=True, smoothing=0.2, baseline=False)
    rows = [("a b", "x|y"), ("b c", "x"), ("c d", "")] * 4
    task = make_task(Classify, settings, rows)
    training = task.training_task(make_training_data(task, rows, tmp_path))
    logits, targets = torch.tensor([[1.0, -2.0]]), torch.tensor([[1.0, 0.0]])
    probabilities, soft = logits.sigmoid(), torch.tensor([[0.9, 0.1]])
    expected = -(soft * probabilities.log() + (1 - soft) * (1 - probabilities).log()).mean()
    torch.testing.assert_close(training._cross_entropy(logits, targets), expected)


def test_balanced_weights_give_every_label_the_same_total() -> None:
    rows = [("a", "often")] * 6 + [("b", "rare")] * 2
    task = make_task(Classify, ClassifySettings(class_weights="balanced", baseline=False), rows)
    weights = dict(zip(task.labels, task.label_weights.tolist(), strict=True))
    assert weights == pytest.approx({"often": 8 / 12, "rare": 2.0})
    several = ClassifySettings(class_weights="balanced", multi_label=True, baseline=False)
    task = make_task(Classify, several, [("a", "often|rare"), ("b", "often"), ("c", "often"), ("d", "")])
    weights = dict(zip(task.labels, task.label_weights.tolist(), strict=True))
    assert weights == pytest.approx({"often": 1 / 3, "rare": 3.0})  # texts without it to those with it


def test_r_drop_makes_two_passes_agree(task: Classify, tmp_path: Path) -> None:
    training_task = task.training_task(make_training_data(task, ROWS, tmp_path))
    strict = replace(task, settings=ClassifySettings(consistency=4.0)).training_task(training_task.data)
    batch = training_task.make(np.arange(12), 0)
    torch.testing.assert_close(strict.loss(batch, 1), training_task.loss(batch, 1))  # without dropout nothing differs
    task.module.train()
    torch.manual_seed(1)
    wild = strict.loss(batch, 1)
    torch.manual_seed(1)
    assert wild > replace(task, settings=ClassifySettings(consistency=1e-9)).training_task(training_task.data).loss(
        batch, 1
    )


def test_a_column_of_too_many_labels_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyheads.tasks.classify.classify_task.MAX_LABELS", 5)
    rows = [(text, f"label {number}") for number, (text, _) in enumerate(ROWS)]
    with pytest.raises(DataError, match=r"have 96 different labels \(“label 0”, “label 1”, “label 10”, …\); at most 5"):
        make_task(Classify, ClassifySettings(), rows)


def test_single_label_is_refused() -> None:
    with pytest.raises(
        DataError, match=r"every row has the label “good”\. Give rows with at least two different labels"
    ):
        make_task(Classify, ClassifySettings(), [("a", "good"), ("b", "good")])


def test_invalid_settings_are_refused() -> None:
    with pytest.raises(RecipeError, match=r"task\.threshold = 1\.0 must be at least 0 and less than 1"):
        ClassifySettings(threshold=1.0)
    with pytest.raises(RecipeError, match=r"task\.separator is empty"):
        ClassifySettings(multi_label=True, separator="")
    with pytest.raises(RecipeError, match=r'task\.pooling = "last" is not one of'):
        build(ClassifySettings, {"pooling": "last"}, "task.")


def test_rows_that_calibrated_are_scored_by_cross_fitting() -> None:
    """The even rows are wrong and the odd ones right: a temperature fitted to all of them hides both."""
    task = make_task(Classify, ClassifySettings(baseline=False), ROWS)
    right = [(row[0], task.predict([row[0]], ANY)[0].answer) for row in ROWS]
    rows = [(text, ("bad" if label == "good" else "good") if i % 2 else label) for i, (text, label) in enumerate(right)]
    task = task.calibrate(rows)
    error = {score.name: score.value for score in task.score(rows, ANY).scores}["calibration error"]
    crossed = {score.name: score.value for score in task.score_calibrated(rows, ANY).scores}
    assert crossed["calibration error"] > error
    assert crossed["accuracy"] == pytest.approx(50, abs=2)


@pytest.mark.parametrize("baseline", [False, True])
def test_a_text_is_scored_by_a_fit_to_the_other_half(baseline: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The label of a text must not reach its own probabilities: neither the share nor the temperature."""
    task = make_task(Classify, ClassifySettings(baseline=baseline), ROWS)
    found: list[np.ndarray] = []
    card = Classify._card

    def record(task: Classify, rows: object, probabilities: np.ndarray) -> object:
        found.append(probabilities.copy())
        return card(task, rows, probabilities)  # type: ignore[arg-type]

    monkeypatch.setattr(Classify, "_card", record)
    rows = ROWS[::3] + ROWS[1::3]  # both halves have both labels
    for half in (0, 1):
        changed = [
            (text, "bad" if row % 2 == half and row % 3 == 0 else label) for row, (text, label) in enumerate(rows)
        ]
        assert changed != rows
        found.clear()
        for labels in (rows, changed):
            task.score_calibrated(labels, ANY)
        assert (found[0][half::2] == found[1][half::2]).all()
        assert (found[0][1 - half :: 2] != found[1][1 - half :: 2]).any()


FITTED = ClassifySettings(pooling="mean", unit_vectors=True, probe=True, baseline=True)


def test_logits_are_the_output_layer_of_the_vectors() -> None:
    task = make_task(Classify, FITTED, ROWS)
    texts = [row[0] for row in ROWS[:5]] + ["film " * 100]
    vectors = task.vectors(texts)
    assert vectors[:5].norm(dim=-1).tolist() == pytest.approx([32**0.5] * 5, abs=1e-4)
    torch.testing.assert_close(task.module.output(vectors), task.transformer_logits(texts), atol=1e-4, rtol=0)
    assert task.embed(texts).norm(dim=-1).tolist() == pytest.approx([1.0] * 6, abs=1e-5)


def test_fitting_the_head_separates_labels_without_a_step() -> None:
    task = make_task(Classify, FITTED, ROWS)
    before = {name: value.clone() for name, value in task.model.state_dict().items()}
    task.fit_head(ROWS)
    right = [labels.answer == row[1] for labels, row in zip(task.predict([r[0] for r in ROWS], ANY), ROWS, strict=True)]
    assert np.mean(right) > 0.95
    assert all(value.equal(before[name]) for name, value in task.model.state_dict().items())


def test_a_refitted_classifier_answers_its_own_rows_as_if_it_lacked_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """With random labels a model that has learned all rows by heart must not look better than chance on them."""
    monkeypatch.setattr("manyheads.tasks.classify.logistic_probe.PENALTIES", (1e6,))
    monkeypatch.setattr("manyheads.tasks.classify.logistic_probe._SCALES", [1.0])
    rng = np.random.default_rng(3)
    rows = [(f"{row[0]} {number}", str(rng.choice(["yes", "no"]))) for number, row in enumerate(ROWS[:60])]
    task = make_task(Classify, FITTED, rows)
    refitted = task.refit_head(rows[:48], rows[48:]).calibrate(rows[48:])
    assert refitted.is_refitted and not task.is_refitted
    card = refitted.score_calibrated(rows, ANY)
    shipped = replace(refitted, folds=None)
    assert card.scores[0].value < 75 < shipped.score(rows, ANY).scores[0].value
    assert refitted.tally(rows, ANY).score().value < 75


def test_many_rows_are_not_refitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyheads.tasks.classify.classify_task._MAX_REFITTED", 10)
    task = make_task(Classify, FITTED, ROWS)
    assert task.refit_head(ROWS[:8], ROWS[8:]) is task
