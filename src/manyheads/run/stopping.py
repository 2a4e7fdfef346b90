"""`StopRequest`: Ctrl-C, SIGTERM and `timeout` during a run. A second signal always interrupts at once."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType


def stop_signals() -> list[signal.Signals]:
    """The signals that stop a command. One that the caller had ignored, as a shell does for `&`, stays ignored."""
    return [kind for kind in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(kind) is not signal.SIG_IGN]


class StopRequest:
    """Turns SIGINT and SIGTERM into a KeyboardInterrupt or, within `deferred`, into a request that the run checks.

    As a context manager it handles the signals. `poll` is another source of requests; only calling the object asks it.
    """

    def __init__(self, poll: Callable[[], bool] = lambda: False) -> None:
        self.requested = False  # by a signal
        self._poll = poll
        self._is_deferred = False

    def __call__(self) -> bool:
        """Whether to stop."""
        return self.requested or self._poll()

    def __enter__(self) -> "StopRequest":
        self._before = {kind: signal.signal(kind, self._on_signal) for kind in stop_signals()}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Within, a signal is remembered, so that the run can save what it would lose."""
        with self._mode(is_deferred=True):
            yield

    @contextmanager
    def immediate(self) -> Iterator[None]:
        """Within, a signal interrupts at once; so does one that was remembered before."""
        with self._mode(is_deferred=False):
            if self.requested:
                raise KeyboardInterrupt
            yield

    @contextmanager
    def _mode(self, *, is_deferred: bool) -> Iterator[None]:
        before, self._is_deferred = self._is_deferred, is_deferred
        try:
            yield
        finally:
            self._is_deferred = before

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        is_second, self.requested = self.requested, True
        if is_second or not self._is_deferred:
            raise KeyboardInterrupt
