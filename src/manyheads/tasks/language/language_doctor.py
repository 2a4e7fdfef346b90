"""The language task's part of `doctor`: documents, and continuations that run in a circle."""

from collections.abc import Sequence

from manyheads.messages import _
from manyheads.tasks.document_doctor import DocumentDoctor
from manyheads.tasks.findings import MAX_EXAMPLES, Finding, excerpt, verdict_of
from manyheads.tasks.output_checks import is_repetitive
from manyheads.tasks.task_doctor import Sample


class LanguageDoctor(DocumentDoctor):
    """A model continues its documents."""

    def check_outputs(self, check: str, samples: Sequence[Sample]) -> Finding:
        """Check for continuations that are empty or repeat themselves, as greedy decoding sometimes does."""
        repetitive = [text for _, text, _ in samples if is_repetitive(text)]
        n_empty = sum(not text.strip() for _, text, _ in samples)
        verdict = verdict_of(max(n_empty, len(repetitive)), len(samples), warn=0.5)
        message = _(
            "of {n_samples} continuations, {n_repetitive} are repetitive, {n_empty} are empty.",
            n_samples=len(samples),
            n_repetitive=len(repetitive),
            n_empty=n_empty,
        )
        if verdict == "good":
            return Finding(check, verdict, message)
        fix = _("Train longer, or on more text; sampling (decode.method) repeats itself less than greedy decoding.")
        return Finding(check, verdict, message, tuple(excerpt(text) for text in repetitive[:MAX_EXAMPLES]), fix)
