"""`sweep`: run every trial of an experiment in parallel processes, and yield events.

Each cell is tuned first: learning rates are tried on seeds of their own (see `tuning`), and the best mean decides. Then
the cell is run with the seeds that count, one seed of every cell after the other. A trial depends only on its cell,
seed and learning rate, so the results do not depend on the number of processes or on interruptions. Finished trials are
stored at once.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from manyheads.cores import count_cores
from manyheads.errors import LabError
from manyheads.lab.question import Arm, Condition, Question
from manyheads.lab.result_store import (
    ResultFolder,
    Results,
    Row,
    definition_digest,
    make_stamp,
    rounded,
    sort_rows,
)
from manyheads.lab.trial import DIVERGED
from manyheads.lab.tuning import best_rate, rate_beyond
from manyheads.messages import _n
from manyheads.storage import locked

_TUNING_SEED = 1000  # tuning uses seeds above this, so that no seed both chooses a rate and counts


@dataclass(frozen=True)
class SweepStarted:
    """The sweep starts, or resumes with the trials that are stored."""

    n_done: int
    n_all: int


@dataclass(frozen=True)
class TrialDone:
    """A trial has finished."""

    row: Row
    n_done: int
    n_all: int
    seconds_left: float | None


@dataclass(frozen=True)
class SweepDone:
    """All trials have finished, or the time is up."""

    results: Results
    path: Path
    n_missing: int = 0  # trials that the time did not suffice for


@dataclass(frozen=True)
class _Trial:
    """A trial to run."""

    arm: Arm
    condition: Condition
    seed: int
    learning_rate: float | None
    is_tuning: bool

    @property
    def key(self) -> tuple[str, str, int, float | None, bool]:
        return (self.arm.name, self.condition.name, self.seed, self.learning_rate, self.is_tuning)


SweepEvent = SweepStarted | TrialDone | SweepDone
RunTrial = Callable[[str, str, str, int, float | None, bool], Mapping[str, float]]


def run_trial(
    question: str, arm: str, condition: str, seed: int, learning_rate: float | None, is_full: bool
) -> Mapping[str, float]:
    """Run one trial of a question; called in a worker process."""
    from manyheads.lab.questions import QUESTIONS

    torch.set_num_threads(1)
    asked = QUESTIONS[question]
    setup = asked.cell_setup(asked.arm(arm), asked.condition(condition), is_full=is_full)
    if learning_rate is not None:
        setup = replace(setup, learning_rate=learning_rate)
    found = asked.trial(setup, seed)
    names = [measure.name for measure in asked.measures]
    return {name: found[name] for name in ([*names, DIVERGED] if DIVERGED in found else names)}


def sweep(
    question: Question,
    path: Path,
    *,
    is_full: bool = False,
    n_processes: int | None = None,
    run: RunTrial = run_trial,
    size: str | None = None,
    data: str = "",
    impossible: Mapping[str, str] | None = None,
    max_seconds: float | None = None,
) -> Iterator[SweepEvent]:
    """Run the experiment in the folder `path`, or resume it there; see `definition_digest` for `size` and `data`.

    After `max_seconds` no trial is started: the results then have cells with fewer seeds, or none.
    """
    path.mkdir(parents=True, exist_ok=True)
    size = size or ("full" if is_full else "default")
    n_processes = 1 if question.measures_time else n_processes or count_cores()
    with locked(path):
        folder = ResultFolder(path)
        begun = _Sweep(question, folder, size, data, n_processes, run, is_full, dict(impossible or {}), max_seconds)
        yield from begun.events()


def _start_worker(parent: int) -> None:
    """Prepare a worker process: Ctrl-C is for the parent, and if that is killed, the worker must not wait forever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class _ThisProcess:
    """Runs what is submitted at once."""

    def submit(self, call: RunTrial, *arguments: Any) -> "Future[Mapping[str, float]]":
        """Run it and return its result as a finished future."""
        future: Future[Mapping[str, float]] = Future()
        future.set_result(call(*arguments))
        return future


class _Sweep:
    """A sweep in progress."""

    def __init__(
        self,
        question: Question,
        folder: ResultFolder,
        size: str,
        data: str,
        n_processes: int,
        run: RunTrial,
        is_full: bool,
        impossible: Mapping[str, str],
        max_seconds: float | None,
    ) -> None:
        self.question, self.folder, self.size = question, folder, size
        self.n_processes, self.run, self.is_full, self.impossible = n_processes, run, is_full, impossible
        self.definition = definition_digest(question, size, data)
        self.rows = folder.read_rows(self.definition)
        self.cells = [cell for cell in question.cells() if cell[0].name not in impossible]
        self.submitted = set(self.rows)
        self.started, self.cpu_started = time.monotonic(), time.process_time()
        self.end = None if max_seconds is None else self.started + max_seconds
        self.n_resumed = len(self.rows)

    @property
    def n_all(self) -> int:
        """The number of trials as far as it is known: a grid of rates may grow."""
        rates = {(arm, condition, rate) for arm, condition, _, rate, is_tuning in self.submitted if is_tuning}
        for arm, condition in self.cells:
            if self.question.is_tuned(arm, condition):
                rates |= {(arm.name, condition.name, rate) for rate in self.question.learning_rates}
        return len(rates) * self.question.n_tuning_seeds + len(self.cells) * self.question.n_seeds

    def events(self) -> Iterator[SweepEvent]:
        """Run what is missing."""
        yield SweepStarted(len(self.rows), self.n_all)
        waiting = [trial for cell in self.cells for trial in self._next_trials(*cell)]
        self.submitted |= {trial.key for trial in waiting}
        if self.n_processes == 1:
            yield from self._run(_ThisProcess(), waiting)
        elif waiting:
            yield from self._run_in_pool(waiting)
        stamp = make_stamp(time.monotonic() - self.started, self.n_processes)
        if self.n_processes == 1:
            before = self.folder.earlier_stamp(self.definition).get("cpu_seconds", 0) if self.n_resumed else 0
            stamp["cpu_seconds"] = before + round(time.process_time() - self.cpu_started)
        if self.n_resumed:
            stamp["resumed"] = True
        results = Results(
            self.question.id, self.size, self.definition, stamp, sort_rows(self.rows.values()), dict(self.impossible)
        )
        yield SweepDone(results, self.folder.write_results(results), self.n_all - len(self.rows))

    def _run_in_pool(self, waiting: list[_Trial]) -> Iterator[TrialDone]:
        # Spawned, not forked: torch's threads do not survive a fork.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(
            self.n_processes, mp_context=context, initializer=_start_worker, initargs=(os.getpid(),)
        ) as pool:
            try:
                yield from self._run(pool, waiting)
            except BrokenProcessPool:
                raise LabError(
                    _n(
                        "A worker process ended unexpectedly; there may be too little memory. 1 trial is stored: run "
                        "the same command again to resume, with --processes 1 to use less memory.",
                        "A worker process ended unexpectedly; there may be too little memory. {n} trials are stored: "
                        "run the same command again to resume, with --processes 1 to use less memory.",
                        len(self.rows),
                    )
                ) from None
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for process in list((pool._processes or {}).values()):
                    process.terminate()
                raise

    def _run(self, pool: "ProcessPoolExecutor | _ThisProcess", waiting: list[_Trial]) -> Iterator[TrialDone]:
        running: dict[Future[Mapping[str, float]], _Trial] = {}
        while waiting or running:
            if self.end is not None and time.monotonic() > self.end:
                waiting = []
            waiting.sort(key=lambda trial: (not trial.is_tuning, trial.seed))
            while waiting and len(running) < self.n_processes:
                trial = waiting.pop(0)
                future = pool.submit(
                    self.run,
                    self.question.id,
                    trial.arm.name,
                    trial.condition.name,
                    trial.seed,
                    trial.learning_rate,
                    self.is_full,
                )
                running[future] = trial
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                trial = running.pop(future)
                row = record(trial.key, future.result())
                self.folder.append(row, self.definition)
                self.rows[row.key] = row
                if trial.is_tuning:  # the last trial of a cell's tuning makes its other trials known
                    following = self._next_trials(trial.arm, trial.condition)
                    found = [new for new in following if new.key not in self.submitted]
                    self.submitted |= {new.key for new in found}
                    waiting += found
                yield TrialDone(row, len(self.rows), self.n_all, self._seconds_left())

    def _seconds_left(self) -> float | None:
        n_new = len(self.rows) - self.n_resumed
        if n_new < 2 * self.n_processes:
            return None
        return (time.monotonic() - self.started) / n_new * (self.n_all - len(self.rows))

    def _next_trials(self, arm: Arm, condition: Condition) -> list[_Trial]:
        """The trials of a cell that can run now: those of tuning, and once they are done, the others."""
        question = self.question
        chosen: float | None = None
        if question.is_tuned(arm, condition):
            grid = set(question.learning_rates)
            while True:
                tuning = {rate: self._tuning_trials(arm, condition, rate) for rate in sorted(grid)}
                missing = [trial for trials in tuning.values() for trial in trials if trial.key not in self.rows]
                if missing:
                    return missing
                rows = {rate: [self.rows[trial.key] for trial in trials] for rate, trials in tuning.items()}
                chosen = best_rate(question, rows)
                beyond = rate_beyond(question, sorted(grid), chosen)
                if beyond is None:
                    break
                grid.add(beyond)
        trials = [_Trial(arm, condition, seed, chosen, False) for seed in range(1, 1 + question.n_seeds)]
        return [trial for trial in trials if trial.key not in self.rows]

    def _tuning_trials(self, arm: Arm, condition: Condition, rate: float) -> list[_Trial]:
        seeds = range(_TUNING_SEED + 1, _TUNING_SEED + 1 + self.question.n_tuning_seeds)
        return [_Trial(arm, condition, seed, rate, True) for seed in seeds]


def record(key: tuple[str, str, int, float | None, bool], found: Mapping[str, float]) -> Row:
    """The record of a trial; a run that diverged, and measures that are not finite, are named."""
    measures = {name: value for name, value in found.items() if name != DIVERGED}
    stored = rounded(measures)
    problem = "diverged" if found.get(DIVERGED) else "nan" if len(stored) < len(measures) else ""
    return Row(*key, measures=stored, problem=problem)
