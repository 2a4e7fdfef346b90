"""What a served bundle still knows of the data it was trained on, and what it answers without."""

import time
from pathlib import Path
from typing import Any

import pytest

from manyheads.bundle import Bundle, load
from manyheads.errors import BundleError, LensError
from manyheads.lens import heads_of
from manyheads.lens.aligner import Aligner, OcclusionAligner
from manyheads.lens.roles.head_survey import survey_heads
from manyheads.run import Recipe
from manyheads.serve.lens_page import head_jobs
from manyheads.serve.lens_page.head_jobs import HeadJobs
from manyheads.serve.lens_page.lens_model import LensModel
from manyheads.serve.lens_page.lens_session import LensSession, TraceRequest
from manyheads.serve.private_data import load_served, without_files, without_path
from manyheads.serve.service.served_answerer import ServedAnswerer
from manyheads.settings import to_table

from lens.makers import SHORT, TEXTS, task_of
from serve.marked_bundles import MARKS, make_bundles


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_bundles(tmp_path_factory.mktemp("marked"))


def measured(opened: LensModel) -> dict[str, Any]:
    """Ask for everything about the heads of a bundle, and about its first, until it is finished."""
    jobs, head = HeadJobs(LensSession([opened])), heads_of(opened.bundle.task.model)[0]
    deadline = time.monotonic() + 120
    try:
        while "running" in (jobs.survey("a")["state"], jobs.effect("a", head)["state"]):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return {
            "survey": jobs.survey("a"),
            "effect": jobs.effect("a", head),
            "examples": jobs.examples("a", head)["examples"],
            "saved": jobs.finished("a"),
        }
    finally:
        jobs.stop()


@pytest.mark.parametrize(
    "recipe",
    [
        {"data": {"train": ["/etc/passwd"]}},
        {"data": {"valid": ["/etc/passwd"], "train": ["a"]}},
        {"data": {"test": ["/etc/passwd"]}},
        {"data": {"mix": [{"files": ["/etc/passwd"]}]}},
        {"data": {"folder": "/etc", "train": ["passwd"]}},
        {"data": {"builtin": "", "train": ["/etc/passwd"]}},
        {"data": "/etc/passwd", "init_from": "/etc/passwd"},
        {},
    ],
)
def test_a_recipe_with_files_is_forgotten(recipe: dict[str, Any]) -> None:
    assert without_files(recipe) == {}


def test_of_the_builtin_corpus_nothing_but_its_languages_stay() -> None:
    recipe = {
        "data": {"builtin": "en-zh", "valid": ["/etc/passwd"], "folder": "/etc", "later_setting": "/etc/passwd"},
        "task": {"kind": "seq2seq"},
        "seed": 7,
        "init_from": "/etc/passwd",
        "later_section": {"file": "/etc/passwd"},
    }
    assert without_files(recipe) == {"data": {"builtin": "en-zh"}, "task": {"kind": "seq2seq"}, "seed": 7}


def test_the_owner_decides(bundles: dict[str, Path]) -> None:
    path = bundles["classify"]
    assert load_served(path, share_examples=True).recipe == load(path).recipe
    assert load_served(path).recipe == {}
    assert ServedAnswerer.open("own", path).bundle.recipe == {}
    assert LensModel.open_served(path, "own", share_examples=False).bundle.recipe == {}


def test_an_error_has_the_name_of_the_bundle_for_its_path() -> None:
    path = Path("/home/owner/runs/mail/bundle")
    error = BundleError(f"{path}/weights.safetensors is damaged. Copy {path} again.")
    assert without_path(error, path, "en-zh") == "en-zh/weights.safetensors is damaged. Copy en-zh again."
    assert without_path(MemoryError(), path, "en-zh") == "MemoryError"


@pytest.mark.parametrize("kind", TEXTS)
def test_heads_are_not_measured_on_private_data(kind: str, bundles: dict[str, Path]) -> None:
    opened = LensModel.open_served(bundles[kind], kind, share_examples=False)
    assert opened.describe()["examples"] == []
    found = measured(opened)
    for answer in (found["survey"], found["effect"]):
        assert answer["state"] == "failed"
        assert answer["message"]["en"].startswith("This server does not show the data")
        assert answer["message"]["zh"].startswith("此服务不展示")
    assert found["examples"] == []
    assert MARKS["valid"] not in str(found)


def test_a_private_page_still_answers_texts(bundles: dict[str, Path]) -> None:
    session = LensSession([LensModel.open_served(bundles["seq2seq"], "en-zh", share_examples=False)])
    traced = session.trace(TraceRequest("a", TEXTS["seq2seq"])).view
    assert traced["output"]["answer"] and traced["attentions"]
    assert session.importance(traced["id"])["heads"]


def test_snapshots_beside_a_bundle_are_shared_with_examples_only(bundles: dict[str, Path]) -> None:
    shared = LensModel.open_served(bundles["seq2seq"], "en-zh", share_examples=True)
    assert shared.describe()["steps"] == [10, 20]
    assert not shared.describe()["is_private"]
    private = LensModel.open_served(bundles["seq2seq"], "en-zh", share_examples=False)
    assert private.describe()["steps"] == []
    assert private.describe()["is_private"]
    with pytest.raises(LensError, match="There is no snapshot of step 10"):
        private.task_at(10)


def test_words_are_aligned_without_private_data(bundles: dict[str, Path]) -> None:
    """By occlusion: the heads that align are chosen on validation rows."""
    assert isinstance(ServedAnswerer.open("en-zh", bundles["seq2seq"]).aligner, OcclusionAligner)
    shared = ServedAnswerer.open("en-zh", bundles["seq2seq"], share_examples=True)
    assert isinstance(shared.aligner, Aligner)


def test_examples_of_a_service_are_never_own_data(bundles: dict[str, Path]) -> None:
    for share_examples in (False, True):
        for path in bundles.values():
            assert ServedAnswerer.open("own", path, share_examples=share_examples).description.examples == ()


def test_the_builtin_corpus_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Recipe.from_table({"data": {"builtin": "en"}, "task": {"kind": "classify"}, "seed": 3})
    Bundle(task_of("classify"), SHORT, to_table(recipe)).save(tmp_path / "bundle")
    private = LensModel.open_served(tmp_path / "bundle", "reviews", share_examples=False)
    own = LensModel.open(tmp_path / "bundle")
    assert len(private.examples) == 8
    assert private.examples == own.examples
    assert ServedAnswerer.open("reviews", tmp_path / "bundle").description.examples
    monkeypatch.setattr(head_jobs, "survey_heads", lambda bundle, **options: survey_heads(bundle, 10, **options))
    found = measured(private)
    assert (found["survey"]["state"], found["effect"]["state"]) == ("ready", "ready")
    assert found["examples"]
    assert found["effect"] == measured(own)["effect"]


@pytest.mark.parametrize(
    ("builtin", "fault"),
    [
        ("en-zh", "data.builtin = .en-zh. should be one of en, zh, de for this task"),
        ("fr", "data.builtin = .fr. should be two of en, zh, de"),
        (3, "data.builtin = 3 should be text"),
    ],
)
def test_a_corpus_that_is_unknown_is_named_in_one_line(tmp_path: Path, builtin: object, fault: str) -> None:
    recipe = {"data": {"builtin": builtin}, "task": {"kind": "classify"}}
    Bundle(task_of("classify"), SHORT, recipe).save(tmp_path / "bundle")
    with pytest.raises(BundleError, match=fault) as caught:
        ServedAnswerer.open("reviews", tmp_path / "bundle")
    assert str(caught.value).startswith(f"{tmp_path / 'bundle'}: ")
    assert len(str(caught.value).splitlines()) == 1
