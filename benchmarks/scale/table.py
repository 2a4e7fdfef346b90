"""Write benchmarks/scale/training.md from training.json."""

# ruff: noqa: E501 - a line is a sentence or a row of a table

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def equality(found: dict[str, Any]) -> list[str]:
    lines = [
        f"## The same numbers ({found['date']})",
        "",
        "200 steps of a Transformer of 1 + 1 layers of width 64 with dropout, subword sampling and EMA; 4 micro-batches per update; one"
        " thread per process. The differences are relative to one process.",
        "",
        "| processes | loss: largest difference | loss of step 200 | final weights |",
        "| --- | --- | --- | --- |",
    ]
    others = [name for name in found if name.startswith(("2", "4"))]
    for name in others:
        row = found[name]
        lines.append(f"| {name} | {row['largest']:.1g} | {row['last']:.1g} | {row['weights']:.1g} |")
    is_same = all(found[name]["largest"] == found[name]["weights"] == 0.0 for name in others)
    same = "1, 2 and 4 processes compute the same bits, sharded or not." if is_same else ""
    return [*lines, "", same] if same else lines


def scaling(found: dict[str, Any]) -> list[str]:
    lines = [
        f"## Scaling on {found['cores']} cores ({found['date']})",
        "",
        "Tokens per second, medians of three turns; one thread per process, and one process with two threads beside them. Efficiency is"
        " the speed relative to one process, divided by the number of cores that are used. Load average of the last"
        f" 15 minutes: {found['load']:.1f}.",
        "",
        "| model | processes | tokens/s | relative to one | efficiency |",
        "| --- | --- | --- | --- | --- |",
    ]
    for size, rows in found["sizes"].items():
        for layout, speed in rows.items():
            gain = speed / rows["1"]
            n_cores = 1 if layout == "1" else min(found["cores"], 2 if "threads" in layout else int(layout))
            lines.append(f"| {size} | {layout} | {speed:,.0f} | {gain:.2f} | {gain / n_cores:.2f} |")
    return lines


def reshard(found: dict[str, Any]) -> list[str]:
    return [
        f"## Another number of processes ({found['date']})",
        "",
        f"2 processes to step {found['stops'][0]}, 4 to step {found['stops'][1]}, 1 to step {found['steps']}, against one process from"
        f" start to end: largest relative difference of the loss {found['largest']:.1g}, of the last step {found['last']:.1g}, of the"
        f" final weights {found['weights']:.1g}.",
    ]


def kills(found: dict[str, Any]) -> list[str]:
    return [
        f"## Random kills ({found['date']})",
        "",
        f"`manyheads train --processes 2` with a tiny model; {found['kills']} times one of the processes was killed by SIGKILL at a"
        f" random moment (rank 0: {found['by_rank']['0']}, rank 1: {found['by_rank']['1']}), also while they started. In"
        f" {found['equal']} of {found['runs']} runs the bundle, the last checkpoint and the logged losses are byte-equal to those of an"
        f" undisturbed run. From the kill to the next step: median {found['median']:.1f} s, longest {found['longest']:.1f} s"
        f" (load average {found['load']:.0f} on 2 cores; most of it is importing PyTorch).",
    ]


def partition(found: dict[str, Any]) -> list[str]:
    end = (
        "byte-equal to those of an undisturbed run" if not found["different"] else f"different in {found['different']}"
    )
    return [
        f"## A network partition ({found['date']})",
        "",
        "Two processes in two network namespaces; the cable between them was pulled after 40 steps, with"
        f" `MANYHEADS_TIMEOUT={found['timeout']}`. Both had ended {found['seconds']:.0f} s later, with exit codes"
        f" {' and '.join(map(str, found['codes']))}:",
        "",
        *(f"    {message}" for message in found["messages"]),
        "",
        f"After the cable was back, the same commands resumed the run; bundle, last checkpoint and losses are {end}"
        " (`benchmarks/scale/partition.py`).",
    ]


def kills_busy(found: dict[str, Any]) -> list[str]:
    return [
        f"The same on a busy machine (load average {found['load']:.0f} on 2 cores): {found['kills']} kills, {found['equal']} of"
        f" {found['runs']} runs byte-equal, median {found['median']:.1f} s, longest {found['longest']:.1f} s.",
    ]


PARTS = {
    "equality": equality,
    "scaling": scaling,
    "reshard": reshard,
    "kills": kills,
    "kills_busy": kills_busy,
    "partition": partition,
}


def write_page() -> None:
    """Write the page of all results that there are."""
    results = json.loads((HERE / "training.json").read_text("utf-8"))
    lines = ["# Training on several processes", "", "`make scale` writes this page. CPU, gloo; no GPU was tested."]
    for name, describe in PARTS.items():
        if name in results:
            lines += ["", *describe(results[name])]
    (HERE / "training.md").write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    write_page()
