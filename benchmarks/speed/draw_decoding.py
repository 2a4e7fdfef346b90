"""Tables and bars of decoding.json, for draw.py."""

import statistics
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from frame import median_ratio

# The pairs to compare.
AGAINST = (
    ("native", "CTranslate2"),
    ("native int8", "CTranslate2 int8"),
    ("native int8", "native"),
    ("native", "Hugging Face"),
    ("native int8", "Hugging Face"),
    ("native", "torch"),
)
OURS = ("native", "native int8", "torch")
CALLED = {
    "native": "manyheads, native",
    "native int8": "manyheads, native int8",
    "torch": "manyheads, torch",
    "CTranslate2": "CTranslate2",
    "CTranslate2 int8": "CTranslate2 int8",
    "Hugging Face": "Hugging Face generate",
}

Turns = Sequence[Mapping[str, Any]]


def is_alone(task: str) -> bool:
    """Whether each sentence was a separate call."""
    return task.startswith("alone")


def seconds(turns: Turns) -> list[float]:
    """Return CPU seconds per sentence: one number per turn, or per sentence for the task `alone`."""
    if isinstance(turns[0]["cpu"], list):
        return list(chain.from_iterable(turn["cpu"] for turn in turns))
    return [turn["cpu"] / turn["n_sentences"] for turn in turns]


def times_faster(ours: Turns, theirs: Turns) -> float:
    """Return the median ratio over turns, or over sentences."""
    return median_ratio(seconds(theirs), seconds(ours))


def format_speed(task: str, turns: Turns) -> str:
    """Format milliseconds for the task `alone`, sentences per second for the others."""
    one = statistics.median(seconds(turns))
    return f"{1000 * one:,.1f} ms" if is_alone(task) else f"{1 / one:,.0f} /s" if one < 0.1 else f"{1 / one:,.1f} /s"


def decoding_table(records: Mapping[str, Mapping[str, Any]]) -> str:
    """Return two tables per case: speeds, and ratios."""
    return "\n".join(_part(name, record) for name, record in records.items())


def _part(name: str, record: Mapping[str, Any]) -> str:
    tasks, shape = record["tasks"], record["settings"]
    names = [who for who in CALLED if any(who in found for found in tasks.values())]
    dashes = " | ".join("---:" for _ in tasks)
    lines = [
        f"### {name}",
        "",
        f"{shape['n_encoder_layers']} + {shape['n_decoder_layers']} layers, width {shape['width']}, feed-forward "
        f"{shape['feed_forward_width']:,}, {shape['n_heads']} heads, vocabulary {shape['vocab_size']:,}. "
        f"{record['date']}, {record['machine']}, one thread, load {record['load']}. {_versions(record)}.",
        "",
        "Sentences per CPU second; alone: median CPU time of one sentence.",
        "",
        f"| | {' | '.join(tasks)} | same as native | BLEU |",
        f"| --- | {dashes} | ---: | ---: |",
    ]
    for who in names:
        cells = [format_speed(task, found[who]["turns"]) if who in found else "—" for task, found in tasks.items()]
        lines.append(f"| {CALLED[who]} | {' | '.join(cells)} | {_same(tasks, who)} | {_bleu(tasks, who)} |")
    lines += [f"| {CALLED[who]} | did not run: {line} |" for who, line in record["failed"].items()]
    lines += ["", f"| times faster | {' | '.join(tasks)} |", f"| --- | {dashes} |"]
    for ours, theirs in AGAINST:
        cells = [
            f"{times_faster(found[ours]['turns'], found[theirs]['turns']):.2f}" if {ours, theirs} <= set(found) else "—"
            for found in tasks.values()
        ]
        if set(cells) != {"—"}:
            lines.append(f"| {ours} than {theirs} | {' | '.join(cells)} |")
    lines += ["", *(_tuning(record)), ""]
    return "\n".join(lines)


def _versions(record: Mapping[str, Any]) -> str:
    versions = {name: version for worker in record["workers"].values() for name, version in worker["versions"].items()}
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _same(tasks: Mapping[str, Any], who: str) -> str:
    """Return the share of outputs equal to those of the native engine, for greedy and beam search."""
    by_search: dict[str, float] = {}
    for task, found in tasks.items():
        if who in found and not is_alone(task):
            by_search.setdefault(task.rpartition(", ")[2], found[who]["same_as_native"])
    return " / ".join(f"{100 * value:.1f} %" for value in by_search.values())


def _bleu(tasks: Mapping[str, Any], who: str) -> str:
    values = [found[who]["bleu"] for found in tasks.values() if who in found and found[who]["bleu"] is not None]
    return " / ".join(f"{value:.2f}" for value in values)


def _tuning(record: Mapping[str, Any]) -> list[str]:
    """Return the fastest settings of CTranslate2."""
    return [
        f"{CALLED[who]}, beam {beam}: fastest with max_batch_size {tuned['max_batch_size']}, "
        f"{'with' if tuned['return_scores'] else 'without'} scores."
        for who, worker in record["workers"].items()
        for beam, tuned in worker.get("tuned", {}).items()
    ]


def decoding_bars(records: Mapping[str, Mapping[str, Any]]) -> dict[str, list[tuple[str, float, str, bool]]]:
    """Return a group of bars per task."""
    groups = {}
    for name, record in records.items():
        for task, found in record["tasks"].items():
            speed = {who: 1 / statistics.median(seconds(own["turns"])) for who, own in found.items()}
            measure = "CPU time of one sentence (longer is faster)" if is_alone(task) else "sentences per CPU second"
            groups[f"{name}, {task}: {measure}"] = [
                (CALLED[who], value, format_speed(task, found[who]["turns"]), who in OURS)
                for who, value in sorted(speed.items(), key=lambda pair: -pair[1])
            ]
    return groups
