"""`manyheads predict --shards`: a job that answers the lines of large files by shards, in many processes.

All shards together have the bytes that `predict` would write. A shard is written at once or not at all, so a job that
was interrupted continues with the shards that are missing.
"""

import json
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from manyheads.cli.rendering.answer_lines import (
    BATCH_LINES,
    AnswerLines,
    PredictOptions,
    show_cut_off,
    show_errors,
    show_remarks,
)
from manyheads.messages import _, _n

if TYPE_CHECKING:
    from manyheads.answer.remarks import Remarks
    from manyheads.bulk.line_shards import Shard, ShardPlan
    from manyheads.bulk.shard_folder import ShardFolder
    from manyheads.bulk.shard_schedule import AnswerShard, Workers, WorkerTask

SHARD_LINES = 10_000
_N_ERRORS = 20  # of lines that are too long, shown at the end
_LOG_SECONDS = 30.0  # between two lines of progress, if standard error is not a terminal
_SCREEN_SECONDS = 0.5


@dataclass(frozen=True)
class ShardOptions:
    """How the lines are divided among processes."""

    shard_lines: int | None = None
    n_processes: int | None = None
    on: str = "local"  # or "ray"


def predict_shards(
    options: PredictOptions, files: Sequence[str], path: Path, division: ShardOptions, output: Path | None = None
) -> int:
    """Answer the lines of files into a folder of shards; return the exit code."""
    from manyheads.bulk.line_shards import plan_shards
    from manyheads.bulk.shard_folder import ShardFolder
    from manyheads.bulk.shard_schedule import WorkerTask, run_shards

    shard_lines = SHARD_LINES if division.shard_lines is None else division.shard_lines
    _check(files, shard_lines)
    options = replace(options, bundle=options.bundle.resolve())
    options.load()  # raises for a damaged bundle, and for options that it does not support
    plan = plan_shards([Path(file).resolve() for file in files], shard_lines)
    folder = ShardFolder(path.resolve(), len(plan.shards), ".jsonl" if options.as_json else ".txt")
    spec = _spec(options, plan)
    with folder.open(_job(spec, plan, shard_lines)):
        progress = _Progress(plan.n_lines)
        missing = [shard for shard in plan.shards if not folder.is_finished(shard.number)]
        progress.skip(plan.n_lines - sum(shard.n_lines for shard in missing), len(plan.shards) - len(missing))
        if missing:
            task = WorkerTask(open_answers, spec, str(folder.path), folder.n_shards, folder.suffix)
            n_processes = min(division.n_processes or _default_processes(options), len(missing))
            with closing(_workers(task, division.on, n_processes)) as workers:
                try:
                    run_shards(workers, missing, progress.add)
                finally:
                    progress.close()
            folder.sync()
        remarks = _remarks(folder)
        if output is not None:
            _join(folder, output, files)
    show_errors(remarks, _N_ERRORS)
    show_remarks(remarks)
    show_cut_off(remarks)
    _show_end(plan, path, folder.suffix, output)
    return 1 if remarks.n_errors else 0


def _check(files: Sequence[str], shard_lines: int) -> None:
    if "-" in files:
        raise click.UsageError(
            _("--shards reads its input more than once, which standard input does not allow. Name files.")
        )
    if shard_lines < 1 or shard_lines % BATCH_LINES:
        raise click.UsageError(
            _(
                "--shard-lines {shard_lines} is not a multiple of {batch_lines:,}, the lines that are answered "
                "together.",
                shard_lines=shard_lines,
                batch_lines=BATCH_LINES,
            )
        )
    from manyheads.text.reading.files import is_compressed

    compressed = [file for file in files if is_compressed(Path(file))]
    if compressed:
        raise click.UsageError(
            _(
                "{file} is compressed, so no process can start in its middle. Decompress it.",
                file=compressed[0],
            )
        )


def _default_processes(options: PredictOptions) -> int:
    from manyheads.cores import count_cores
    from manyheads.model.device import pick_device

    return count_cores() if pick_device(options.device).type == "cpu" else 1


def _workers(task: "WorkerTask", on: str, n_processes: int) -> "Workers":
    from manyheads.bulk.local_workers import LocalWorkers
    from manyheads.bulk.ray_workers import RayWorkers

    return RayWorkers(task, n_processes) if on == "ray" else LocalWorkers(task, n_processes)


def _spec(options: PredictOptions, plan: "ShardPlan") -> dict[str, Any]:
    """Return what a worker needs to answer any shard, as JSON values."""
    from manyheads.language import current
    from manyheads.storage import MANIFEST, sha256_of

    spec = {
        "language": current(),
        "bundle": str(options.bundle),
        "options": options.table(),
        "manifest": sha256_of(options.bundle / MANIFEST),
        "files": [asdict(file) for file in plan.files],
    }
    return dict(json.loads(json.dumps(spec, ensure_ascii=False)))


def _job(spec: dict[str, Any], plan: "ShardPlan", shard_lines: int) -> dict[str, Any]:
    """Return what the bytes of the shards depend on. Paths and the number of processes are not part of it."""
    from manyheads import __version__
    from manyheads.bulk.shard_folder import FORMAT

    return {
        "format": FORMAT,
        "manyheads": __version__,
        "bundle": spec["manifest"],
        "input": [{"name": Path(file.path).name, "sha256": file.sha256, "lines": file.n_lines} for file in plan.files],
        "options": spec["options"],
        "shard_lines": shard_lines,
        "shards": len(plan.shards),
    }


def open_answers(spec: dict[str, Any]) -> "AnswerShard":
    """Load the bundle in a worker process, and return what answers shards."""
    import logging

    from manyheads.answer.remarks import Remarks
    from manyheads.bulk.line_shards import LineSource
    from manyheads.errors import BundleError
    from manyheads.language import choose
    from manyheads.storage import MANIFEST, sha256_of

    choose(spec["language"])
    logging.getLogger("manyheads").setLevel(logging.ERROR)  # each worker would repeat the same notices
    options = PredictOptions.from_table(Path(spec["bundle"]), spec["options"])
    if sha256_of(options.bundle / MANIFEST) != spec["manifest"]:
        raise BundleError(
            _("{bundle} changed during the job. Restore it, and run the same command again.", bundle=options.bundle)
        )
    source = LineSource.from_table(spec["files"])
    lines = AnswerLines(options.load(), options, source.name_line)

    def answer(shard: "Shard", stream: TextIO) -> dict[str, Any]:
        lines.remarks = Remarks()
        start, waiting = shard.first + 1, source.lines(shard)
        while batch := list(islice(waiting, BATCH_LINES)):
            stream.writelines(f"{line}\n" for line in lines.write(batch, start))
            start += len(batch)
        return lines.remarks.table()

    return answer


def _remarks(folder: "ShardFolder") -> "Remarks":
    """Return the remarks on all lines."""
    from manyheads.answer.remarks import Remarks

    remarks = Remarks()
    for number in range(folder.n_shards):
        remarks.extend(folder.record(number)["remarks"])
    return remarks


def _join(folder: "ShardFolder", output: Path, files: Sequence[str]) -> None:
    from manyheads.cli.rendering.output import open_output

    with open_output(output, *files) as stream:
        folder.join(stream)


def _show_end(plan: "ShardPlan", path: Path, suffix: str, output: Path | None) -> None:
    lines = _n("1 line", "{n:,} lines", plan.n_lines)
    shards = _n("1 shard", "{n:,} shards", len(plan.shards))
    if output is not None:
        text = _("{lines} in {output}.", lines=lines, output=output)
    else:
        join = f"cat {path}/*{suffix} > FILE"
        text = _("{lines} in {shards}. Join them: {join}", lines=lines, shards=shards, join=join)
    click.echo(text, err=True)


class _Progress:
    """Shows lines done, their rate and the remaining time on standard error."""

    def __init__(self, n_lines: int) -> None:
        self.n_lines, self.n_skipped, self.n_done = n_lines, 0, 0
        self.started = self.shown = time.monotonic()
        self.on_screen = sys.stderr.isatty()

    def skip(self, n_lines: int, n_shards: int) -> None:
        """Count the lines of shards that earlier runs have finished."""
        self.n_skipped = n_lines
        if n_shards:
            text = _n("1 shard was finished before.", "{n:,} shards were finished before.", n_shards)
            click.echo(text, err=True)

    def add(self, shard: "Shard") -> None:
        """Count a finished shard."""
        self.n_done += shard.n_lines
        now = time.monotonic()
        if now - self.shown < (_SCREEN_SECONDS if self.on_screen else _LOG_SECONDS):
            return
        self.shown = now
        rate = self.n_done / max(now - self.started, 1e-9)
        done, left = self.n_skipped + self.n_done, self.n_lines - self.n_skipped - self.n_done
        clock = _clock(left / rate)
        text = _(
            "{done:,} of {n_lines:,} lines · {rate:,.0f} lines/s · {clock} left",
            done=done,
            n_lines=self.n_lines,
            rate=rate,
            clock=clock,
        )
        click.echo(f"\r{text} " if self.on_screen else text, err=True, nl=not self.on_screen)

    def close(self) -> None:
        """End the line of progress."""
        if self.on_screen and self.n_done:
            click.echo(err=True)


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"
