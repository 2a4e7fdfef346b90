"""Scoring a task on a test set: the same way at the end of a run and for `manyheads evaluate`."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from manyheads.decode import DecodeSettings
from manyheads.errors import DataError
from manyheads.metrics import Score
from manyheads.tasks import Seq2Seq


@dataclass(frozen=True)
class Scorecard:
    """How well a test set was translated."""

    scores: Sequence[Score]
    samples: Sequence[tuple[str, str, str]]  # source, translation, reference: the whole set, in its order
    n_cut_off: int  # translations that reached the maximum length before they ended
    n_too_long: int  # sources too long for the model, which count as translated by nothing


def score(
    task: Seq2Seq,
    pairs: Iterable[tuple[str, str]],
    settings: DecodeSettings,
    progress: Callable[[int], None] = lambda done: None,
) -> Scorecard:
    """Translate every source and compare with its reference; `progress` is told how many more are done."""
    pairs = list(pairs)
    if not pairs:
        raise DataError("There is nothing to score: the test set is empty.")
    sources = [source for source, _ in pairs]
    references = [reference for _, reference in pairs]
    if not any(reference.strip() for reference in references):
        raise DataError("There is nothing to score: every reference is empty.")
    readable = [source if task.fits(source) else "" for source in sources]
    found = {}
    for index, candidates in task.translate(readable, settings):
        found[index] = candidates[0]
        progress(1)
    texts = [found[index].text for index in range(len(pairs))]
    return Scorecard(
        scores=task.score(texts, references),
        samples=list(zip(sources, texts, references, strict=True)),
        n_cut_off=sum(not translation.finished for translation in found.values()),
        n_too_long=sum(text != source for text, source in zip(readable, sources, strict=True)),
    )


def translate(task: Seq2Seq, sources: Sequence[str], settings: DecodeSettings) -> list[str]:
    """The best translation of each source, in their order."""
    return [candidates[0].text for candidates in task.answers(sources, settings)]
