"""`HeadJobs`: what the heads of a bundle do over its own corpus, computed in the background.

The survey (roles, importance, similarity, examples) starts when the page asks for it first, the effect of ablating a
head over the validation set when its page is opened.
"""

from typing import Any

from manyheads.lens.heads import Head
from manyheads.serve.background_jobs import BackgroundJobs
from manyheads.serve.lens_session import LensSession


class HeadJobs:
    """The jobs of a session, by bundle and head."""

    def __init__(self, session: LensSession) -> None:
        self._session = session
        self._jobs = BackgroundJobs()

    def survey(self, bundle: str) -> dict[str, Any]:
        return {"state": "running", "done": 0.0, "message": None, "n_texts": 0, "measures": [], "heads": []}

    def examples(self, bundle: str, head: Head) -> dict[str, Any]:
        return {"head": str(head), "examples": []}

    def effect(self, bundle: str, head: Head) -> dict[str, Any]:
        return {"state": "running", "metric": "", "baseline": 0, "change": 0, "low": 0, "high": 0, "n_rows": 0}

    def timeline(self, bundle: str) -> dict[str, Any]:
        return {"entries": []}

    def finished(self, bundle: str) -> tuple[dict[str, Any], dict[str, Any]]:
        return {}, {}
