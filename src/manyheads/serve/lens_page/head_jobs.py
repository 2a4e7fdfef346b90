"""`HeadJobs`: what the heads of a bundle do over its own corpus, computed in the background.

The survey (roles, importance, similarity, examples) starts when the page asks for it first, the effect of ablating a
head over the validation set when its page is opened, the timeline when it is opened.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from manyheads.lens.heads import Head, find_heads
from manyheads.lens.roles.head_survey import HeadEffect, HeadSurvey, head_effect, survey_heads
from manyheads.lens.roles.role_names import role_color, role_message
from manyheads.lens.roles.timeline import TimelineEntry, iterate_timeline
from manyheads.messages import Message
from manyheads.serve.lens_page.background_jobs import BackgroundJobs, Job
from manyheads.serve.lens_page.lens_model import LensModel
from manyheads.serve.lens_page.lens_session import LensSession

_RUNNING_SURVEY = {"n_texts": 0, "measures": [], "heads": []}
_PRIVATE = Message(
    "This server does not show the data that the model was trained or validated on, so heads cannot be "
    "measured on it. Type a text of your own."
)
_RUNNING_EFFECT = {"metric": "", "baseline": 0.0, "change": 0.0, "low": 0.0, "high": 0.0, "n_rows": 0}


class HeadJobs:
    """The jobs of a session, by bundle and head."""

    def __init__(self, session: LensSession) -> None:
        self._session = session
        self._jobs = BackgroundJobs()

    def stop(self) -> None:
        """Stop the computation that runs."""
        self._jobs.stop()

    def survey(self, bundle: str) -> dict[str, Any]:
        """Return the survey of a bundle's heads, as far as it has come."""
        job = self._survey_job(bundle)
        return job.result.to_json() if job.state == "ready" else _unfinished(job, _RUNNING_SURVEY)

    def examples(self, bundle: str, head: Head) -> dict[str, Any]:
        """Return texts on which a head acts strongly and weakly; none before the survey is ready."""
        self._check(bundle, head)
        job = self._survey_job(bundle)
        if job.state != "ready" or not job.result.heads:
            return {"head": str(head), "examples": []}
        return job.result.examples_json(head)

    def effect(self, bundle: str, head: Head) -> dict[str, Any]:
        """Return what ablating a head does to the score of the validation set."""
        opened = self._check(bundle, head)

        def work(report: Callable[[float], None]) -> HeadEffect:
            if not opened.has_rows:
                return HeadEffect("failed", message=_PRIVATE)
            return head_effect(opened.copy, head, files=opened.valid)

        job = self._jobs.submit(f"effect {bundle} {head}", work)
        return job.result.to_json() if job.state == "ready" else _unfinished(job, _RUNNING_EFFECT)

    def timeline(self, bundle: str) -> dict[str, Any]:
        """Return the roles of all heads at each snapshot of the run; no entries if it kept fewer than two."""
        opened = self._session.opened(bundle)
        if not opened.steps:
            return {"state": "ready", "done": 1.0, "message": None, **_timeline_json([])}

        def work(report: Callable[[float], None]) -> list[TimelineEntry]:
            entries = []
            for entry in iterate_timeline(opened.path.parent):
                entries.append(entry)
                report(len(entries) / len(opened.steps))
            return entries

        job = self._jobs.submit(f"timeline {bundle}", work)
        if job.state != "ready":
            return _unfinished(job, _timeline_json([]))
        return {"state": "ready", "done": 1.0, "message": None, **_timeline_json(job.result)}

    def finished(self, bundle: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the survey and the examples of each head for a saved page, if they are ready."""
        job = self._survey_job(bundle)
        return survey_for_page(bundle, job.result) if job.state == "ready" else ({}, {})

    def _survey_job(self, bundle: str) -> Job:
        opened = self._session.opened(bundle)

        def work(report: Callable[[float], None]) -> HeadSurvey:
            if not opened.has_rows:
                return HeadSurvey(message=_PRIVATE)
            return survey_heads(opened.copy, files=opened.valid, progress=report)

        return self._jobs.submit(f"survey {bundle}", work)

    def _check(self, bundle: str, head: Head) -> LensModel:
        opened = self._session.opened(bundle)
        find_heads(opened.bundle.task.model, [head])
        return opened


def survey_for_page(bundle: str, survey: HeadSurvey) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a survey and the examples of each head as a saved page stores them."""
    examples = {head.card.head: survey.examples_json(head.card.head) for head in survey.heads}
    return {bundle: survey.to_json()}, examples


def _timeline_json(entries: Sequence[TimelineEntry]) -> dict[str, Any]:
    """Return the entries, with the name and the color of every role that occurs in them."""
    names = dict.fromkeys(role for entry in entries for role in entry.roles.values())
    return {
        "roles": {name: {"names": role_message(name).by_language(), "color": role_color(name)} for name in names},
        "entries": [asdict(entry) for entry in entries],
    }


def _unfinished(job: Job, empty: dict[str, Any]) -> dict[str, Any]:
    return {**empty, "state": job.state, "done": job.done, "message": job.message}
