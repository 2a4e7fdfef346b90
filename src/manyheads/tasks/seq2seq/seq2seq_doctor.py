"""The seq2seq task's part of `doctor`: translations, summaries that do not summarize, replies that say nothing."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from manyheads.messages import Message, _
from manyheads.tasks.findings import MAX_EXAMPLES, Finding, excerpt, share, verdict_of
from manyheads.tasks.output_checks import check_outputs
from manyheads.tasks.seq2seq.settings import Seq2SeqSettings
from manyheads.tasks.task_doctor import Sample, Source, TaskDoctor
from manyheads.text.reading.readers import Row


class Seq2SeqDoctor(TaskDoctor):
    """Rows are a source and a target."""

    noun = Message("pairs")

    def are_translations(self, settings: Seq2SeqSettings) -> bool:
        """Summaries and replies are in the same language as their source and of any length."""
        return settings.purpose == "translation"

    def check_rows(self, sets: Sequence[Source], settings: Seq2SeqSettings) -> Iterator[Finding]:
        """Check the targets of summaries and dialogues; translations are checked as parallel text."""
        train = sets[0]
        if settings.purpose == "translation":
            return
        yield _check_copies(train)
        yield _check_summaries(train) if settings.purpose == "summary" else _check_replies(train)

    def check_outputs(self, check: str, samples: Sequence[Sample]) -> Finding:
        """Check for outputs that are all the same, copied, repetitive or empty."""
        return check_outputs(check, [source for source, *_ in samples], [output for _, output, _ in samples])


def _check_copies(source: Source) -> Finding:
    return _check(
        "copied targets",
        source,
        lambda row: row[0].split() == row[1].split() != [],
        _("have a target that is their source."),
        _("Remove them, or the model learns to copy."),
        warn=0.01,
    )


def _check_summaries(source: Source) -> Finding:
    return _check(
        "summaries",
        source,
        lambda row: len(row[1].strip()) > len(row[0].strip()),
        _("have a summary that is longer than its text."),
        _("Check that the columns are not exchanged (data.source_column, data.target_column)."),
        warn=0.05,
    )


def _check_replies(source: Source) -> Finding:
    replies = Counter(_normalized(row[1]) for row in source.rows())
    common, count = replies.most_common(1)[0] if replies else ("", 0)
    return _check(
        "replies",
        source,
        lambda row: count > 1 and _normalized(row[1]) == common,
        _("have the most common reply, “{excerpt}”.", excerpt=excerpt(common)),
        _("Keep only some of them, or the model gives this reply to everything."),
        warn=0.1,
    )


def _normalized(text: str) -> str:
    return " ".join(text.casefold().split())


def _check(
    check: str, source: Source, is_affected: Callable[[Row], bool], what: str, fix: str, *, warn: float
) -> Finding:
    """Count the pairs that are affected, and show the first."""
    count = total = 0
    examples: list[str] = []
    for index, row in enumerate(source.rows()):
        total += 1
        if is_affected(row):
            count += 1
            if len(examples) < MAX_EXAMPLES:
                examples.append(f"{source.location(index)}: {excerpt(row[0])} → {excerpt(row[1])}")
    verdict = verdict_of(count, total, warn=warn, fail=0.5)
    counted = share(count, total)
    message = _("{name}: {counted} pairs {what}", name=source.name, counted=counted, what=what)
    return (
        Finding(check, verdict, message)
        if verdict == "good"
        else Finding(check, verdict, message, tuple(examples), fix)
    )
