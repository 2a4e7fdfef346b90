"""Repeat trials of the lab and compare them with the stored results; estimate how long each experiment takes.

    make lab-check                            three trials of every question, chosen at random
    make lab-check ARGS="scale --trials 10"   more trials of one question
    make lab-check ARGS="--fresh scale"       the key comparisons of a question again, with seeds that were never used
    make lab-all                              run every experiment from the start (an hour on two idle cores)

With --fresh, each cell trains at its stored learning rate with as many new seeds as the question has, or --seeds of
them, and the difference between the two effects is printed. Finished trials are stored in runs/lab-fresh; --minutes
starts no trial after that time, and what is missing is named. --store keeps the rows for docs/concepts/lab.md.

A stored number must be repeated to 1 part in 10⁶ on the same kind of processor; others round differently, and training
amplifies it. Times are not compared. Writes lab.md beside this file.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "speed"))

from frame import stamp  # noqa: E402

from manyheads.lab.lab_answers import Answered, shipped_answers  # noqa: E402
from manyheads.lab.replication import compare_fresh, replicate  # noqa: E402
from manyheads.lab.result_store import Results, make_stamp  # noqa: E402
from manyheads.lab.sweep import run_trial  # noqa: E402

_TOLERANCE = 1e-6
_TIMES = ("seconds", "time", "ms", "speed")  # in names of measures that depend on the load of the machine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", nargs="*")
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fresh", action="store_true", help="repeat the key comparisons with fresh seeds")
    parser.add_argument("--seeds", type=int, help="of --fresh; default: as many as the question has")
    parser.add_argument("--minutes", type=float, help="of --fresh: start no trial after this time")
    parser.add_argument("--store", action="store_true", help="of --fresh: keep the rows in the package")
    parser.add_argument("--all", action="store_true", help="run every experiment from the start, into runs/lab-all")
    arguments = parser.parse_args()
    answers = shipped_answers()
    names = arguments.questions or list(answers)
    if arguments.all:
        for name in names:
            folder = f"runs/lab-all/{name}"
            subprocess.run([sys.executable, "-m", "manyheads", "lab", name, "-o", folder, "--plain"], check=True)
        return
    if arguments.fresh:
        end = None if arguments.minutes is None else time.monotonic() + 60 * arguments.minutes
        for name in names:
            _repeat_fresh(answers[name], arguments.seeds, end, is_stored=arguments.store)
        return
    lines, n_wrong = [], 0
    for name in names:
        rows = random.Random(f"{arguments.seed} {name}").sample(answers[name].results.rows, arguments.trials)
        seconds, largest, where = [], 0.0, ""
        for row in rows:
            started = time.process_time()
            measures = run_trial(name, row.arm, row.condition, row.seed, row.learning_rate, False)
            seconds.append(time.process_time() - started)
            for measure, value in row.measures.items():
                if any(word in measure for word in _TIMES):
                    continue
                difference = abs(measures[measure] - value) / max(abs(value), 1e-3)
                if difference > largest:
                    largest, where = difference, f"{row.arm} {row.condition} {row.seed} {measure}"
        n_all = len(answers[name].results.rows)
        minutes = statistics.fmean(seconds) * n_all / 60
        n_wrong += largest > _TOLERANCE
        lines.append(f"| {name} | {n_all} | {largest:.1e} | {minutes:.1f} | {minutes / 2:.1f} |")
        print(lines[-1], where if largest > _TOLERANCE else "", flush=True)
    if not arguments.questions:
        _write(lines, arguments.trials)
    if n_wrong:
        raise SystemExit(f"{n_wrong} questions have stored numbers that this machine does not repeat.")


def _repeat_fresh(answered: Answered, n_seeds: int | None, end: float | None, *, is_stored: bool) -> None:
    """Run the key comparisons of a question with fresh seeds, and print the difference."""
    question, started = answered.question, time.process_time()
    rows = replicate(answered, Path("runs/lab-fresh") / question.id, n_seeds or question.n_seeds, end=end)
    stamp = make_stamp(time.process_time() - started, 1)
    fresh = Results(question.id, answered.results.size, answered.results.definition, stamp, tuple(rows), {})
    print(f"{question.id} ({stamp['seconds']} s of processor time)")
    for repeated in compare_fresh(answered, fresh):
        print(f"  {repeated.what}: stored {repeated.stored}, fresh {repeated.fresh}, difference {repeated.difference}")
    if is_stored:
        folder = HERE.parent / "src/manyheads/lab/results/fresh"
        folder.mkdir(exist_ok=True)
        (folder / f"{question.id}.json").write_bytes(fresh.to_json())


def _write(lines: list[str], n_trials: int) -> None:
    now = stamp()
    text = [
        "# The lab",
        "",
        f"`make lab-check` repeats {n_trials} stored trials of every question, chosen at random, with this code,",
        "and compares every number but times. Minutes are processor minutes of the whole experiment, from the",
        "repeated trials; on two idle cores it takes half as long.",
        "",
        "| question | trials | largest relative difference | processor minutes | minutes on two cores |",
        "| --- | --- | --- | --- | --- |",
        *lines,
        "",
        f"{now['date']}, {now['machine']}, load {now['load']}.",
    ]
    (HERE / "lab.md").write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
