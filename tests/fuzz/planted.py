"""Planted bugs: the harness must find each of them. Only the tests of the harness run these targets."""

import os
import signal
import time
from pathlib import Path
from random import Random

from manyheads.errors import DataError


def _planted(bug: str) -> None:
    if bug == "raises":
        raise ZeroDivisionError
    if bug == "exits":
        raise SystemExit(3)
    if bug == "hangs":
        Path("left").mkdir()  # fails if the files of a killed process are still there
        time.sleep(60)
    if bug == "dies":
        os.kill(os.getpid(), signal.SIGSEGV)
    if bug == "grows":
        bytearray(b"x") * 700_000_000
    if bug == "floods":
        raise DataError("x" * 10_000)


def _target(bug: str):  # type: ignore[no-untyped-def]
    def target(rng: Random) -> None:
        number = rng.random()
        if number < 0.1:
            _planted(bug)
        if number < 0.4:
            raise DataError("refused")

    return target


TARGETS = {bug: _target(bug) for bug in ("none", "raises", "exits", "hangs", "dies", "grows", "floods")}
