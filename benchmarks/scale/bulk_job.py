"""A bulk job under kills: `manyheads predict --shards` must write the bytes of `manyheads predict`, whatever is killed.

    make bulk-kills                                   1,000,000 lines, 50 kills, in local processes and on Ray
    make bulk-kills ARGS="--lines 50000 --kills 10 --on local --keep-nothing"

The model is a tiny untrained classifier: kills test the job, not the model. Kill k happens when k of 51 parts of the
shards are finished: SIGKILL to a worker process, or to the command with everything it started. A command that has ended
is started again until it succeeds. The answers are compared byte by byte with those of one undisturbed process.
"""

import argparse
import os
import platform
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from pages import add_results

HERE = Path(__file__).parent
RESULTS = HERE / "bulk.md"
COMMAND_SHARE = {"local": 0.5, "ray": 0.2}  # of kills that hit the command; starting Ray takes long
THROUGHPUT_LINES = 300_000
TURNS = 3
HEAD = """# Bulk prediction: kills and throughput

`make bulk-kills` answers 1,000,000 lines with a tiny classifier while it kills workers (SIGKILL) and whole commands,
and compares the joined shards with the output of one undisturbed process. The time includes every restart. Throughput
is measured without kills, on fewer lines: lines per second of `predict` with one thread, of one worker process and of
one per core, start-up included.

| date | machine | on | lines, shards | kills: workers + commands | starts | seconds | bytes |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""


def write_bundle(path: Path) -> None:
    import torch

    from manyheads.bundle import Bundle
    from manyheads.decode import DecodeSettings
    from manyheads.model import ModelSettings, Transformer
    from manyheads.tasks import Classify, ClassifySettings
    from manyheads.text.tokens.tokenizer import Tokenizer, TokenizerSettings

    rows = [(f"the {noun} was {word}", word) for noun in ("film", "hotel", "meal") for word in ("great", "awful")]
    torch.manual_seed(1)
    tokenizer = Tokenizer.train(Classify.lines(rows), TokenizerSettings(vocab_size=340))
    settings = {"vocab_size": tokenizer.vocab_size, "shape": "encoder", "width": 16, "feed_forward_width": 32}
    model = Transformer(ModelSettings(**settings, n_heads=2, n_encoder_layers=1, max_length=32))  # type: ignore[arg-type]
    task = Classify.create(model, tokenizer, ClassifySettings(), rows)
    Bundle(task, DecodeSettings(), {"data": {"train": ["rows.tsv"]}, "task": {"kind": "classify"}}).save(path)


def write_lines(path: Path, n_lines: int) -> None:
    words = ["film", "hotel", "meal", "great", "awful", "the", "was", "not", "at", "all"]
    rng = random.Random(1)
    with path.open("w", encoding="utf-8") as stream:
        for number in range(n_lines):
            stream.write(" ".join(rng.choices(words, k=rng.randrange(8))) + f" {number}\n" if number % 1000 else "\n")


def start(*words: object) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "manyheads", "predict", *map(str, words)],
        stderr=subprocess.PIPE,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )


def family(pid: int) -> list[int]:
    """Return the processes that a process started, directly or not."""
    try:
        own = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return own + [further for child in own for further in family(child)]


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def workers_of(pid: int, on: str) -> list[int]:
    if on == "ray":
        return [one for one in family(pid) if name_of(one).startswith("ray::_answer")]
    return [one for one in family(pid) if "forkserver" in name_of(one) and not family(one)]


def kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def run_with_kills(words: list[object], job: Path, n_shards: int, n_kills: int, on: str) -> dict[str, object]:
    rng = random.Random(2)
    killed = {"workers": 0, "commands": 0}
    n_starts = 0
    began = time.monotonic()
    process: subprocess.Popen[bytes] | None = None
    while True:
        if process is None:
            process = start(*words)
            n_starts += 1
        time.sleep(0.05)
        code = process.poll()
        if code is not None:
            error = process.stderr.read().decode() if process.stderr else ""
            if code == 0:
                break
            if code > 0 and "failed 2 times" not in error:
                raise SystemExit(f"The job failed with exit code {code}: {error}")
            process = None
            continue
        n_finished = len(list(job.glob("*.txt")))
        n_killed = sum(killed.values())
        if n_killed < n_kills and n_finished * (n_kills + 1) >= (n_killed + 1) * n_shards:
            time.sleep(rng.uniform(0, 0.3))
            if rng.random() < COMMAND_SHARE[on]:
                killed["commands"] += kill(process.pid)
                process.wait()
                process = None
            elif workers := workers_of(process.pid, on):
                killed["workers"] += kill(rng.choice(workers))
    return {**killed, "starts": n_starts, "seconds": round(time.monotonic() - began)}


def measure_kills(folder: Path, bundle: Path, text: Path, plain: Path, on: str, n_lines: int, n_kills: int) -> str:
    job = folder / f"job-{on}"
    n_shards = -(-n_lines // 10_000)
    shard_lines = 10_000 if n_shards > n_kills else 1000 * max(1, n_lines // (2 * n_kills) // 1000)
    n_shards = -(-n_lines // shard_lines)
    words = [bundle, text, "--shards", job, "--shard-lines", shard_lines, "--on", on]
    result = run_with_kills(words, job, n_shards, n_kills, on)
    joined = folder / f"joined-{on}"
    with joined.open("wb") as stream:
        for shard in sorted(job.glob("*.txt")):
            stream.write(shard.read_bytes())
    is_equal = joined.read_bytes() == plain.read_bytes()
    partial = [path.name for path in job.glob(".*")]
    row = (
        f"| {stamp()} | {on} | {n_lines:,}, {n_shards} | {result['workers']} + {result['commands']} "
        f"| {result['starts']} | {result['seconds']} | {'equal' if is_equal else 'DIFFERENT'}"
        f"{f', left over: {partial}' if partial else ''} |\n"
    )
    print(row, end="", flush=True)
    if not is_equal:
        raise SystemExit("The bytes differ.")
    return row


def stamp() -> str:
    machine = f"{platform.system()} {platform.machine()}, {len(os.sched_getaffinity(0))} cores"
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC | {machine}, load {os.getloadavg()[0]:.1f}"


def measure_throughput(folder: Path, bundle: Path, text: Path, what: str) -> str:
    """Lines per second of one process, one worker and a worker per core: medians of turns, start-up included."""
    n_lines = len(text.read_bytes().splitlines())
    n_cores = len(os.sched_getaffinity(0))
    commands: dict[str, list[object]] = {"predict": ["-o", folder / "throughput.out"]}
    for count in (1, n_cores):
        commands[f"{count} worker(s)"] = ["--processes", count, "--shard-lines", 1000 * max(1, n_lines // 20_000)]
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(TURNS):
        for name, words in commands.items():
            job = [] if name == "predict" else ["--shards", folder / f"{what} {turn} {name}"]
            began = time.monotonic()
            if start(bundle, text, *words, *job).wait():
                raise SystemExit(f"{name} failed.")
            seconds[name].append(time.monotonic() - began)
    rates = " · ".join(f"{name} {n_lines / statistics.median(took):,.0f} lines/s" for name, took in seconds.items())
    ratios = [one / many for one, many in zip(seconds["predict"], seconds[f"{n_cores} worker(s)"], strict=True)]
    line = (
        f"\nThroughput ({stamp()}), {what}, {n_lines:,} lines, medians of {TURNS} turns: {rates}; {n_cores} workers to "
        f"one process: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}).\n"
    )
    print(line, flush=True)
    return line.replace(" | ", ", ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--on", choices=["local", "ray"], help="only one of them")
    parser.add_argument("--keep-nothing", action="store_true", help="print the results and write no file")
    parser.add_argument("--no-throughput", action="store_true")
    parser.add_argument("--throughput-only", action="store_true")
    parser.add_argument("--translator", type=Path, help="bundle whose throughput is measured, too")
    parser.add_argument("--sentences", type=Path, help="file that it translates")
    arguments = parser.parse_args()
    rows, notes = [], []
    with tempfile.TemporaryDirectory(prefix="manyheads-bulk-") as work:
        folder = Path(work)
        bundle, text, plain = folder / "bundle", folder / "text.txt", folder / "plain.txt"
        write_bundle(bundle)
        write_lines(text, arguments.lines)
        if not arguments.throughput_only:
            began = time.monotonic()
            if start(bundle, text, "-o", plain).wait():
                raise SystemExit("predict failed.")
            print(f"one process: {time.monotonic() - began:.0f} s", flush=True)
            for on in [arguments.on] if arguments.on else ["local", "ray"]:
                rows.append(measure_kills(folder, bundle, text, plain, on, arguments.lines, arguments.kills))
        if not arguments.no_throughput:
            fewer = folder / "throughput.txt"
            write_lines(fewer, min(THROUGHPUT_LINES, arguments.lines))
            notes.append(measure_throughput(folder, bundle, fewer, "the tiny classifier"))
        if arguments.translator:
            notes.append(measure_throughput(folder, arguments.translator, arguments.sentences, "a translator"))
    if not arguments.keep_nothing:
        add_results(RESULTS, HEAD, rows, notes)


if __name__ == "__main__":
    main()
