"""How fast, and in how much memory, a large parallel corpus becomes the first steps of training.

    make ingest                 2 GB, into benchmarks/ingest.json and a line of benchmarks/ingest.md
    make ingest ARGS="--megabytes 200 --keep-nothing"

A child process carries out a tiny recipe on synthetic text. Its memory is what the kernel says: the largest resident
set of the whole process (ru_maxrss, which counts the pages of mapped files too), and VmRSS and its anonymous part
sampled twice a second for each stage.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
STEPS = 20
VOCABULARY = 50_000
PAIRS_AT_ONCE = 20_000


def write_corpus(folder: Path, megabytes: int) -> tuple[list[str], int]:
    """Two parallel files of about `megabytes` together: Zipf's words, 12 a line, with duplicates and blemishes."""
    chance = np.random.default_rng(1)
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    lengths = chance.integers(2, 11, VOCABULARY)
    words = [["".join(chance.choice(letters, n)) for n in lengths] for _ in (0, 1)]
    files = [folder / "corpus.xx", folder / "corpus.yy"]
    columns: list[list[str]] = []
    written = n_pairs = 0
    with files[0].open("wb") as source, files[1].open("wb") as target:
        while written < megabytes * 1_000_000:
            block = n_pairs // PAIRS_AT_ONCE
            if block % 20 == 0:  # making new lines takes longer than reading them: they come again, with another end
                columns = _new_lines(chance, words)
            for stream, column, vocabulary in zip((source, target), columns, words, strict=True):
                end = f" {vocabulary[block]}\n"
                written += stream.write("".join(line + end if line else "\n" for line in column).encode())
            n_pairs += PAIRS_AT_ONCE
    return [str(file) for file in files], n_pairs


def _new_lines(chance: np.random.Generator, words: list[list[str]]) -> list[list[str]]:
    sizes = np.maximum(3, chance.poisson(12, PAIRS_AT_ONCE))
    ranks = (np.minimum(chance.zipf(1.3, int(sizes.sum())), VOCABULARY) - 1).tolist()
    ends = np.cumsum(sizes).tolist()
    columns = [
        [
            " ".join([side[rank] for rank in ranks[end - size : end]])
            for size, end in zip(sizes.tolist(), ends, strict=True)
        ]
        for side in words
    ]
    for number in chance.integers(0, PAIRS_AT_ONCE, PAIRS_AT_ONCE // 50).tolist():  # 2 % duplicates
        for column in columns:
            column[number] = column[number // 2]
    for side, number in chance.integers(0, [2, PAIRS_AT_ONCE], (PAIRS_AT_ONCE // 200, 2)).tolist():  # 0.5 % blemishes
        columns[side][number] = ("", "bad \ufffd text", "word " * 90)[number % 3]
    return columns


def recipe_table(files: list[str]) -> dict[str, object]:
    return {
        "data": {"train": files},
        "model": {"width": 64, "n_heads": 4, "n_encoder_layers": 1, "n_decoder_layers": 1, "max_length": 128},
        "train": {"steps": 100_000, "batch_tokens": 2000},
    }


class Watch(threading.Thread):
    """The largest VmRSS and RssAnon since the last time somebody asked, in MB."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = {"VmRSS": 0.0, "RssAnon": 0.0}

    def run(self) -> None:
        while True:
            self.look()
            time.sleep(0.5)

    def look(self) -> None:
        for line in Path("/proc/self/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name in self.peak:
                self.peak[name] = max(self.peak[name], int(value.split()[0]) / 1000)

    def take(self) -> dict[str, float]:
        self.look()
        peak, self.peak = self.peak, dict.fromkeys(self.peak, 0.0)
        return {name: round(value) for name, value in peak.items()}


def child(folder: Path, files: list[str]) -> None:
    """Carry the recipe out to its first steps; print what each stage took as JSON."""
    from manyheads.run import Prepared, Recipe, Stage, run
    from manyheads.train import Step

    watch = Watch()
    watch.start()
    stages: list[dict[str, object]] = []
    name, started, record = "reading the files (SHA-256)", (time.perf_counter(), time.process_time()), {}

    def end_stage(following: str) -> None:
        nonlocal name, started
        now = (time.perf_counter(), time.process_time())
        seconds, cpu_seconds = (round(after - before, 1) for before, after in zip(started, now, strict=True))
        stages.append({"stage": name, "seconds": seconds, "cpu_seconds": cpu_seconds, **watch.take()})
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
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(json.dumps({**record, "stages": stages, "peak_resident_mb": round(peak)}))


def measure(megabytes: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="manyheads-ingest-") as place:
        folder = Path(place)
        files, n_pairs = write_corpus(folder, megabytes)
        size = sum(Path(file).stat().st_size for file in files) / 1e6
        print(f"{size:,.0f} MB, {n_pairs:,} pairs written", file=sys.stderr)
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, __file__, "--child", place, *files],
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
        "load": round(os.getloadavg()[0], 1),  # others' work on the same cores stretches seconds, not CPU seconds
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
        f"{result['pairs']:,} pairs | {result['seconds']:,} s | {speeds} | {result['peak_resident_mb']:,} MB |\n"
    )
    with (HERE / "ingest.md").open("a", encoding="utf-8") as stream:
        stream.write(line)
    print(line, end="")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=2000)
    parser.add_argument("--keep-nothing", action="store_true", help="print the result, but write no files")
    parser.add_argument("--child", nargs=3, metavar=("FOLDER", "SOURCE", "TARGET"), help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.child:
        child(Path(words.child[0]) / "run", words.child[1:])
    elif words.keep_nothing:
        print(json.dumps(measure(words.megabytes), indent=2))
    else:
        report(measure(words.megabytes))


if __name__ == "__main__":
    main()
