"""`BatchQueue`: texts that wait for a worker, which client's turn it is, and which texts to answer together.

Clients share the workers by start-time fair queueing: each has a clock that advances by the expected seconds of its
texts, and the one whose clock is behind comes next. A batch has texts of one kind (the same bundle and options) and of
similar length. The queue is bounded: when it is full, the client that waits for the most work is refused.
"""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from heapq import nsmallest

from manyheads.messages import Message, _
from manyheads.serve.service.problems import ProblemError

LONG = 0.25  # expected seconds of a text that is answered beside the batches of others instead of before them
_ACTIVE = 5.0  # seconds after its last text during which a client has a share of every batch
_SMALL = 4  # texts that are not divided further: each batch has a cost of its own


@dataclass(eq=False)
class QueuedText:
    """One text of a request; `answer` receives the answer as JSON."""

    key: str  # of the request
    text: str
    deadline: float  # in seconds of the event loop's clock
    answer: "asyncio.Future[str]"
    client: str = ""
    bundle: str = ""
    cost: float = 1.0  # in tokens, see `answer_cost`
    seconds: float = 0.0  # that a worker is expected to need
    n_attempts: int = 0  # workers that stopped while they had it

    @property
    def kind(self) -> tuple[bool, str]:
        """Texts of the same kind can be answered together; the first part is whether it is long."""
        return self.seconds > LONG, self.key


_Texts = OrderedDict[QueuedText, None]  # oldest first


@dataclass(eq=False)
class _Client:
    clocks: list[float]  # expected seconds of short and of long texts that it has had, or did not ask for
    active: float = 0.0  # when it last had a text in the queue
    seconds: float = 0.0  # expected, of its waiting texts
    kinds: OrderedDict[tuple[bool, str], _Texts] = field(default_factory=OrderedDict)

    def next_kind(self, is_long: bool) -> tuple[bool, str] | None:
        return next((kind for kind in self.kinds if kind[0] == is_long), None)


@dataclass
class BatchQueue:
    """Waiting texts by client and kind."""

    n_workers: int
    max_texts: int
    max_characters: int
    batch_texts: int
    batch_seconds: float
    _clients: dict[str, _Client] = field(default_factory=dict)
    _clocks: list[float] = field(default_factory=lambda: [0.0, 0.0])  # of the client that was served last
    n_texts: int = 0
    n_characters: int = 0
    seconds: float = 0.0  # expected, of all waiting texts

    @property
    def n_clients(self) -> int:
        """The number of clients with texts in the queue, now or a short while ago."""
        return len(self._clients)

    @property
    def retry_after(self) -> int:
        """About how long the workers need for what waits, in whole seconds."""
        return max(1, round(self.seconds / self.n_workers))

    def add(self, texts: list[QueuedText], now: float, *, is_retry: bool = False) -> None:
        """Append the texts of a request, which has a client; raise a ProblemError if they do not all fit.

        Retries always fit. If the queue is full and another client waits for more work than this one then would, the
        newest texts of that client are refused instead.
        """
        if not is_retry:
            self._make_room(texts, now)
        for one in texts:
            client = self._clients.setdefault(one.client, _Client([0.0, 0.0]))
            is_long = one.kind[0]
            if client.next_kind(is_long) is None:  # time in which it asked for nothing is not saved up
                client.clocks[is_long] = max(client.clocks[is_long], self._clocks[is_long])
            client.active = now
            client.seconds += one.seconds
            self.seconds += one.seconds
            client.kinds.setdefault(one.kind, OrderedDict())[one] = None
            if is_retry:
                client.kinds[one.kind].move_to_end(one, last=False)
                client.kinds.move_to_end(one.kind, last=False)
        self.n_texts += len(texts)
        self.n_characters += sum(len(one.text) for one in texts)

    def take(self, now: float, *, is_long: bool = False) -> list[QueuedText]:
        """Remove and return the next batch; empty if nothing waits. A batch of long texts has one.

        Texts whose client has gone are dropped, and those whose deadline has passed are refused.
        """
        self._drop_late(now)
        waiting = [client for client in self._clients.values() if client.next_kind(is_long)]
        if not waiting:
            return []
        first = min(waiting, key=lambda client: client.clocks[is_long])
        kind = first.next_kind(is_long)
        assert kind is not None
        self._clocks[is_long] = first.clocks[is_long]
        sharing = [first, *(client for client in waiting if client is not first and kind in client.kinds)]
        batch = self._choose([(client, client.kinds[kind]) for client in sharing])
        for one in batch:
            client = self._clients[one.client]
            self._remove(client, one)
            client.clocks[is_long] += one.seconds
        if kind in first.kinds:
            first.kinds.move_to_end(kind)  # its next batch is of another kind, if there is one
        return batch

    def refuse_all(self, error: Exception) -> None:
        """Answer everything that waits with an error."""
        for client, one in self._waiting():
            self._remove(client, one)
            if not one.answer.done():
                one.answer.set_exception(error)

    def _choose(self, sharing: list[tuple[_Client, _Texts]]) -> list[QueuedText]:
        """The oldest text of the first client, then texts of similar length, those of the client that is behind first.

        A batch has a part of what waits, so that whoever comes meanwhile does not wait for all of it. A client has its
        share of a batch, so that one with many texts does not slow down the others, and if the first client has no more
        than its share, the batch has no texts of clients with more: it would take longer for them.
        """
        oldest = next(iter(sharing[0][1]))
        n_own, most = max(1, self.batch_texts // self.n_clients), self.batch_seconds / self.n_clients
        if len(sharing[0][1]) <= n_own:
            sharing = [(client, texts) for client, texts in sharing if len(texts) <= n_own]
        n_each = -(-sum(len(texts) for _client, texts in sharing) // self.n_workers)
        is_long = oldest.kind[0]
        n_wanted = 1 if is_long else min(self.batch_texts, max(-(-n_each // 2), min(_SMALL, n_each)))
        ranked = []
        for client, texts in sharing:
            own = nsmallest(min(n_own, n_wanted), texts, key=lambda one: abs(len(one.text) - len(oldest.text)))
            if client is sharing[0][0]:
                own = [oldest, *(one for one in own if one is not oldest)]
            seconds = 0.0
            for number, one in enumerate(own[:n_own]):
                if number and seconds + one.seconds > most:
                    break
                ranked.append((client.clocks[is_long] + seconds, one))
                seconds += one.seconds
        ranked.sort(key=lambda pair: pair[0])
        batch: list[QueuedText] = []
        seconds = 0.0
        for _clock, one in ranked[:n_wanted]:
            seconds += one.seconds
            if batch and seconds > self.batch_seconds:
                break
            batch.append(one)
        return batch

    def _make_room(self, texts: list[QueuedText], now: float) -> None:
        """Refuse these texts, or those of the client that waits for the most work, until these fit."""
        n_characters = sum(len(one.text) for one in texts)
        if len(texts) > self.max_texts or n_characters > self.max_characters:
            raise ProblemError(
                413,
                _(
                    "The request has {n_texts:,} texts and {n_characters:,} characters; at most {max_texts:,} "
                    "texts and {max_characters:,} characters are allowed. Send several requests.",
                    n_texts=len(texts),
                    n_characters=n_characters,
                    max_texts=self.max_texts,
                    max_characters=self.max_characters,
                ),
            )

        def fits() -> bool:
            n_texts, characters = self.n_texts + len(texts), self.n_characters + n_characters
            return n_texts <= self.max_texts and characters <= self.max_characters

        if not fits():
            for client, one in self._waiting():
                if one.answer.done():
                    self._remove(client, one)
        own = self._clients.get(texts[0].client)
        needed = sum(one.seconds for one in texts) + (own.seconds if own else 0.0)
        share = (texts[0].deadline - now) * self.n_workers / max(1, self.n_clients)
        if own and own.kinds and needed > share:
            reason = Message(
                "Your requests need the workers for about {needed:.0f} s, and {share:.0f} s are yours.",
                needed=needed,
                share=share,
            )
            raise self._full(reason)
        while not fits():
            heaviest = max(self._clients.values(), key=lambda client: client.seconds)
            error = self._full(Message("The queue is full: {n_texts:,} texts are waiting.", n_texts=self.n_texts))
            if heaviest is own or heaviest.seconds <= needed:
                raise error
            newest = next(reversed(next(reversed(heaviest.kinds.values()))))
            self._remove(heaviest, newest)
            newest.answer.set_exception(error)

    def _full(self, reason: Message) -> ProblemError:
        wait = self.retry_after
        text = Message("{reason} Try again in {wait} s.", reason=reason, wait=wait)
        return ProblemError(429, text, {"Retry-After": str(wait)})

    def _waiting(self) -> list[tuple[_Client, QueuedText]]:
        return [(client, one) for client in self._clients.values() for kind in client.kinds.values() for one in kind]

    def _drop_late(self, now: float) -> None:
        """Drop texts that nobody waits for or that are too late, and clients that have not asked for a while."""
        for client, one in self._waiting():
            if not one.answer.done() and one.deadline <= now:
                one.answer.set_exception(
                    ProblemError(504, Message("No worker was free before the deadline. Try again later."))
                )
            if one.answer.done():
                self._remove(client, one)
        for name, client in list(self._clients.items()):
            if client.kinds:
                client.active = now
            elif client.active + _ACTIVE <= now:
                del self._clients[name]

    def _remove(self, client: _Client, one: QueuedText) -> None:
        del client.kinds[one.kind][one]
        if not client.kinds[one.kind]:
            del client.kinds[one.kind]
        client.seconds -= one.seconds
        self.seconds -= one.seconds
        self.n_texts -= 1
        self.n_characters -= len(one.text)
