"""What the heads do over the corpus and over training, computed in the background."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from manyheads.bundle import Bundle
from manyheads.errors import LensError
from manyheads.lens.heads import Head
from manyheads.lens.roles.head_survey import HeadEffect
from manyheads.lens.roles.timeline import TimelineEntry
from manyheads.serve.lens_page import head_jobs
from manyheads.serve.lens_page.head_jobs import HeadJobs
from manyheads.serve.lens_page.lens_model import LensModel
from manyheads.serve.lens_page.lens_session import LensSession

from lens.makers import SHORT, task_of

HEAD = "encoder.0.self/0"


@pytest.fixture
def jobs() -> Iterator[HeadJobs]:
    opened = LensModel("a", Path("run/bundle"), Bundle(task_of("seq2seq"), SHORT, {}))
    opened.__dict__["steps"] = (10, 20)
    made = HeadJobs(LensSession([opened]))
    yield made
    made.stop()


def finished_timeline(jobs: HeadJobs) -> dict[str, Any]:
    """Ask until the timeline is finished, as the page does."""
    deadline = time.monotonic() + 30
    while (found := jobs.timeline("a"))["state"] == "running":
        assert time.monotonic() < deadline
        assert (found["roles"], found["entries"]) == ({}, [])
        time.sleep(0.01)
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]


def test_timeline_names_the_roles_that_occur(jobs: HeadJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    shares: list[float] = []

    def entries(run: Path) -> Iterator[TimelineEntry]:
        assert run == Path("run")
        for step, role in ((10, "unknown"), (20, "object>")):
            shares.append(jobs.timeline("a")["done"])
            yield TimelineEntry(step, 8, {HEAD: role}, {HEAD: {"entropy": 1.5}})

    monkeypatch.setattr(head_jobs, "iterate_timeline", entries)
    found = finished_timeline(jobs)
    assert shares == [0.0, 0.5]  # as the page shows it meanwhile
    assert (found["state"], found["done"], found["message"]) == ("ready", 1.0, None)
    assert found["roles"] == {
        "unknown": {"names": {"en": "unknown", "zh": "未知"}, "color": "#eeeeee"},
        "object>": {"names": {"en": "object → head", "zh": "宾语→中心词"}, "color": "#009e73"},
    }
    assert [(entry["step"], entry["roles"]) for entry in found["entries"]] == [
        (10, {HEAD: "unknown"}),
        (20, {HEAD: "object>"}),
    ]


def test_timeline_that_fails_says_why(jobs: HeadJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    def entries(run: Path) -> Iterator[TimelineEntry]:
        raise LensError("There is no text.")

    monkeypatch.setattr(head_jobs, "iterate_timeline", entries)
    found = finished_timeline(jobs)
    assert (found["state"], found["message"]["en"]) == ("failed", "There is no text.")


def test_a_run_without_snapshots_has_an_empty_timeline(jobs: HeadJobs) -> None:
    jobs._session.opened("a").__dict__["steps"] = ()
    assert jobs.timeline("a") == {"state": "ready", "done": 1.0, "message": None, "roles": {}, "entries": []}


def test_effect_has_no_numbers_until_it_is_measured(jobs: HeadJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = HeadEffect("ready", "BLEU", 30.0, -2.0, -3.0, -1.0, 50)
    meanwhile: list[dict[str, Any]] = []

    def measure(*_: object, **__: object) -> HeadEffect:
        meanwhile.append(jobs.effect("a", Head("encoder.0.self", 0)))
        return measured

    monkeypatch.setattr(head_jobs, "head_effect", measure)
    deadline = time.monotonic() + 30
    while (found := jobs.effect("a", Head("encoder.0.self", 0)))["state"] == "running":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert found == measured.to_json()
    empty = {"metric": "", "baseline": 0.0, "change": 0.0, "low": 0.0, "high": 0.0, "n_rows": 0}
    assert meanwhile == [{**empty, "state": "running", "done": 0.0, "message": None}]
