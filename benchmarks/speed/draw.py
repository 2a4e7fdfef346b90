"""Write the stored results as tables into README.md, between its markers, and as SVG files beside it.

python benchmarks/speed/draw.py
"""

import json
import re
import statistics
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from draw_attention import attention_picture, attention_tables
from draw_decoding import decoding_bars, decoding_table
from draw_growth import growth_picture, growth_table
from frame import HERE, median_ratio

OURS = "manyheads"
CALLED = {
    "torch": "torch nn.Transformer",
    "transformers": "Hugging Face Marian",
    "joeynmt": "JoeyNMT",
    "opennmt-py": "OpenNMT-py",
    "eole": "eole",
}
_STYLE = """
.bars { --paper: #fff; --ink: #1b1d21; --soft: #5d636e; --line: #e3e5e9; --main: #0b62a4; --other: #9db4c8; }
@media (prefers-color-scheme: dark) {
  .bars { --paper: #14161a; --ink: #e7e9ed; --soft: #9ba2ae; --line: #2c3038; --main: #6cb6f0; --other: #4a5b6c; }
}
.bars text { font: 12px system-ui, "Segoe UI", Roboto, "PingFang SC", "Microsoft YaHei", "Noto Sans SC", sans-serif;
  fill: var(--soft); font-variant-numeric: tabular-nums; }
.bars text.title { fill: var(--ink); font-weight: 600; }
.bars .paper { fill: var(--paper); }
.bars .grid { stroke: var(--line); shape-rendering: crispEdges; }
.bars .ours { fill: var(--main); }
.bars .theirs { fill: var(--other); }
"""
_WIDTH, _LEFT, _RIGHT, _BAR, _GAP, _TITLE = 640.0, 170.0, 130.0, 18.0, 8.0, 40.0

Bar = tuple[str, float, str, bool]  # name, length, label, whether it is manyheads


def bars_svg(title: str, groups: Mapping[str, Sequence[Bar]]) -> str:
    """Return bar charts as one SVG image with a light and a dark color scheme; each group has its own scale."""
    y, parts = 0.0, []
    for name, bars in groups.items():
        longest = max(length for _, length, _, _ in bars)
        parts.append(f'<text class="title" x="16" y="{y + 26:.0f}">{escape(name)}</text>')
        y += _TITLE
        bottom = y + len(bars) * (_BAR + _GAP)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_LEFT}" y1="{y:.0f}" y2="{bottom:.0f}"/>')
        for whose, length, label, is_ours in bars:
            wide = (_WIDTH - _LEFT - _RIGHT) * length / longest
            middle = y + _BAR / 2 + 4
            parts += [
                f'<text x="{_LEFT - 8}" y="{middle:.0f}" text-anchor="end">{escape(whose)}</text>',
                f'<rect class="{"ours" if is_ours else "theirs"}" x="{_LEFT}" y="{y:.0f}" width="{wide:.1f}" '
                f'height="{_BAR:.0f}"/>',
                f'<text x="{_LEFT + wide + 6:.1f}" y="{middle:.0f}">{escape(label)}</text>',
            ]
            y += _BAR + _GAP
    height = y + 12
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="bars" role="img" aria-label="{escape(title)}" '
        f'width="{_WIDTH:.0f}" height="{height:.0f}" viewBox="0 0 {_WIDTH:.0f} {height:.0f}" '
        f'style="max-width:100%;height:auto"><style>{_STYLE}</style><rect class="paper" width="100%" height="100%"/>'
        f"{''.join(parts)}</svg>\n"
    )


class TrainingRecord:
    """The record of one size in training.json, and figures computed from it."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        self.record = record
        self.names = list(record["workers"])
        self.turns = record["turns"][record["n_warming"] :]

    def _work(self, count: str) -> list[int]:
        return [sum(self.record["batches"][number][count] for number in turn) for turn in self.turns]

    def seconds(self, name: str) -> list[float]:
        return [turn["cpu"] for turn in self.record["workers"][name]["turns"][self.record["n_warming"] :]]

    def speed(self, name: str) -> float:
        """The number of real target tokens per CPU second."""
        return median_ratio(self._work("target_tokens"), self.seconds(name))

    def times_faster(self, name: str, than: str) -> float:
        return median_ratio(self.seconds(than), self.seconds(name))

    def format_range(self, name: str, than: str) -> str:
        """Return the ratios of the slowest and the fastest turn, which show the spread around the median."""
        ratios = [one / other for one, other in zip(self.seconds(than), self.seconds(name), strict=True)]
        return f"{min(ratios):.2f}–{max(ratios):.2f}"

    @property
    def sgemm(self) -> float:
        """GFLOP per CPU second of the fastest matrix size."""
        counted = self.record["sgemm_gflop_per_cpu_second"][self.record["n_warming"] :]
        return max((statistics.median(speeds) for speeds in zip(*counted, strict=True)), default=float("nan"))

    def utilization(self, name: str) -> float:
        return median_ratio(self._work("flop"), self.seconds(name)) / 1e9 / self.sgemm

    def losses(self, name: str) -> tuple[float, float]:
        """Return the loss of the first and of the last step."""
        turns = self.record["workers"][name]["turns"]
        return turns[0]["losses"][0], turns[-1]["losses"][-1]


def training_table(records: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table per size, with the date and the machine."""
    return "\n".join(_training_part(size, TrainingRecord(record)) for size, record in records.items())


def _training_part(size: str, found: TrainingRecord) -> str:
    record, shape = found.record, found.record["size"]
    has_base = "torch" in found.names
    lines = [
        f"### {size}",
        "",
        f"{shape['layers']} + {shape['layers']} layers, width {shape['width']}, feed-forward "
        f"{shape['feed_forward_width']:,}, {shape['n_heads']} heads, vocabulary {shape['vocab_size']:,} (tied), "
        f"{shape['batch_tokens']:,} tokens per batch, lengths {record['text']}; {len(found.turns)} turns of "
        f"{len(found.turns[0])} step(s). {record['date']}, {record['machine']}, one thread, load {record['load']}. "
        f"SGEMM: {found.sgemm:.1f} GFLOP per CPU second.",
        "",
        "| | version | parameters | tokens / CPU s | × nn.Transformer | manyheads is × faster (turns) | of SGEMM "
        "| loss |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for name in sorted(found.names, key=found.speed, reverse=True):
        worker = record["workers"][name]
        versions = [version for package, version in worker["versions"].items() if package != "torch"]
        first, last = found.losses(name)
        against = f"{found.times_faster(name, 'torch'):.2f}" if has_base else "—"
        lines.append(
            f"| {CALLED.get(name, name)} | {versions[0] if versions else worker['versions']['torch']} "
            f"| {worker['parameters']:,} | {found.speed(name):,.0f} "
            f"| {against} | {found.times_faster(OURS, name):.2f} ({found.format_range(OURS, name)}) "
            f"| {found.utilization(name):.0%} "
            f"| {first:.2f} → {last:.2f} |"
        )
    lines += [f"| {CALLED.get(name, name)} | did not run: {line} ||||||" for name, line in record["failed"].items()]
    return "\n".join([*lines, ""])


def training_picture(records: Mapping[str, Mapping[str, Any]]) -> str:
    """Return bar charts of tokens per CPU second."""
    groups = {}
    for size, record in records.items():
        found = TrainingRecord(record)
        names = sorted(found.names, key=found.speed, reverse=True)
        groups[f"{size}: tokens per CPU second, one thread"] = [
            (
                CALLED.get(name, name),
                found.speed(name),
                f"{found.speed(name):,.0f}" + (f" (×{found.times_faster(name, OURS):.2f})" if name != OURS else ""),
                name == OURS,
            )
            for name in names
        ]
    return bars_svg("Training speed of manyheads and its peers · 训练速度对比", groups)


def put_between(text: str, name: str, content: str) -> str:
    """Replace the text between two markers."""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"README.md has no markers <!-- {name} --> and <!-- end of {name} -->.")
    return pattern.sub(lambda found: f"{found[1]}{content}{found[2]}", text)


def main() -> None:
    readme = HERE / "README.md"
    text = readme.read_text(encoding="utf-8")
    stored = HERE / "training.json"
    if stored.exists():
        records = json.loads(stored.read_text(encoding="utf-8"))
        (HERE / "training.svg").write_text(training_picture(records), encoding="utf-8")
        text = put_between(text, "training", training_table(records))
    stored = HERE / "attention.json"
    if stored.exists():
        records = json.loads(stored.read_text(encoding="utf-8"))
        (HERE / "attention.svg").write_text(attention_picture(records), encoding="utf-8")
        text = put_between(text, "attention", attention_tables(records))
    stored = HERE / "growth.json"
    if stored.exists():
        record = json.loads(stored.read_text(encoding="utf-8"))["curves"]
        (HERE / "growth.svg").write_text(growth_picture(record), encoding="utf-8")
        text = put_between(text, "growth", growth_table(record))
    stored = HERE / "decoding.json"
    if stored.exists():
        records = json.loads(stored.read_text(encoding="utf-8"))
        picture = bars_svg("Decoding speed of manyheads and its peers · 解码速度对比", decoding_bars(records))
        (HERE / "decoding.svg").write_text(picture, encoding="utf-8")
        text = put_between(text, "decoding", decoding_table(records))
    readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
