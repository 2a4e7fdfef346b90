"""Prune a bundle in stages; each stage is stored when it is done, so that a long search can be interrupted.

    python benchmarks/heads/prune.py order  BUNDLE RESULT.json --heads 30     the order of removal (greedy, by loss)
    python benchmarks/heads/prune.py curve  BUNDLE RESULT.json --counts 0 12 20 24
    python benchmarks/heads/prune.py fine-tune BUNDLE RESULT.json --count 20 --steps 300 -o OUT  a fine-tuned bundle
    python benchmarks/heads/prune.py gates  BUNDLE RESULT.json --count 20 --steps 300 -o OUT     by learned gates
    python benchmarks/heads/prune.py importance BUNDLE RESULT.json --rows 100     by gradient and by ablation

The first --sample rows of the validation set choose the heads; the next --sample rows measure the cost, greedily.
"""

import argparse
import json
import os
import platform
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from manyheads import load
from manyheads.bundle import Bundle
from manyheads.compress.fine_tuning import FineTuneSettings, make_fine_tuner
from manyheads.compress.head_removal import pruned_bundle, remove_heads
from manyheads.compress.learned_gates import learn_gates
from manyheads.compress.pruning import greedy_order
from manyheads.compress.pruning_curve import measure_curve, measure_point, measure_speed
from manyheads.lens.heads import Head
from manyheads.lens.importance import ablate, gradient_importance, rank_agreement, single_heads, whole_attentions
from manyheads.lens.scored_rows import Sample, open_sample, valid_rows


@contextmanager
def samples(bundle: Bundle, size: int) -> Iterator[tuple[Sample, Sample]]:
    rows = valid_rows(bundle, 2 * size)
    with (
        open_sample(bundle.task, rows[:size], bundle.decode) as choosing,
        open_sample(bundle.task, rows[size:], bundle.decode) as reporting,
    ):
        yield choosing, reporting


def stamp() -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{platform.system()} {platform.machine()}, {len(os.sched_getaffinity(0))} core(s)",
        "load": round(os.getloadavg()[0], 1),
        "threads": torch.get_num_threads(),
        "command": shlex.join(["python", *sys.argv]),
    }


def choose(bundle: Bundle, arguments: argparse.Namespace, known: dict[str, Any]) -> dict[str, Any]:
    with samples(bundle, arguments.sample) as (choosing, _):
        order: list[dict[str, Any]] = []

        def keep(one: Any) -> None:
            order.append({"head": str(one.head), "loss": one.loss, "n_left": one.n_left})
            print(len(order), one.head, round(one.loss, 4), flush=True)

        whole = choosing.loss(bundle.task)
        greedy_order(bundle.task, choosing, arguments.heads, keep)
    return {"n_choosing": arguments.sample, "whole_loss": whole, "order": order}


def curve(bundle: Bundle, arguments: argparse.Namespace, known: dict[str, Any]) -> dict[str, Any]:
    order = [Head.parse(one["head"]) for one in known["order"]["order"]]
    with samples(bundle, arguments.sample) as (_, reporting):
        points = measure_curve(
            bundle.task, order, reporting, arguments.counts, progress=lambda one: print(one, flush=True)
        )
        found = [asdict(point) for point in points]
        if arguments.repeats:
            for count, point in zip(arguments.counts, found, strict=True):
                if count:  # processor time: other programs run beside this one
                    smaller = remove_heads(bundle.task, order[:count])
                    speed = measure_speed(smaller, bundle.task, reporting, arguments.repeats, clock=time.process_time)
                    point["speed"] = asdict(speed)
                    print(count, speed, flush=True)
    return {"n_measuring": arguments.sample, "points": found}


def fine_tune(bundle: Bundle, arguments: argparse.Namespace, known: dict[str, Any]) -> dict[str, Any]:
    order = [Head.parse(one["head"]) for one in known["order"]["order"]][: arguments.count]
    steps = FineTuneSettings(arguments.steps, arguments.rate)
    task = remove_heads(bundle.task, order)
    make_fine_tuner(bundle, arguments.bundle, arguments.output).fine_tune(task, steps, print_step)
    return report(bundle, task, order, arguments)


def gates(bundle: Bundle, arguments: argparse.Namespace, known: dict[str, Any]) -> dict[str, Any]:
    steps = FineTuneSettings(arguments.steps, arguments.rate)
    task = remove_heads(bundle.task, [])
    fine_tuner = make_fine_tuner(bundle, arguments.bundle, arguments.output)
    found = learn_gates(task, fine_tuner, arguments.count, steps, print_step)
    order = [head for head, _ in found[: arguments.count]]
    task = remove_heads(task, order)
    if arguments.then:
        fine_tuner.fine_tune(task, FineTuneSettings(arguments.then, arguments.rate), print_step)
    record = report(bundle, task, order, arguments)
    return {**record, "log_alpha": {str(head): round(alpha, 3) for head, alpha in found}}


def report(bundle: Bundle, task: Any, order: list[Head], arguments: argparse.Namespace) -> dict[str, Any]:
    pruned_bundle(bundle, task).save(arguments.output)
    with samples(bundle, arguments.sample) as (_, reporting):
        point = measure_point(
            task, bundle.task, order, reporting, reporting.tally(bundle.task), fine_tune_steps=arguments.steps
        )
    print(point, flush=True)
    return {"n_measuring": arguments.sample, "steps": arguments.steps, "then": arguments.then, "point": asdict(point)}


def importance(bundle: Bundle, arguments: argparse.Namespace, known: dict[str, Any]) -> dict[str, Any]:
    task = bundle.task
    with open_sample(task, valid_rows(bundle, arguments.rows), bundle.decode) as sample:
        by_gradient = gradient_importance(task, sample)
        found = ablate(
            task,
            sample,
            [*single_heads(task), *whole_attentions(task)],
            progress=lambda one: print(*one.heads, one.change, flush=True),
        )
    singles = found[: len(by_gradient)]
    agreement = rank_agreement([one.value for one in by_gradient], [one.change.cost for one in singles])
    return {
        "rows": arguments.rows,
        "gradient": [{**asdict(one), "head": str(one.head)} for one in by_gradient],
        "ablation": [{"heads": list(map(str, one.heads)), **asdict(one.change)} for one in found],
        "agreement": asdict(agreement),
    }


def print_step(step: Any) -> None:
    if step.step % 20 == 0:
        print(step.step, round(step.loss, 3), flush=True)


STAGES = {"order": choose, "curve": curve, "fine-tune": fine_tune, "gates": gates, "importance": importance}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stage", choices=STAGES)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("result", type=Path)
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--heads", type=int, default=30)
    parser.add_argument("--counts", type=int, nargs="+", default=[0, 12, 20, 24])
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--then", type=int, default=0)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    known = json.loads(arguments.result.read_text("utf-8")) if arguments.result.exists() else {}
    record = STAGES[arguments.stage](load(arguments.bundle), arguments, known)
    known = (
        json.loads(arguments.result.read_text("utf-8")) if arguments.result.exists() else {}
    )  # another process may have written
    name = arguments.stage if arguments.stage in ("order", "curve", "importance") else arguments.output.name
    known[name] = {**stamp(), **record}
    arguments.result.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", "utf-8")
