"""`BatchQueue`: texts that wait for a worker, and which of them to answer together.

A batch has texts of one kind (the same bundle and settings) and of similar length, always with the text that has waited
longest. The queue is bounded: when it is full, a request is refused at once instead of waiting in vain.
"""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from heapq import nsmallest

from manyheads.serve.problems import ProblemError


@dataclass(eq=False)
class QueuedText:
    """One text of a request; `answer` receives the prediction as JSON."""

    how: str
    text: str
    deadline: float  # in seconds of the event loop's clock
    answer: "asyncio.Future[str]"
    n_attempts: int = 0  # workers that stopped while they had it


@dataclass
class BatchQueue:
    """Waiting texts by kind, oldest first."""

    max_texts: int
    max_characters: int
    batch_texts: int
    batch_characters: int
    _kinds: "OrderedDict[str, OrderedDict[QueuedText, None]]" = field(default_factory=OrderedDict)
    n_texts: int = 0
    n_characters: int = 0

    def add(self, texts: list[QueuedText], *, is_retry: bool = False) -> None:
        """Append the texts of a request; raise QueueFullError if they do not all fit. Retries always fit."""
        n_characters = sum(len(one.text) for one in texts)
        if self.n_texts + len(texts) > self.max_texts or self.n_characters + n_characters > self.max_characters:
            self._drop_cancelled()
        is_full = self.n_texts + len(texts) > self.max_texts or self.n_characters + n_characters > self.max_characters
        if is_full and not is_retry and self.n_texts:
            raise QueueFullError(self.n_texts)
        if len(texts) > self.max_texts or n_characters > self.max_characters:
            raise ProblemError(
                413,
                f"The request has {len(texts):,} texts and {n_characters:,} characters; at most {self.max_texts:,} "
                f"texts and {self.max_characters:,} characters are allowed. Send several requests.",
            )
        for one in texts:
            self._kinds.setdefault(one.how, OrderedDict())[one] = None
            if is_retry:
                self._kinds[one.how].move_to_end(one, last=False)
        self.n_texts += len(texts)
        self.n_characters += n_characters

    def take(self, now: float, n_idle: int) -> list[QueuedText]:
        """Remove and return the next batch for one of `n_idle` idle workers; empty if nothing waits.

        Texts whose client has gone are dropped, and those whose deadline has passed are refused.
        """
        for how in list(self._kinds):
            waiting = self._kinds[how]
            self._drop_late(waiting, now)
            if not waiting:
                del self._kinds[how]
                continue
            batch = self._choose(waiting, n_idle)
            for one in batch:
                self._remove(waiting, one)
            if waiting:
                self._kinds.move_to_end(how)  # the next batch is of another kind, if there is one
            else:
                del self._kinds[how]
            return batch
        return []

    def refuse_all(self, error: Exception) -> None:
        """Answer everything that waits with an error."""
        for waiting in self._kinds.values():
            for one in waiting:
                if not one.answer.done():
                    one.answer.set_exception(error)
        self._kinds.clear()
        self.n_texts = self.n_characters = 0

    def _choose(self, waiting: "OrderedDict[QueuedText, None]", n_idle: int) -> list[QueuedText]:
        oldest = next(iter(waiting))
        n_wanted = min(self.batch_texts, -(-len(waiting) // max(1, n_idle)))
        similar = nsmallest(n_wanted, waiting, key=lambda one: abs(len(one.text) - len(oldest.text)))
        batch: list[QueuedText] = []
        n_characters = 0
        for one in [oldest, *(one for one in similar if one is not oldest)][:n_wanted]:
            n_characters += len(one.text)
            if batch and n_characters > self.batch_characters:
                break
            batch.append(one)
        return batch

    def _drop_cancelled(self) -> None:
        for waiting in self._kinds.values():
            for one in [one for one in waiting if one.answer.done()]:
                self._remove(waiting, one)

    def _drop_late(self, waiting: "OrderedDict[QueuedText, None]", now: float) -> None:
        for one in [one for one in waiting if one.answer.done() or one.deadline <= now]:
            self._remove(waiting, one)
            if not one.answer.done():
                one.answer.set_exception(ProblemError(504, "No worker was free before the deadline. Try again later."))

    def _remove(self, waiting: "OrderedDict[QueuedText, None]", one: QueuedText) -> None:
        del waiting[one]
        self.n_texts -= 1
        self.n_characters -= len(one.text)


class QueueFullError(Exception):
    """The queue has no room; the argument is the number of waiting texts."""

    def __init__(self, n_waiting: int) -> None:
        self.n_waiting = n_waiting
        super().__init__(n_waiting)
