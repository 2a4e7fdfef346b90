"""Ctrl-C while training: finish the step, save, and show how to resume. A second Ctrl-C quits at once."""

import signal
from types import FrameType, TracebackType


class StopRequest:
    """Becomes true at the first SIGINT or SIGTERM once armed; before that, they interrupt as usual."""

    def __init__(self) -> None:
        self.armed = False
        self.requested = False

    def __call__(self) -> bool:
        """Whether to stop."""
        return self.requested

    def __enter__(self) -> "StopRequest":
        self._before = {kind: signal.signal(kind, self._on_signal) for kind in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.requested or not self.armed:
            raise KeyboardInterrupt
        self.requested = True
