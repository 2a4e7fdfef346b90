"""Time and memory from a large parallel corpus to the first training steps.

    make ingest                 10 GB, into benchmarks/scale/ingest.json and a line of benchmarks/scale/ingest.md
    make ingest ARGS="--megabytes 200 --keep-nothing"

A child process runs a tiny recipe on synthetic text. Memory is that of the child and of all processes that it starts,
as the kernel reports it in smaps_rollup, sampled twice a second: the sum of Pss_Anon, which counts a page that
processes share once, and the sum of Pss_File, the resident pages of mapped files, which the kernel can drop.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from pages import add_results

HERE = Path(__file__).parent
HEAD = """# Ingest: from a large parallel corpus to the first training steps

| date | machine | corpus | total | MB/s (MB/CPU s) by stage | peak memory of ingestion |
| --- | --- | --- | --- | --- | --- |
"""
STEPS = 20
N_WORDS = 50_000
BLOCK = 20_000


def write_corpus(folder: Path, megabytes: int) -> tuple[list[str], int]:
    """Write two parallel files of `megabytes` in total: Zipf-distributed words, 12 per line, and some bad rows."""
    rng = np.random.default_rng(1)
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    lengths = rng.integers(2, 11, N_WORDS)
    words = [["".join(rng.choice(letters, n)) for n in lengths] for _ in (0, 1)]
    files = [folder / "corpus.xx", folder / "corpus.yy"]
    columns: list[list[str]] = []
    written = n_pairs = 0
    with files[0].open("wb") as source, files[1].open("wb") as target:
        while written < megabytes * 1_000_000:
            block = n_pairs // BLOCK
            if block % 20 == 0:  # generating lines takes longer than reading them: reuse them with another last word
                columns = _new_lines(rng, words)
            for stream, column, last_words in zip((source, target), columns, words, strict=True):
                end = f" {last_words[block]}\n"
                written += stream.write("".join(line + end if line else "\n" for line in column).encode())
            n_pairs += BLOCK
    return [str(file) for file in files], n_pairs


def _new_lines(rng: np.random.Generator, words: list[list[str]]) -> list[list[str]]:
    sizes = np.maximum(3, rng.poisson(12, BLOCK))
    ranks = (np.minimum(rng.zipf(1.3, int(sizes.sum())), N_WORDS) - 1).tolist()
    ends = np.cumsum(sizes).tolist()
    columns = [
        [
            " ".join([side[rank] for rank in ranks[end - size : end]])
            for size, end in zip(sizes.tolist(), ends, strict=True)
        ]
        for side in words
    ]
    for number in rng.integers(0, BLOCK, BLOCK // 50).tolist():  # 2 % duplicates
        for column in columns:
            column[number] = column[number // 2]
    for side, number in rng.integers(0, [2, BLOCK], (BLOCK // 200, 2)).tolist():  # 0.5 % bad rows
        columns[side][number] = ("", "bad \ufffd text", "word " * 90)[number % 3]
    return columns


def recipe_table(files: list[str]) -> dict[str, object]:
    return {
        "data": {"train": files},
        "model": {"width": 64, "n_heads": 4, "n_encoder_layers": 1, "n_decoder_layers": 1, "max_length": 128},
        "train": {"steps": 100_000, "batch_tokens": 2000},
    }


class MemorySampler(threading.Thread):
    """Samples memory in the background: the maxima since the last call of `take`, in MB."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = {"Pss_Anon": 0.0, "Pss_File": 0.0}

    def run(self) -> None:
        while True:
            self.sample()
            time.sleep(0.5)

    def sample(self) -> None:
        totals = dict.fromkeys(self.peak, 0.0)
        for pid in process_tree(os.getpid()):
            try:
                lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            except OSError:  # it has ended
                continue
            for line in lines:
                name, _, value = line.partition(":")
                if name in totals:
                    totals[name] += int(value.split()[0]) / 1000
        self.peak = {name: max(value, totals[name]) for name, value in self.peak.items()}

    def take(self) -> dict[str, float]:
        self.sample()
        peak, self.peak = self.peak, dict.fromkeys(self.peak, 0.0)
        return {name: round(value) for name, value in peak.items()}


def process_tree(pid: int) -> list[int]:
    """Return a process and all that it started."""
    tasks = Path(f"/proc/{pid}/task")
    try:
        children = [int(one) for task in tasks.iterdir() for one in (task / "children").read_text().split()]
    except OSError:
        children = []
    return [pid, *(one for child in children for one in process_tree(child))]


def child(folder: Path, files: list[str]) -> None:
    """Run the recipe up to its first steps; print the time and memory of each stage as JSON."""
    from manyheads.run import Prepared, Recipe, Stage, run
    from manyheads.training import Step

    sampler = MemorySampler()
    sampler.start()
    stages: list[dict[str, object]] = []
    name, started, record = "reading the files (SHA-256)", (time.perf_counter(), cpu_seconds()), {}

    def end_stage(following: str) -> None:
        nonlocal name, started
        now = (time.perf_counter(), cpu_seconds())
        wall, cpu = (round(after - before, 1) for before, after in zip(started, now, strict=True))
        stages.append({"stage": name, "seconds": wall, "cpu_seconds": cpu, **sampler.take()})
        print(stages[-1], file=sys.stderr, flush=True)
        name, started = following, now

    for event in run(Recipe.from_table(recipe_table(files)), folder):
        if isinstance(event, Stage):
            end_stage(event.description)
        elif isinstance(event, Prepared):
            end_stage(f"planning and {STEPS} steps")
            record = {"n_pairs": event.n_rows, "dropped": dict(event.dropped)}
        elif isinstance(event, Step) and event.step == STEPS:
            end_stage("")
            break
    ingest = stages[:-1]  # without planning and training
    peak = {kind: max(stage[f"Pss_{kind}"] for stage in ingest) for kind in ("Anon", "File")}  # type: ignore[type-var]
    print(json.dumps({**record, "stages": stages, "peak_anonymous_mb": peak["Anon"], "peak_file_mb": peak["File"]}))


def cpu_seconds() -> float:
    """Return the CPU time of this process and of those it started that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def measure(megabytes: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="manyheads-ingest-") as work:
        folder = Path(work)
        files, n_pairs = write_corpus(folder, megabytes)
        size = sum(Path(file).stat().st_size for file in files) / 1e6
        print(f"{size:,.0f} MB, {n_pairs:,} pairs written", file=sys.stderr)
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, __file__, "--child", work, *files],
            stdout=subprocess.PIPE,
            check=True,
            env=os.environ | {"MANYHEADS_CACHE": str(folder / "cache")},
        )
        seconds = time.perf_counter() - started
    result = json.loads(done.stdout)
    for stage in result["stages"]:
        for kind in ("", "cpu_"):
            stage[f"mb_per_{kind}second"] = round(size / max(stage[f"{kind}seconds"], 0.1), 1)
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{platform.system()} {platform.machine()}, {len(os.sched_getaffinity(0))} core(s)",
        "load": round(os.getloadavg()[0], 1),  # other processes on the same cores increase seconds, not CPU seconds
        "megabytes": round(size),
        "pairs": n_pairs,
        "seconds": round(seconds),
        **result,
    }


def report(result: dict[str, object]) -> None:
    (HERE / "ingest.json").write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    stages = result["stages"]
    assert isinstance(stages, list)
    speeds = " · ".join(
        f"{stage['stage']} {stage['mb_per_second']:.0f} ({stage['mb_per_cpu_second']:.0f})" for stage in stages[:-1]
    )
    line = (
        f"| {result['date']} | {result['machine']}, load {result['load']} | {result['megabytes']:,} MB, "
        f"{result['pairs']:,} pairs | {result['seconds']:,} s | {speeds} | {result['peak_anonymous_mb']:,} MB + "
        f"{result['peak_file_mb']:,} MB of files |\n"
    )
    add_results(HERE / "ingest.md", HEAD, [line])
    print(line, end="")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=10_000)
    parser.add_argument("--keep-nothing", action="store_true", help="print the result and write no files")
    parser.add_argument("--child", nargs=3, metavar=("FOLDER", "SOURCE", "TARGET"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(Path(arguments.child[0]) / "run", arguments.child[1:])
    elif arguments.keep_nothing:
        print(json.dumps(measure(arguments.megabytes), indent=2))
    else:
        report(measure(arguments.megabytes))


if __name__ == "__main__":
    main()
