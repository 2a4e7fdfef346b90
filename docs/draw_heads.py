"""Write docs/heads.md and its pictures from what `manyheads heads … --json` found, kept in benchmarks/heads/.

python docs/draw_heads.py

One section a file with cards, in the order of ABOUT, others after them. What is not there yet is not told.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from manyheads.compress.pruning_curve import CurvePoint, curve_svg
from manyheads.lens.pictures import draw_heads
from manyheads.lens.role_names import role_names
from manyheads.lens.roles import HeadReport, Role, RoleCard, Statistic, as_displayed
from manyheads.lens.similarity import Similarity
from manyheads.metrics import Change, Score

HERE = Path(__file__).parent
RESULTS = HERE.parent / "benchmarks" / "heads"
ABOUT = {
    "quickstart": (
        "The model of `manyheads quickstart`, English → 中文, on held-out sentences of the built-in corpus with their "
        "gold relations, antecedents and word alignments."
    ),
    "multi30k": (
        "The Multi30k model, English → Deutsch, on the de-en gold alignments (508 pairs from Europarl, lower-cased): "
        "debates, where it was trained on captions of pictures."
    ),
    "masked-en": (
        "A masked language model of WikiText-2 (`recipes/masked-en.toml`, 2,500 steps), on gold trees of English EWT "
        "(dev): a relation is found where the largest weight of a word falls on its head (`>`), or the other way (`<`)."
    ),
    "masked-zh": (
        "A masked language model of Chinese sentences and reviews, character by character (`recipes/masked-zh.toml`, "
        "2,500 steps on 57,000 lines), on gold trees of Chinese GSD in simplified characters "
        "(`zh_gsdsimp-ud-dev.conllu`); a word looks at a word with all of its characters."
    ),
}
HEAD = """# What every head does

Written by `docs/draw_heads.py` from `benchmarks/heads/`. A role is given where the low end of its interval (95 %,
texts drawn again) reaches what the role asks for and no head of three untrained twins does; definitions and sources
stand in `src/manyheads/lens/roles.py` and `measures.py`. Baseline: the best fixed offset, the diagonal, or even
attention. Random: the best head of the untrained twins. Alignment is told as AER, lower is better.
"""


def report_of(record: dict[str, Any]) -> HeadReport:
    """The report that was stored."""
    cards = tuple(
        RoleCard(
            card["head"],
            tuple(Role(**role) for role in card["roles"]),
            card["reach"],
            {name: Statistic(**statistic) for name, statistic in card["statistics"].items()},
        )
        for card in record["cards"]
    )
    controls = {role: tuple(heads) for role, heads in record["controls"].items()}
    return HeadReport(cards, record["n_texts"], record["n_skipped"], tuple(record["seeds"]), controls)


def section(name: str, record: dict[str, Any]) -> str:
    """One model: its picture, the heads that are named, and how near the others came to each role."""
    report = report_of(record)
    similarities = [
        Similarity(one["kind"], tuple(one["heads"]), np.array(one["distances"]), one["n_texts"])
        for one in record["similarity"]
    ]
    (HERE / "pictures" / f"heads-{name}.svg").write_text(draw_heads(report, similarities), "utf-8")
    n_named = sum(bool(card.roles) for card in report.cards)
    lines = [f"## {name}", "", ABOUT.get(name, ""), "", f"`{record['command']}`" if "command" in record else "", ""]
    lines += [f"{n_named} of {len(report.cards)} heads are named; {report.n_texts} texts.", ""]
    lines += [f"![roles and similarity of heads](pictures/heads-{name}.svg)", ""]
    lines += [
        "| head | role | statistic | 95 % | baseline | random | cases |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [row(card, role) for card in report.cards for role in card.roles]
    lines += ["", "The best head for each statistic, named or not:", ""]
    lines += [
        "| statistic | head | value | 95 % | baseline | random | cases |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [best(report, statistic) for statistic in statistics_of(report)]
    if report.controls:
        told = "; ".join(f"{role} ({', '.join(heads[:3])})" for role, heads in report.controls.items())
        lines += ["", f"Roles that an untrained twin reaches too, and that are therefore not given: {told}."]
    return "\n".join(lines)


def row(card: RoleCard, role: Role) -> str:
    return f"| {card.head} | {' · '.join(role_names(role.name))} | {cells(role.statistic, card.statistics[role.statistic])} |"


def best(report: HeadReport, name: str) -> str:
    card = max((card for card in report.cards if name in card.statistics), key=lambda card: card.statistics[name].value)
    return f"| {name} | {card.head} | {cells(name, card.statistics[name])} |"


def cells(name: str, statistic: Statistic) -> str:
    before, told = as_displayed(name, statistic)
    base = f"{told.baseline:.2f} ({told.baseline_by})"
    return f"{before}{told.value:.2f} | {told.low:.2f}–{told.high:.2f} | {base} | {told.control:.2f} | {told.n:,}"


def statistics_of(report: HeadReport) -> list[str]:
    wanted = ("weight-1", "weight+1", "bos", "eos", "punctuation", "rare", "duplicate", "induction")
    found = dict.fromkeys(name for card in report.cards for name in card.statistics)
    return [name for name in found if name in wanted or name.startswith("align") or name[-1] in "<>"]


def peer(record: dict[str, Any]) -> str:
    """An aligner beside the heads."""
    rates = record["AER"]
    return (
        f"An aligner made for the purpose, eflomal, trained on the same {record['trained_on']:,} pairs and the gold "
        f"sentences themselves (without their links), comes to an AER of {rates['forth']:.2f} and {rates['back']:.2f} "
        f"in its two directions and {rates['in both']:.2f} where both agree (`benchmarks/heads/eflomal.py`, "
        f"{record['date']}): far ahead of any head of a translator that has hardly met these words."
    )


def pruning(record: dict[str, Any]) -> str:
    """What became of the Multi30k model without some of its heads."""
    points = sorted((point_of(one) for one in record["curve"]["points"]), key=lambda point: -point.n_heads)
    (HERE / "pictures" / "heads-pruned.svg").write_text(curve_svg(points), "utf-8")
    weigh, speed = record["weigh"], record["tuned20_speed"]
    lines = [
        "## Without some of them",
        "",
        "The Multi30k model with heads removed greedily, those first whose loss costs least "
        f"(`benchmarks/heads/prune.py`, {record['order']['date']}). {record['order']['chosen_by']} sentences of val "
        "choose; others are scored.",
        "",
        "![BLEU against heads kept](pictures/heads-pruned.svg)",
        "",
        "| heads left | trained on for | scored on | BLEU | against the whole model |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {point.n_heads} | – | 200 sentences of val, greedy | {point.score.value:.1f} | {change(point.change)} |"
        for point in points
    ]
    stages = {"tuned20": "300 steps", "tuned20long": "1,500 steps", "tuned20longest": "4,000 steps"}
    for name, told in (stages | {"gates20": "gates, 300 + 300 steps"}).items():
        point = point_of(record[name]["point"])
        score = f"{point.score.value:.1f} | {change(point.change)}"
        lines.append(f"| {point.n_heads} | {told} | 200 sentences of val, greedy | {score} |")
        for where in ("other_rows", "test2016"):
            if further := record.get(f"{name}_on_{where}"):
                one = further["differences"][0]
                gap = f"{one['difference']:+.2f} [{one['low']:+.2f}, {one['high']:+.2f}]"
                lines.append(f"| {point.n_heads} | {told} | {further['what']} | {one['value']:.1f} | {gap} |")
    agreement = weigh["agreement"]
    lines += [
        "",
        f"With {record['tuned20']['point']['n_heads']} of 48 heads it has {points[0].n_parameters:,} − "
        f"{points[0].n_parameters - record['tuned20']['point']['n_parameters']:,} parameters and translates "
        f"{speed['ratio']:.2f} × as fast (median of {speed['n_turns']} turns, whole and pruned interleaved, processor "
        "time).",
        "",
        f"Importance by gradient and by ablation agree with Spearman's ρ = {agreement['value']:.2f} "
        f"[{agreement['low']:.2f}, {agreement['high']:.2f}] over {agreement['n_heads']} heads: on {weigh['rows']} "
        "sentences the effect of most single heads is within what chance does to BLEU.",
    ]
    return "\n".join(lines)


def point_of(record: dict[str, Any]) -> CurvePoint:
    known = {
        "score": Score(**record["score"]),
        "change": Change(**record["change"]),
        "removed": tuple(record["removed"]),
    }
    return CurvePoint(**(record | known))


def change(found: Change) -> str:
    return f"{found.difference:+.2f} [{found.low:+.2f}, {found.high:+.2f}]"


if __name__ == "__main__":
    stored = {file.stem: json.loads(file.read_text("utf-8")) for file in sorted(RESULTS.glob("*.json"))}
    cards = {name: record for name, record in stored.items() if "cards" in record}
    order = [*(name for name in ABOUT if name in cards), *(name for name in cards if name not in ABOUT)]
    sections = {name: section(name, cards[name]) for name in order}
    sections["multi30k"] += "\n\n" + peer(stored["eflomal"])
    body = "\n\n".join([*sections.values(), pruning(stored["pruning"])])
    (HERE / "heads.md").write_text(f"{HEAD}\n{body}\n", "utf-8")
