"""Random inputs by the million: `make fuzz`.

A target is a function that makes one input from a `random.Random` and passes it to manyheads. It returns if the input
is accepted, and raises a ManyheadsError if it is refused. Anything else is a finding: another exception, a process that
dies, more than 10 seconds for one input, more than 1 GB of memory, an error message that floods the screen.

An input is a function of (target, seed, number), so the command that a finding prints replays it. To add targets, write
a module with a dictionary `TARGETS` in this folder and add its name to `MODULES`. Targets run in a temporary working
directory, where they may write files; a target must not depend on files of earlier inputs.
"""

import argparse
import importlib
import logging
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

from manyheads.errors import ManyheadsError

MODULES = ("reading", "recognition", "native", "recipes", "bundles")
FOLDER = Path("build/fuzz")  # where findings are saved
MEMORY = Path("/dev/shm")  # a filesystem in memory, where the files of inputs are written if there is one
LONGEST_MESSAGE = 3000  # characters
N_WORKERS = 2
MAX_FINDINGS = 100  # of one target, before it is given up

Target = Callable[[Random], None]


@dataclass(frozen=True)
class Limits:
    """What one input may use."""

    seconds: float = 10.0
    megabytes: float = 1000.0  # resident memory of the whole process


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True)
class Finding:
    """A kind of failure, with the number of the first input that shows it."""

    number: int
    title: str
    details: str
    count: int = 1


@dataclass
class Result:
    """The counts of one target."""

    target: str
    seed: int
    n_accepted: int = 0
    n_refused: int = 0
    seconds: float = 0.0
    peak_megabytes: float = 0.0
    findings: dict[str, Finding] = field(default_factory=dict)

    @property
    def n_inputs(self) -> int:
        return self.n_accepted + self.n_refused + self.n_findings

    @property
    def n_findings(self) -> int:
        return sum(finding.count for finding in self.findings.values())

    def add(self, finding: Finding) -> None:
        known = self.findings.get(finding.title)
        if known is not None:
            first = min(known, finding, key=lambda one: one.number)
            finding = replace(first, count=known.count + 1)
        self.findings[finding.title] = finding


class MessageTooLongError(Exception):
    """An error message that floods the screen."""


def all_targets() -> dict[str, str]:
    """Return the module of each target by the target's name."""
    return {name: module for module in MODULES for name in importlib.import_module(f"fuzz.{module}").TARGETS}


def load_target(name: str, module: str) -> Target:
    return importlib.import_module(f"fuzz.{module}").TARGETS[name]


def attempt(function: Target, name: str, seed: int, number: int) -> bool:
    """Do one input and return whether it was accepted. A finding raises."""
    try:
        function(Random(f"{name} {seed} {number}"))
    except ManyheadsError as error:
        if len(str(error)) > LONGEST_MESSAGE:
            raise MessageTooLongError(f"{len(str(error)):,} characters: {str(error)[:300]}") from error
        return False
    return True


def run_target(
    name: str,
    module: str,
    n_inputs: int,
    *,
    seed: int = 0,
    seconds: float = float("inf"),
    limits: Limits = DEFAULT_LIMITS,
    n_workers: int = N_WORKERS,
) -> Result:
    """Do up to `n_inputs` inputs in worker processes, which are watched and replaced if they fail."""
    result = Result(name, seed)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as scratch:
        workers = [
            _Worker((name, module, seed), range(index, n_inputs, n_workers), Path(scratch, str(index)), limits)
            for index in range(n_workers)
        ]
        try:
            working = workers
            deadline = float("inf")
            while working and time.monotonic() < deadline and result.n_findings < MAX_FINDINGS:
                time.sleep(0.02)
                working = [worker for worker in working if worker.watch(result)]
                if deadline == float("inf") and any(worker.has_started for worker in workers):
                    deadline = time.monotonic() + seconds  # the time to import a target does not count
        finally:
            for worker in workers:
                worker.stop(result)
    result.seconds = time.monotonic() - started
    return result


# The slots of the memory that a worker shares with the parent process.
_NUMBER, _STARTED, _ACCEPTED, _REFUSED, _PEAK = range(5)


class _Worker:
    """A process that does inputs one after another, and its watcher."""

    def __init__(self, target: tuple[str, str, int], numbers: range, scratch: Path, limits: Limits) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._state = self._context.Array("d", 5, lock=False)
        self._target, self._numbers, self._limits, self._scratch = target, numbers, limits, scratch
        self._start()

    def _start(self) -> None:
        shutil.rmtree(self._scratch, ignore_errors=True)  # a process that was killed leaves files
        self._scratch.mkdir()
        self._state[_NUMBER], self._state[_STARTED] = -1, 0.0
        self._findings, sender = self._context.Pipe(duplex=False)
        arguments = (*self._target, self._numbers, self._limits, self._scratch, self._state, sender)
        self._process = self._context.Process(target=_work, args=arguments, daemon=True)
        self._process.start()
        sender.close()

    @property
    def has_started(self) -> bool:
        """Whether the first input has begun."""
        return self._state[_NUMBER] >= 0

    def watch(self, result: Result) -> bool:
        """Collect findings, and replace a process that hangs, grows or has died. Return whether there is work left."""
        is_alive = self._process.is_alive()  # before its last messages are collected
        self._collect(result)
        fault = self._fault() if is_alive else ""
        if fault:
            self._process.kill()
            self._process.join()
        elif is_alive:
            return True
        elif self._process.exitcode:
            fault = _exit_name(self._process.exitcode)
        number = int(self._state[_NUMBER])
        if fault:
            result.add(Finding(number, fault, f"{fault}\n"))
        if number < 0:  # all numbers are done, or the target cannot be imported
            return False
        self._numbers = range(number, self._numbers.stop, self._numbers.step)[1:]
        self._start()
        return True

    def stop(self, result: Result) -> None:
        """End the process and add its counts."""
        self._process.kill()
        self._process.join()
        self._collect(result)
        result.n_accepted += int(self._state[_ACCEPTED])
        result.n_refused += int(self._state[_REFUSED])
        result.peak_megabytes = max(result.peak_megabytes, self._state[_PEAK])

    def _fault(self) -> str:
        started = self._state[_STARTED]
        if started and time.monotonic() - started > self._limits.seconds:
            return f"hangs for more than {self._limits.seconds:g} s"
        try:
            pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        except (OSError, IndexError):  # the process has ended, or this is not Linux
            return ""
        megabytes = pages * resource.getpagesize() / 1e6
        self._state[_PEAK] = max(self._state[_PEAK], megabytes)
        return _memory_fault(self._limits) if megabytes > self._limits.megabytes else ""

    def _collect(self, result: Result) -> None:
        try:
            while self._findings.poll():
                result.add(self._findings.recv())
        except (EOFError, OSError):
            return


def _work(
    name: str,
    module: str,
    seed: int,
    numbers: Sequence[int],
    limits: Limits,
    scratch: Path,
    state: "multiprocessing.sharedctypes.SynchronizedArray[float]",
    findings: Connection,
) -> None:
    """Do the inputs with these numbers; runs in a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.chdir(scratch)
    be_strict()
    function = load_target(name, module)
    for number in numbers:
        state[_NUMBER], state[_STARTED] = number, time.monotonic()
        finding = None
        outcome = _REFUSED
        try:
            outcome = _ACCEPTED if attempt(function, name, seed, number) else _REFUSED
        except (Exception, SystemExit) as error:
            finding = Finding(number, _title(error), traceback.format_exc())
        state[_STARTED] = 0.0
        peak = peak_megabytes()
        state[_PEAK] = max(state[_PEAK], peak)
        if peak > limits.megabytes:
            findings.send(Finding(number, _memory_fault(limits), f"The peak is {peak:.0f} MB.\n"))
            return  # the peak of a process never falls: the parent starts another
        if finding:
            findings.send(finding)
        else:
            state[outcome] += 1
    state[_NUMBER] = -1


def be_strict() -> None:
    """Make warnings errors, and do not print what is logged."""
    warnings.simplefilter("error")
    logging.getLogger("manyheads").addHandler(logging.NullHandler())


def peak_megabytes() -> float:
    """Return the maximum resident memory of this process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def _memory_fault(limits: Limits) -> str:
    return f"uses more than {limits.megabytes:g} MB"


def _exit_name(code: int) -> str:
    return f"dies with {signal.Signals(-code).name}" if code < 0 else f"exits with code {code}"


def _title(error: BaseException) -> str:
    """Return the type of an error and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__} at {Path(frames[-1].filename).name}:{frames[-1].lineno}"


def table(results: Sequence[Result]) -> str:
    """Return the results as a Markdown table."""
    rows = ["| target | inputs | per second | accepted | refused | peak MB | findings |"]
    rows.append("| :-- | --: | --: | --: | --: | --: | --: |")
    for one in results:
        rate = one.n_inputs / max(one.seconds, 1e-9)
        rows.append(
            f"| {one.target} | {one.n_inputs:,} | {rate:,.0f} | {one.n_accepted:,} | {one.n_refused:,} "
            f"| {one.peak_megabytes:,.0f} | {one.n_findings:,} |"
        )
    return "\n".join(rows)


def report(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def report_findings(result: Result) -> None:
    """Print the command that replays each finding, and save its details."""
    for one in result.findings.values():
        FOLDER.mkdir(parents=True, exist_ok=True)
        replay = f"make fuzz TARGET={result.target} SEED={result.seed} CASE={one.number}"
        saved = FOLDER / f"{result.target}-{result.seed}-{one.number}.txt"
        saved.write_text(f"{replay}\n{one.details}", "utf-8")
        report(f"  {one.title} ({one.count:,} inputs): {replay}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run targets, or replay one input. Return 1 if there is a finding."""
    parser = argparse.ArgumentParser(prog="make fuzz", description="Random inputs: see tests/fuzz/harness.py.")
    parser.add_argument("--target", default="", help="only these targets, separated by commas")
    parser.add_argument("--inputs", type=int, default=1000, help="inputs of each target")
    parser.add_argument("--seconds", type=float, default=600.0, help="of all targets together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="replay this input of the target")
    parser.add_argument("--record", type=Path, help="write the results to this file")
    options = parser.parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # of the workers, which share the cores already
    known = all_targets()
    names = options.target.split(",") if options.target else list(known)
    if unknown := sorted({*names} - {*known}):
        parser.error(f"unknown target: {', '.join(unknown)}. Known: {', '.join(known)}.")
    if options.case is not None:
        return _replay(names[0], known[names[0]], options.seed, options.case)
    results: list[Result] = []
    deadline = time.monotonic() + options.seconds
    for name in names:
        # A target that ends early leaves its time to those after it.
        seconds = (deadline - time.monotonic()) / (len(names) - len(results))
        results.append(run_target(name, known[name], options.inputs, seed=options.seed, seconds=seconds))
        report(table(results[-1:]).splitlines()[-1])
        report_findings(results[-1])
    report(f"\n{table(results)}\n\n{_summary(results)}")
    if options.record:
        _record(options.record, results)
    return 1 if any(one.findings for one in results) else 0


def _replay(name: str, module: str, seed: int, number: int) -> int:
    """Do one input in this process, where a debugger can see it."""
    function = load_target(name, module)
    be_strict()
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        started = time.monotonic()
        try:
            outcome = "accepted" if attempt(function, name, seed, number) else "refused"
        except Exception:
            traceback.print_exc()
            outcome = "finding"
    report(f"{outcome}, {time.monotonic() - started:.2f} s, peak {peak_megabytes():,.0f} MB")
    return 1 if outcome == "finding" else 0


def _summary(results: Sequence[Result]) -> str:
    n_inputs, seconds = sum(one.n_inputs for one in results), sum(one.seconds for one in results)
    kinds = sum(len(one.findings) for one in results)
    return f"{n_inputs:,} inputs in {seconds / 60:,.1f} minutes, {kinds} kinds of findings (seed {results[0].seed})."


def _record(file: Path, results: Sequence[Result]) -> None:
    """Write the table with the date and the machine."""
    cpu = Path("/proc/cpuinfo").read_text().partition("model name\t: ")[2].partition("\n")[0]
    date = time.strftime("%Y-%m-%d", time.gmtime())
    text = (
        "# Fuzzing: random inputs against the native engine, the readers, recipes and bundles\n\n"
        "A finding is an exception other than a ManyheadsError, a process that dies, more than 10 s for one input,\n"
        "more than 1 GB of memory, or an error message of more than 3,000 characters. Memory is that of the whole\n"
        "process. The targets are in `tests/fuzz/`; `make fuzz RECORD=1` writes this page.\n\n"
        f"{date}, {N_WORKERS} processes on {os.cpu_count()} cores ({cpu or 'unknown'}), Python "
        f"{sys.version.split()[0]}. {_summary(results)}\n\n{table(results)}\n"
    )
    file.write_text(text, "utf-8")


if __name__ == "__main__":
    sys.exit(main())
