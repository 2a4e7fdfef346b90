"""Write benchmarks/scale/training.md from training.json."""

# ruff: noqa: E501 - a line is a sentence or a row of a table

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def equality(found: dict[str, Any]) -> list[str]:
    one = found["1"]
    lines = [
        f"## The same numbers ({found['date']})",
        "",
        "200 steps of a Transformer of 1 + 1 layers of width 64 with dropout, subword sampling and EMA; 4 micro-batches per update; one"
        " thread per process. The differences are relative to one process.",
        "",
        "| processes | loss: largest difference | loss of step 200 | final weights | tokens/s, median |",
        "| --- | --- | --- | --- | --- |",
        f"| 1 | | | | {one['tokens_per_second']:,.0f} |",
    ]
    others = [name for name in found if name.startswith(("2", "4"))]
    for name in others:
        row = found[name]
        lines.append(
            f"| {name} | {row['largest']:.1g} | {row['last']:.1g} | {row['weights']:.1g} | {row['tokens_per_second']:,.0f} |"
        )
    is_same = all(found[name]["largest"] == found[name]["weights"] == 0.0 for name in others)
    same = "1, 2 and 4 processes compute the same bits, sharded or not. " if is_same else ""
    gains = [found[name]["tokens_per_second"] / one["tokens_per_second"] for name in ("2", "4")]
    speed = f"2 processes are {gains[0]:.2f} times as fast as one, 4 processes {gains[1]:.2f} times, on {found['cores']} cores."
    if found["load"] > found["cores"]:
        speed = (
            f"The scaling efficiency is not known: other programs kept the {found['cores']} cores busy (load average"
            f" {found['load']:.0f}), so that the speeds say nothing."
        )
    return [
        *lines,
        "",
        f"{same}{speed}",
    ]


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


PARTS = {"equality": equality, "reshard": reshard, "kills": kills, "kills_busy": kills_busy, "partition": partition}


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
