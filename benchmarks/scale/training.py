"""Training on several processes: the numbers of one, scaling, resharding, sharding and random kills.

    make scale                       all parts (half an hour); writes benchmarks/scale/training.md
    make scale ARGS="kills -n 10"    one part, smaller

Results are kept in benchmarks/scale/training.json, so that parts can be measured one by one.
"""

import argparse
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
sys.path.insert(0, str(ROOT / "tests"))

from manyheads import corpora  # noqa: E402
from manyheads.errors import CheckpointError  # noqa: E402
from manyheads.model.weights import read_tensors  # noqa: E402

from faults.running import differences, entries, outcome, write_recipe  # noqa: E402

STEPS = 200
RESULTS = HERE / "training.json"


def write_larger_recipe(folder: Path) -> Path:
    """Write the recipe of the comparisons: 2 + 2 layers of width 128, dropout, subword sampling and EMA."""
    recipe = write_recipe(folder)
    for side, code in enumerate(("en", "de")):
        pairs = corpora.pairs("en", "de", "train", 4000)
        (folder / f"train.{code}").write_text("".join(f"{pair[side]}\n" for pair in pairs), "utf-8")
    return recipe


LARGER = [
    "model.width=128", "model.n_heads=4", "model.feed_forward_width=512", "model.n_encoder_layers=2",
    "model.n_decoder_layers=2", "model.dropout=0.1", "tokenizer.vocab_size=2000", "tokenizer.sampling=0.1",
    f"train.steps={STEPS}", "train.batch_tokens=2000", "train.accumulation_steps=1", "train.micro_batches=4",
    "train.warmup=50", "train.learning_rate=0.002", f"train.validate_every={STEPS}", "train.save_every=100",
    "task.consistency=0.0",
]  # fmt: skip


def start(recipe: Path, folder: Path, overrides: list[str], n_processes: int, n_restarts: int = 3) -> Any:
    """Start `manyheads train`; every process has one thread."""
    words = ["train", str(recipe), *overrides, "-o", str(folder), "--plain"]
    words += ["--processes", str(n_processes), "--restarts", str(n_restarts)]
    return subprocess.Popen(
        [sys.executable, "-m", "manyheads", *words],
        stdout=Path(f"{folder}.out").open("a"),
        stderr=subprocess.STDOUT,
        env=os.environ | {"OMP_NUM_THREADS": "1", "MANYHEADS_CACHE": str(folder.parent / "cache")},
    )


def train(recipe: Path, folder: Path, overrides: list[str], n_processes: int) -> list[dict[str, Any]]:
    """Train, and return the log's steps."""
    code = start(recipe, folder, overrides, n_processes).wait()
    if code:
        raise SystemExit(f"{n_processes} processes: exit code {code}\n{Path(f'{folder}.out').read_text()[-2000:]}")
    return steps_of(folder)


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


def measure_equality(folder: Path, count: int) -> dict[str, Any]:
    """1, 2 and 4 processes, whole and sharded: loss, weights and speed."""
    recipe = write_larger_recipe(folder / "data")
    one = train(recipe, folder / "w1", LARGER, 1)
    results: dict[str, Any] = {"1": speeds(one)}
    for name, n_processes, extra in (("2", 2, []), ("4", 4, []), ("2 sharded", 2, ["train.shard=true"])):
        run = folder / f"w{name.replace(' ', '-')}"
        steps = train(recipe, run, [*LARGER, *extra], n_processes)
        results[name] = compare(one, steps) | speeds(steps) | {"weights": weights_difference(folder / "w1", run)}
        print(name, results[name], flush=True)
    return results


def speeds(steps: list[dict[str, Any]]) -> dict[str, float]:
    """Tokens per second after the first 20 steps: the median, and the tenth that other programs disturbed least."""
    found = sorted(step["n_tokens"] / step["seconds"] for step in steps[20:])
    return {"tokens_per_second": statistics.median(found), "undisturbed": found[len(found) * 9 // 10]}


def measure_reshard(folder: Path, count: int) -> dict[str, Any]:
    """2 processes to step 70, 4 to step 140, 1 to the end, against one process from start to end."""
    recipe = write_larger_recipe(folder / "data")
    one = train(recipe, folder / "whole", LARGER, 1)
    run = folder / "parts"
    for n_processes, stop_at in ((2, 70), (4, 140)):
        process = start(recipe, run, LARGER, n_processes)
        wait_for(lambda: any(s["step"] >= stop_at for s in steps_of(run)), process)  # noqa: B023
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130, Path(f"{run}.out").read_text()
    stops = [entry["step"] for entry in entries(run) if entry["event"] == "Interrupted"]
    steps = train(recipe, run, LARGER, 1)
    return compare(one, steps) | {"weights": weights_difference(folder / "whole", run), "stops": stops}


def wait_for(condition: Any, process: Any, seconds: float = 600) -> bool:
    """Wait for a condition; return False if the process ends first."""
    deadline = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None:
            return False
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.02)
    return True


TINY = ["train.steps=400", "train.save_every=5", "train.validate_every=50"]


def measure_kills(folder: Path, count: int) -> dict[str, Any]:
    """Kill random ranks of a run of 2 processes; compare all its bytes with those of an undisturbed one."""
    recipe = write_recipe(folder / "data")
    train(recipe, folder / "whole", TINY, 2)
    expected = outcome(folder / "whole")
    rng = random.Random(1)
    restarts: list[float] = []
    killed = {"0": 0, "1": 0}
    n_runs = n_equal = 0
    while len(restarts) < count:
        n_runs += 1
        run = folder / f"killed-{n_runs}"
        process = start(recipe, run, TINY, 2, n_restarts=count)
        while len(restarts) < count:
            before = n_steps_logged(run)
            wanted = rng.randrange(0, 20)
            if not wait_for(lambda: n_steps_logged(run) >= before + wanted, process):  # noqa: B023
                break
            time.sleep(rng.random() * (0.05 if wanted else 5.0))
            rank = rng.randrange(2)
            moment = time.time()
            if not kill_rank(process.pid, rank):
                continue
            if not wait_for(lambda: time_of_last_step(run) > moment or process.poll() is not None, process):  # noqa: B023
                break
            restarts.append(time_of_first_step_after(run, moment) - moment)
            killed[str(rank)] += 1
            print(f"kill {len(restarts)}: rank {rank} at step {before}+{wanted}, {restarts[-1]:.1f} s", flush=True)
        code = process.wait(600)
        assert code == 0, Path(f"{run}.out").read_text()[-2000:]
        n_equal += differences(expected, outcome(run)) == []
    restarts.sort()
    return {
        "kills": len(restarts), "by_rank": killed, "runs": n_runs, "equal": n_equal,
        "median": statistics.median(restarts), "longest": restarts[-1],
    }  # fmt: skip


def n_steps_logged(run: Path) -> int:
    return sum(entry["event"] == "Step" for entry in entries(run))


def times_of_steps(run: Path) -> list[float]:
    return [float(str(entry["time"])) for entry in entries(run) if entry["event"] == "Step"]


def time_of_last_step(run: Path) -> float:
    return max(times_of_steps(run), default=0.0)


def time_of_first_step_after(run: Path, moment: float) -> float:
    return min((found for found in times_of_steps(run) if found > moment), default=time.time())


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


PARTS = {"equality": measure_equality, "reshard": measure_reshard, "kills": measure_kills}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", default=[], help=f"some of {', '.join(PARTS)}; default: all")
    parser.add_argument("-n", type=int, default=50, help="number of kills")
    arguments = parser.parse_args()
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    for name in arguments.parts or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            results[name] = PARTS[name](Path(folder), arguments.n) | {"date": time.strftime("%Y-%m-%d")}
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
        print(name, json.dumps(results[name]), flush=True)


if __name__ == "__main__":
    main()
