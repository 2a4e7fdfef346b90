"""Times and speed on an idle and on a busy machine: estimates against runs, and training beside busy loops.

`make busy-check DATA=../shared/data`, on an idle machine; about 20 minutes on two cores. Results go to busy.json and
busy.md.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "speed"))

from frame import stamp  # noqa: E402

from manyheads.cli import SPIN_COUNT  # noqa: E402
from manyheads.cores import count_cores  # noqa: E402
from manyheads.proposals.cost_estimate import thread_speedup  # noqa: E402
from manyheads.settings import to_toml  # noqa: E402
from manyheads.tasks import TASKS  # noqa: E402

LOADS = (0, 2, 10)
TOKENS = 1500  # of a batch
SECONDS = 8.0  # of training for each speed
SPIN_COUNTS = (100, 500, 2000, 10_000, 50_000)
# Variables of OpenMP, and threads.
VARIANTS: dict[str, tuple[dict[str, str], int]] = {
    "1 thread": ({}, 1),
    "2 threads, OMP_WAIT_POLICY=passive": ({"OMP_WAIT_POLICY": "passive"}, 2),
    **{f"2 threads, spin {count:,} times": ({"GOMP_SPINCOUNT": str(count)}, 2) for count in SPIN_COUNTS},
}
CHOSEN = f"2 threads, spin {SPIN_COUNT:,} times"
# A program that ends by itself, should this one be killed.
_LOOP = "import time\nend = time.time() + 900\nwhile time.time() < end: pass"


@contextmanager
def busy_loops(number: int) -> Iterator[None]:
    """Within, so many processes compute all the time."""
    loops = [subprocess.Popen([sys.executable, "-c", _LOOP]) for _ in range(number)]
    try:
        time.sleep(1.0 if number else 0.0)
        yield
    finally:
        for loop in loops:
            loop.kill()
        for loop in loops:
            loop.wait()


def train_on_request(n_threads: int) -> None:
    """The worker: prepare the quickstart translator, then train for `SECONDS` for every line of standard input."""
    import torch

    torch.set_num_threads(n_threads)
    from manyheads.bench.training_speed import Sentences
    from manyheads.model import ModelSettings, Transformer
    from manyheads.tasks import Seq2Seq, Seq2SeqSettings, TrainingData
    from manyheads.training import Trainer, TrainSettings

    with Sentences.make() as sentences:
        settings = ModelSettings.preset("tiny", vocab_size=sentences.tokenizer.vocab_size)
        torch.manual_seed(1)
        task = Seq2Seq(Transformer(settings), sentences.tokenizer, Seq2SeqSettings())
        training_task = task.training_task(TrainingData(sentences.encoded, TOKENS))
        schedule = TrainSettings(steps=10**6, batch_tokens=TOKENS, learning_rate=1e-3, warmup=100)
        steps = Trainer(task.module, training_task, schedule, width=settings.width, seed=1).run()
        next(steps)
        print("ready", flush=True)
        for _ in sys.stdin:
            started, n_tokens = time.perf_counter(), 0
            while (spent := time.perf_counter() - started) < SECONDS:
                n_tokens += next(steps).n_tokens
            print(n_tokens / spent, flush=True)


def measure_speed() -> dict[str, dict[str, float]]:
    """Tokens per second of each variant at each load; one variant at a time."""
    speeds: dict[str, dict[str, float]] = {}
    for name, (variables, n_threads) in VARIANTS.items():
        words = [sys.executable, __file__, "--worker", str(n_threads)]
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "GOMP_"))}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(words, env=environment | variables, **pipes) as worker:
            assert worker.stdin is not None and worker.stdout is not None
            worker.stdout.readline()
            speeds[name] = {}
            for load in LOADS:
                with busy_loops(load):
                    print("go", file=worker.stdin, flush=True)
                    speeds[name][str(load)] = float(worker.stdout.readline())
            worker.stdin.close()
        print(name, {load: round(speed) for load, speed in speeds[name].items()}, flush=True)
    return speeds


def command(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "manyheads", *words], check=True, capture_output=True, text=True)
    return done.stdout


def recipes_of(folder: Path, data: Path) -> dict[str, list[str]]:
    """The arguments of `plan` and `train` for three recipes; that of banking77 comes from `init`, at both loads."""
    quickstart = folder / "quickstart.toml"
    quickstart.write_text(to_toml(TASKS["seq2seq"].quickstart.make_recipe("en-zh", 300)))  # type: ignore[union-attr]
    classifier = folder / "banking77.toml"
    command("init", str(data / "banking77"), "-o", str(classifier))
    language = HERE.parent / "recipes" / "tinyshakespeare.toml"
    return {
        "quickstart, 300 steps": [str(quickstart)],
        "banking77 by init, 1,000 steps": [str(classifier), "train.steps=1000"],
        "tinyshakespeare, 100 steps": [str(language), f"data.folder={data / 'tinyshakespeare'}", "train.steps=100"],
    }


def train(words: list[str], folder: Path) -> dict[str, float]:
    """Train, and return the wall-clock seconds and the peak memory of the process."""
    words = [sys.executable, "-m", "manyheads", "train", *words, "-o", str(folder / "run"), "--plain"]
    started = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, env=os.environ | {"MANYHEADS_CACHE": str(folder)})
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} failed with {process.returncode}")
    return {"seconds": time.perf_counter() - started, "memory": usage.ru_maxrss * 1024.0}


def measure_estimates(data: Path) -> dict[str, dict[str, Any]]:
    """The time and the memory that `plan` estimates at loads 0 and 10, and those of the run at load 0."""
    results: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        recipes = recipes_of(Path(scratch), data)
        with busy_loops(LOADS[-1]):
            again = Path(scratch) / "again.toml"
            command("init", str(data / "banking77"), "-o", str(again))
        if again.read_bytes() != (Path(scratch) / "banking77.toml").read_bytes():
            raise SystemExit("init proposed another recipe on a busy machine.")
        for name, words in recipes.items():
            plans = {}
            for load in (0, LOADS[-1]):
                with busy_loops(load):
                    plans[load] = json.loads(command("plan", *words, "--json"))
            with tempfile.TemporaryDirectory(dir=scratch) as folder:
                taken = train(words, Path(folder))
            results[name] = {
                "idle": plans[0]["seconds"]["total"],
                "busy": plans[LOADS[-1]]["seconds"]["total"],
                "slowdown": plans[LOADS[-1]]["slowdown"],
                "taken": taken["seconds"],
                "memory": plans[0]["memory_bytes"]["replicated"]["total"],
                "peak": taken["memory"],
                "parts": {load: made["seconds"] for load, made in plans.items()},
            }
            print(name, {key: value for key, value in results[name].items() if key != "parts"}, flush=True)
    return results


def tables(results: dict[str, Any]) -> str:
    speeds, estimates = results["speed"], results["estimates"]
    lines = [
        "| training, tokens/s beside busy loops | " + " | ".join(f"{load} loops" for load in LOADS) + " |",
        "| --- |" + " ---: |" * len(LOADS),
    ]
    for name, by_load in speeds.items():
        lines.append(f"| {name} | " + " | ".join(f"{by_load[str(load)]:,.0f}" for load in LOADS) + " |")
    # Each of two threads gets c / (n + 2) of a core beside n loops on c cores, a whole one at most.
    fair = {load: speeds[CHOSEN]["0"] * min(1.0, results["cores"] / (load + 2)) for load in LOADS}
    lines.append("| fair share of 2 threads | " + " | ".join(f"{fair[load]:,.0f}" for load in LOADS) + " |")
    shares = (f"{speeds[CHOSEN][str(load)] / fair[load]:.2f}" for load in LOADS)
    lines += [f"| {CHOSEN} / fair share | " + " | ".join(shares) + " |", ""]
    lines += [
        "| recipe | estimate at load 0, s | at load 10, s | taken at load 0, s | load 0 / taken | load 10 / load 0 "
        "| memory estimated, GB | peak, GB | ratio |",
        "| --- |" + " ---: |" * 8,
    ]
    for name, one in estimates.items():
        lines.append(
            f"| {name} | {one['idle']:.0f} | {one['busy']:.0f} | {one['taken']:.0f} | {one['idle'] / one['taken']:.2f} "
            f"| {one['busy'] / one['idle']:.2f} | {one['memory'] / 1e9:.2f} | {one['peak'] / 1e9:.2f} "
            f"| {one['memory'] / one['peak']:.2f} |"
        )
    gain = speeds[CHOSEN]["0"] / speeds["1 thread"]["0"]
    assumed = thread_speedup(2, TOKENS / speeds["1 thread"]["0"])
    lines += ["", f"Speed-up of two threads on the idle machine: {gain:.2f} (`thread_speedup` assumes {assumed:.2f})."]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of banking77 and tinyshakespeare")
    parser.add_argument("--speed-only", action="store_true", help="only the speed of training, two minutes")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return train_on_request(options.worker)
    if not options.speed_only and options.data is None:
        parser.error("--data is needed for estimates; or give --speed-only")
    os.environ["MANYHEADS_LANG"] = "en"
    file = HERE / "busy.json"
    results = json.loads(file.read_text()) if file.exists() else {"estimates": {}}
    results |= stamp() | {"cores": count_cores(), "speed": measure_speed()}
    if not options.speed_only:
        results["estimates"] = measure_estimates(options.data.resolve())
    file.write_text(json.dumps(results, indent=1) + "\n")
    made = f"{results['date']}, {results['machine']}, load {results['load']} before the first loop"
    (HERE / "busy.md").write_text(
        f"# Idle and busy\n\n`make busy-check` ({made}). A loop is `while True: pass` in Python. See "
        "docs/decisions/0052 and 0053.\n\n" + tables(results) + "\n"
    )
    return None


if __name__ == "__main__":
    main()
