"""The processes of `manyheads train`: starting them, and being one other than rank 0."""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

import click

from manyheads import language

if TYPE_CHECKING:
    from manyheads.training import ProcessGroup


def start_processes(words: Sequence[str], n_processes: int, n_restarts: int) -> NoReturn:
    """Run a command of manyheads in several processes, restart them after a crash, and exit as they do."""
    from manyheads.run.supervisor import supervise

    os.environ[language.VARIABLE] = language.current()
    # Rank 0 shows how to resume, so it has to know how it was started.
    command = [sys.executable, "-m", "manyheads", *words, "--processes", str(n_processes)]
    sys.exit(supervise(command, n_processes, n_restarts, lambda line: click.echo(line, err=True)))


def run_as_follower(recipe: Path, overrides: Sequence[str], folder: Path, group: "ProcessGroup") -> NoReturn:
    """Take part in a run as a process other than rank 0, and exit without a word: rank 0 reports."""
    from manyheads.errors import LostProcessError, ManyheadsError
    from manyheads.run import follow_run, read_recipe
    from manyheads.run.follower import refuse_start
    from manyheads.run.stopping import stop_signals

    def request_stop(number: int, frame: FrameType | None) -> None:
        if group.is_stop_requested:
            sys.exit(130)
        group.is_stop_requested = True

    for number in stop_signals():
        signal.signal(number, request_stop)
    try:
        with refuse_start(group):
            checked = read_recipe(recipe, overrides)
        follow_run(checked, folder, group)
    except LostProcessError:
        if not group.has_leader_failed():
            raise
        sys.exit(1)
    except (ManyheadsError, OSError):  # rank 0 reports it
        sys.exit(1)
    sys.exit(0)
