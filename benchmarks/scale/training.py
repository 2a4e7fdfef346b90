"""Training on several processes: the numbers of one, scaling, resharding, sharding and random kills.

    make scale                       all parts (half an hour); writes benchmarks/scale/training.md
    make scale ARGS="kills -n 10"    one part, smaller

Results are kept in benchmarks/scale/training.json, so that parts can be measured one by one.
"""

import argparse
import itertools
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(HERE)]

from table import write_page  # noqa: E402
from train.ranks import run_ranks  # noqa: E402

from manyheads import corpora  # noqa: E402
from manyheads.cores import count_cores  # noqa: E402
from manyheads.errors import CheckpointError  # noqa: E402
from manyheads.model.weights import read_tensors  # noqa: E402
from manyheads.run import follow_run, read_recipe, run  # noqa: E402
from manyheads.training import ProcessGroup  # noqa: E402

from faults.running import differences, entries, outcome, write_recipe  # noqa: E402

STEPS = 200
RESULTS = HERE / "training.json"


def write_larger_recipe(folder: Path) -> Path:
    """Write the recipe of the comparisons: 1 + 1 layers of width 64, dropout, subword sampling and EMA."""
    recipe = write_recipe(folder)
    for side, code in enumerate(("en", "de")):
        pairs = corpora.pairs("en", "de", "train", 4000)
        (folder / f"train.{code}").write_text("".join(f"{pair[side]}\n" for pair in pairs), "utf-8")
    return recipe


LARGER = [
    "model.width=64", "model.n_heads=4", "model.feed_forward_width=256", "model.n_encoder_layers=1",
    "model.n_decoder_layers=1", "model.dropout=0.1", "tokenizer.vocab_size=1000", "tokenizer.sampling=0.1",
    f"train.steps={STEPS}", "train.batch_tokens=400", "train.accumulation_steps=1", "train.micro_batches=4",
    "train.warmup=50", "train.learning_rate=0.002", f"train.validate_every={STEPS}", "train.save_every=100",
    "task.consistency=0.0",
]  # fmt: skip


def start(
    recipe: Path, folder: Path, overrides: list[str], n_processes: int, n_restarts: int = 3, n_threads: int = 1
) -> Any:
    """Start `manyheads train`, with a number of threads for each process."""
    words = ["train", str(recipe), *overrides, "-o", str(folder), "--plain"]
    words += ["--processes", str(n_processes), "--restarts", str(n_restarts)]
    return subprocess.Popen(
        [sys.executable, "-m", "manyheads", *words],
        stdout=Path(f"{folder}.out").open("a"),
        stderr=subprocess.STDOUT,
        env=os.environ | {"OMP_NUM_THREADS": str(n_threads), "MANYHEADS_CACHE": str(folder.parent / "cache")},
    )


def train(recipe: Path, folder: Path, overrides: list[str], n_processes: int, stop_at: int = 0) -> list[dict[str, Any]]:
    """Train in processes that are forked from one that has imported everything; return the log's steps."""
    results = run_ranks(n_processes, take_part, recipe, folder, overrides, stop_at, patience=3000)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return steps_of(folder)


def take_part(group: ProcessGroup, recipe: Path, folder: Path, overrides: list[str], stop_at: int) -> None:
    """Run as one of the processes; rank 0 stops after `stop_at` steps, if that is not 0."""
    settings = read_recipe(recipe, overrides)
    if not group.is_first:
        follow_run(settings, folder, group)
        return
    calls = itertools.count(1)
    for _ in run(settings, folder, lambda: next(calls) == stop_at, group):
        pass


def steps_of(folder: Path) -> list[dict[str, Any]]:
    found = {entry["step"]: entry for entry in entries(folder) if entry["event"] == "Step"}
    return [found[number] for number in sorted(found)]


def compare(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> dict[str, float]:
    """The largest relative difference of the loss over all steps, and that of the last step."""
    relative = [abs(a["loss"] - b["loss"]) / abs(a["loss"]) for a, b in zip(one, other, strict=True)]
    return {"steps": len(relative), "largest": max(relative), "last": relative[-1]}


def weights_difference(one: Path, other: Path) -> float:
    """The norm of the difference of the bundles' weights relative to the norm of the weights."""
    first, second = (
        read_tensors(folder / "bundle" / "weights.safetensors", CheckpointError) for folder in (one, other)
    )
    square = sum(float((first[name] - second[name]).double().square().sum()) for name in first)
    return (square / sum(float(value.double().square().sum()) for value in first.values())) ** 0.5


def measure_equality(folder: Path, count: int, minutes: float) -> dict[str, Any]:
    """1, 2 and 4 processes, whole and sharded: loss and weights."""
    recipe = write_larger_recipe(folder / "data")
    one = train(recipe, folder / "w1", LARGER, 1)
    results: dict[str, Any] = {}
    sharded = ["train.shard=true"]
    runs: list[tuple[str, int, list[str]]] = [
        ("2", 2, []),
        ("4", 4, []),
        ("2 sharded", 2, sharded),
        ("4 sharded", 4, sharded),
    ]
    for name, n_processes, extra in runs:
        made = folder / f"w{name.replace(' ', '-')}"
        steps = train(recipe, made, [*LARGER, *extra], n_processes)
        results[name] = compare(one, steps) | {"weights": weights_difference(folder / "w1", made)}
        print(name, results[name], flush=True)
    return results


def speed_of(steps: list[dict[str, Any]]) -> float:
    """The median of tokens per second after the first 20 steps."""
    return statistics.median(step["n_tokens"] / step["seconds"] for step in steps[20:])


SIZES = {
    "width 64, 1 + 1 layers, batches of 400 tokens": [*LARGER, "train.steps=150"],
    "width 256, 3 + 3 layers, batches of 2,000 tokens": [
        *LARGER, "model.width=256", "model.feed_forward_width=1024", "model.n_encoder_layers=3",
        "model.n_decoder_layers=3", "train.batch_tokens=2000", "train.steps=40", "train.validate_every=40",
    ],
}  # fmt: skip
LAYOUTS = {"1": (1, 1), "2": (2, 1), "4": (4, 1), "1, 2 threads": (1, 2)}  # processes, threads of each


def measure_scaling(folder: Path, count: int, minutes: float) -> dict[str, Any]:
    """Tokens per second of 1, 2 and 4 processes in turns: the median over three turns of a turn's median step."""
    recipe = write_larger_recipe(folder / "data")
    found: dict[str, dict[str, list[float]]] = {size: {layout: [] for layout in LAYOUTS} for size in SIZES}
    for turn in range(3):
        for size, overrides in SIZES.items():
            for layout, (n_processes, n_threads) in LAYOUTS.items():
                made = folder / f"{turn} {size} {layout}"
                assert start(recipe, made, overrides, n_processes, n_threads=n_threads).wait() == 0, made
                found[size][layout].append(speed_of(steps_of(made)))
                print(turn, size, layout, round(found[size][layout][-1]), flush=True)
    medians = {size: {name: statistics.median(turns) for name, turns in rows.items()} for size, rows in found.items()}
    return {"sizes": medians, "load": os.getloadavg()[2], "cores": count_cores()}


def measure_reshard(folder: Path, count: int, minutes: float) -> dict[str, Any]:
    """2 processes to step 70, 4 to step 140, 1 to the end, against one process from start to end."""
    recipe = write_larger_recipe(folder / "data")
    one = train(recipe, folder / "whole", LARGER, 1)
    parts = folder / "parts"
    for n_processes, n_steps in ((2, 70), (4, 70)):
        train(recipe, parts, LARGER, n_processes, n_steps)
    stops = [entry["step"] for entry in entries(parts) if entry["event"] == "Interrupted"]
    steps = train(recipe, parts, LARGER, 1)
    return compare(one, steps) | {"weights": weights_difference(folder / "whole", parts), "stops": stops}


def wait_for(condition: Any, process: Any, seconds: float = 600) -> bool:
    """Wait for a condition; return False if the process ends first."""
    deadline = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None:
            return False
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.02)
    return True


TINY = ["train.steps=150", "train.save_every=5", "train.validate_every=50"]


def measure_kills(folder: Path, count: int, minutes: float) -> dict[str, Any]:
    """Kill random ranks of a run of 2 processes; compare all its bytes with those of an undisturbed one."""
    recipe = write_recipe(folder / "data")
    assert start(recipe, folder / "whole", TINY, 2).wait() == 0
    expected = outcome(folder / "whole")
    rng = random.Random(1)
    restarts: list[float] = []
    killed = {"0": 0, "1": 0}
    n_runs = n_equal = 0
    deadline = time.monotonic() + 60 * minutes
    while len(restarts) < count and time.monotonic() < deadline:
        n_runs += 1
        made = folder / f"killed-{n_runs}"
        process = start(recipe, made, TINY, 2, n_restarts=count)
        while len(restarts) < count and time.monotonic() < deadline:
            before, wanted = len(times_of(made, "Step")), rng.randrange(12)
            if not wait_for(lambda: len(times_of(made, "Step")) >= before + wanted, process):  # noqa: B023
                break
            time.sleep(rng.random() * (0.05 if wanted else 5.0))  # without a step: while the processes start
            rank, moment = rng.randrange(2), time.time()
            if not kill_rank(process.pid, rank) or not wait_for(lambda: after(made, moment), process):  # noqa: B023
                break
            restarts.append(after(made, moment)[0] - moment)
            killed[str(rank)] += 1
            print(f"kill {len(restarts)}: rank {rank}, {restarts[-1]:.1f} s", flush=True)
        code = process.wait(1200)
        assert code == 0, Path(f"{made}.out").read_text()[-2000:]
        different = differences(expected, outcome(made))
        print(f"run {n_runs}: {different}", flush=True)
        n_equal += not different
    return {
        "kills": len(restarts), "by_rank": killed, "runs": n_runs, "equal": n_equal,
        "median": statistics.median(restarts), "longest": max(restarts), "load": os.getloadavg()[0],
    }  # fmt: skip


def times_of(made: Path, event: str) -> list[float]:
    return sorted(float(str(entry["time"])) for entry in entries(made) if entry["event"] == event)


def after(made: Path, moment: float) -> list[float]:
    """The times of the steps after the first start after a moment: rank 0 may log one more before it ends."""
    starts = [found for found in times_of(made, "Prepared") if found > moment]
    return [found for found in times_of(made, "Step") if starts and found > starts[0]]


def kill_rank(supervisor: int, rank: int) -> bool:
    """Kill the process of a rank by SIGKILL; return whether there was one."""
    for child in children(supervisor):
        try:
            environ = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"RANK={rank}".encode() in environ:
            os.kill(child, signal.SIGKILL)
            return True
    return False


def children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


PARTS = {"equality": measure_equality, "scaling": measure_scaling, "reshard": measure_reshard, "kills": measure_kills}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", default=[], help=f"some of {', '.join(PARTS)}; default: all")
    parser.add_argument("-n", type=int, default=50, help="number of kills")
    parser.add_argument("--minutes", type=float, default=60.0, help="no more kills after this time")
    arguments = parser.parse_args()
    for name in arguments.parts or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            result = PARTS[name](Path(folder), arguments.n, arguments.minutes) | {"date": time.strftime("%Y-%m-%d")}
        results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps(results | {name: result}, indent=1) + "\n", "utf-8")
        write_page()
        print(name, json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
