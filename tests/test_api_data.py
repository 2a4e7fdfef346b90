"""`mh.init`, `mh.train`, `evaluate` and `predict` on rows in memory, from a recipe to a score."""

from pathlib import Path

import pytest

import manyheads as mh
from manyheads.bundle import Bundle, load
from manyheads.decode import DecodeSettings
from manyheads.errors import BundleError, DataError, RecipeError
from manyheads.settings import to_table
from manyheads.tasks import Classify, ClassifySettings

from tasks.small import make_task

SUBJECTS = ("film", "book", "play", "song", "story", "game", "meal", "trip")
OPINIONS = {"good": ("fine", "lovely", "great"), "bad": ("awful", "dull", "poor")}
ROWS = [
    (f"the {subject} number {number} is {word}", label)
    for label, words in OPINIONS.items()
    for word in words
    for subject in SUBJECTS
    for number in range(3)
]
RECORDS = [{"id": number, "body": text, "team": label} for number, (text, label) in enumerate(ROWS)]


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> mh.InspectableBundle:
    """An untrained classifier of the columns "body" and "team"."""
    task = make_task(Classify, ClassifySettings(), ROWS)
    data = {"train": ["old.csv"], "text_column": "body", "label_column": "team"}
    recipe = {"model": to_table(task.model.settings), "data": data, "task": {"kind": "classify"}}
    Bundle(task, DecodeSettings(), recipe).save(folder := tmp_path_factory.mktemp("classifier") / "bundle")
    return mh.load(folder)


def test_rows_train_a_model(tmp_path: Path) -> None:
    recipe = mh.init(RECORDS, text_column="body", label_column="team", output=tmp_path / "recipe.toml")
    assert recipe.task.kind == "classify"
    assert Path(recipe.data.train[0]).is_relative_to(tmp_path / "cache")
    assert "[model]" in (tmp_path / "recipe.toml").read_text()
    table = to_table(recipe)
    table["train"] |= {"steps": 3, "warmup": 1, "validate_every": 3, "save_every": 3}
    model = mh.train(table, tmp_path / "run")
    assert model.evaluate(RECORDS[:20]).n_texts == 20
    assert set(model.predict(["the film number 1 is dull"])) <= {"good", "bad"}


def test_init_is_the_function_whatever_was_imported() -> None:
    import manyheads.proposals.survey  # noqa: F401

    with pytest.raises(DataError, match="no such file"):
        mh.init("missing.csv")


def test_evaluate_files_and_rows(classifier: mh.InspectableBundle, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("body,team\n" + "".join(f"{text},{label}\n" for text, label in ROWS))
    card = classifier.evaluate(tmp_path / "a.csv")
    assert classifier.evaluate(RECORDS).scores == card.scores
    renamed = [{"text": text, "label": label} for text, label in ROWS]
    assert classifier.evaluate(renamed, columns={"text": "text", "label": "label"}).scores == card.scores
    with pytest.raises(DataError, match=r'no column "body" and "team", .* Choose with columns=\{"text": "text"\}'):
        classifier.evaluate(renamed)
    assert classifier.evaluate(RECORDS, threshold=0.999).n_abstained == len(ROWS)


def test_evaluate_without_data_scores_a_test_set_of_the_recipe(
    classifier: mh.InspectableBundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"old\.csv: there is no such file"):
        classifier.evaluate()
    (tmp_path / "old.csv").write_text("body,team\n" + "".join(f"{text},{label}\n" for text, label in ROWS))
    assert classifier.evaluate().n_texts == 28  # one in five rows is held out
    with pytest.raises(RecipeError, match="There is no test set 'nope'"):
        classifier.evaluate(test_set="nope")


def test_threshold_and_beam(classifier: mh.InspectableBundle, untrained: Bundle) -> None:
    text = ROWS[0][0]
    assert classifier.predict([text], threshold=0.999) == [""]
    assert classifier.predict([text])[0] in OPINIONS
    assert classifier.predictions([text], threshold=0.999)[0].labels == ()  # type: ignore[attr-defined]
    with pytest.raises(BundleError, match="has no threshold"):
        untrained.predict(["The dog sleeps."], threshold=0.9)
    with pytest.raises(BundleError, match="threshold = 1 must be at least 0 and less than 1"):
        classifier.predict([text], threshold=1)
    assert untrained.predict(["The dog sleeps."], beam=3) == untrained.predict(
        ["The dog sleeps."], method="beam", beam=3
    )


def test_a_plain_bundle_has_thresholds_too(classifier: mh.InspectableBundle, tmp_path: Path) -> None:
    classifier.save(tmp_path / "bundle")
    assert load(tmp_path / "bundle").predict([ROWS[0][0]], threshold=0.999) == [""]
