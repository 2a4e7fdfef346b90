import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from manyheads.errors import DataError
from manyheads.serve.lens_page.background_jobs import BackgroundJobs, Job


def _wait(job: Job) -> None:
    end = time.monotonic() + 10
    while job.state == "running" and time.monotonic() < end:
        time.sleep(0.005)


def test_a_job_runs_once_and_reports_progress() -> None:
    jobs, go = BackgroundJobs(), threading.Event()
    seen: list[float] = []

    def work(report: Callable[[float], None]) -> dict[str, Any]:
        report(0.5)
        seen.append(1)
        go.wait(10)
        return {"answer": 42}

    job = jobs.submit("a", work)
    end = time.monotonic() + 10
    while not seen and time.monotonic() < end:
        time.sleep(0.005)
    assert (job.state, job.done) == ("running", 0.5)
    assert jobs.submit("a", work) is job
    go.set()
    _wait(job)
    assert (job.state, job.done, job.result, len(seen)) == ("ready", 1.0, {"answer": 42}, 1)


def test_errors_end_the_job_and_not_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    jobs = BackgroundJobs()

    def fail(error: Exception) -> Callable[[Callable[[float], None]], dict[str, Any]]:
        def work(report: Callable[[float], None]) -> dict[str, Any]:
            raise error

        return work

    faulty = jobs.submit("faulty", fail(DataError("No rows.")))
    broken = jobs.submit("broken", fail(ValueError("/secret/file")))
    fine = jobs.submit("fine", lambda report: {"fine": True})
    for job in (faulty, broken, fine):
        _wait(job)
    assert (faulty.state, faulty.message) == ("failed", {"en": "No rows.", "zh": "No rows."})
    assert (broken.state, broken.message) == (
        "failed",
        {
            "en": "This is a bug in manyheads: ValueError. The terminal shows where.",
            "zh": "这是 manyheads 的一个错误：ValueError。出错位置见终端。",
        },
    )
    assert "ValueError at" in caplog.text and "test_background_jobs.py" in caplog.text
    assert "/secret/file" not in caplog.text
    assert (fine.state, fine.result) == ("ready", {"fine": True})


def test_stop_ends_a_job_at_its_next_report() -> None:
    jobs, reports = BackgroundJobs(), []

    def work(report: Callable[[float], None]) -> dict[str, Any]:
        for number in range(1_000_000):
            report(number / 1_000_000)
            reports.append(number)
            time.sleep(0.001)
        return {}

    job = jobs.submit("long", work)
    while not reports:
        time.sleep(0.001)
    jobs.stop()
    count = len(reports)
    time.sleep(0.05)
    assert len(reports) == count
    assert job.state == "running"  # it never ended, and nobody waits for it any more
