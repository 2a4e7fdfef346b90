"""The language task's part of `doctor`: documents, and continuations that run in a circle."""

from collections.abc import Sequence

from manyheads.language import pick
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
        message = pick(
            f"of {len(samples)} continuations, {len(repetitive)} are repetitive, {n_empty} are empty.",
            f"{len(samples)} 段续写中，重复循环的 {len(repetitive)} 段，为空的 {n_empty} 段。",
        )
        if verdict == "good":
            return Finding(check, verdict, message)
        fix = pick(
            "Train longer, or on more text; sampling (decode.method) repeats itself less than greedy decoding.",
            "请延长训练或增加文本；采样（decode.method）比贪心解码更少重复。",
        )
        return Finding(check, verdict, message, tuple(excerpt(text) for text in repetitive[:MAX_EXAMPLES]), fix)
