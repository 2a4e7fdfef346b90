"""How many assigned roles hold by a second measure: `python benchmarks/heads/role_precision.py NAME=BUNDLE …`.

The role cards judge by the largest weight of each row, on one sample of texts. This script judges every pair of a head
and a role about words again, by all weights, on other texts:

- in its column: the share of other words of the text with less weight on the same word. The object of a verb looks at
  the verb more than the other words do.
- at its offset: the share of other pairs of words, as far apart, with less weight.

A pair holds if the lower ends of the 95 % intervals of both shares (bootstrap over texts) are at least 0.8. For
alignment the words of a column are those of the translation. A role about offsets holds if, with the words of the texts
in random order, the largest weight of at least half of the rows is at this offset: what is left when the words say
nothing. Roles that special tokens and repetitions define are not judged.

Writes role_precision.json beside this file: for the present rule, and for the rule without neighbors and without a
held-out half, the number of pairs, of assigned ones, and of those that hold.
"""

import json
import os
import platform
import random
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from manyheads.bundle import Bundle, load
from manyheads.lens.roles.head_counts import HeadCounts, collect_counts, for_each_map, kind_of
from manyheads.lens.roles.measures import ALIGNMENT_VARIANTS, aligned_maps, relation_words
from manyheads.lens.roles.role_assignment import SEEDS, assign_roles, random_control, rule_of
from manyheads.lens.traces.encoded_examples import EncodedExample, Floats, encode_examples
from manyheads.lens.traces.examples import sample_examples
from manyheads.metrics import confidence_interval, resample_matrix
from manyheads.tasks.lens_examples import Example, plain_text

HERE = Path(__file__).parent
N_TEXTS = 300
SEED, OTHER_SEED = 1, 7  # of the texts that assign roles, and of those that judge them
HOLDS = 0.8
MIN_CASES = 20
Pair = tuple[str, str]  # head, statistic


def main() -> None:
    """Judge the roles of some bundles and store the results."""
    models = {}
    for argument in sys.argv[1:]:
        name, _, path = argument.partition("=")
        models[name] = judge(load(path))
        print(name, json.dumps(summary(models[name]), indent=1), flush=True)
    everything = [pair for pairs in models.values() for pair in pairs]
    found = {
        "command": "python benchmarks/heads/role_precision.py "
        + " ".join(f"{name}=runs/{name}/bundle" for name in models),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "n_texts": N_TEXTS,
        "models": {name: summary(pairs) for name, pairs in models.items()},
        "all": summary(everything),
        "pairs": {
            name: [pair for pair in pairs if any(pair[key] for key in ("now", "before", "holds"))]
            for name, pairs in models.items()
        },
    }
    (HERE / "role_precision.json").write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", "utf-8")
    print("all", json.dumps(found["all"], indent=1))


def summary(pairs: Sequence[dict]) -> dict:
    """Count pairs, those that hold, and for both rules those assigned and those of them that hold."""
    counts = {"pairs": len(pairs), "hold": sum(pair["holds"] for pair in pairs)}
    for rule in ("before", "now"):
        assigned = [pair for pair in pairs if pair[rule]]
        counts[rule] = {"assigned": len(assigned), "hold": sum(pair["holds"] for pair in assigned)}
    return counts


def judge(bundle: Bundle) -> list[dict]:
    """Return every pair of a head and a statistic with its verdicts."""
    task = bundle.task
    encoded = encode_examples(task, sample_examples(bundle, N_TEXTS, seed=SEED)).examples
    counts = collect_counts(task.model, encoded)
    controls = [collect_counts(random_control(task.model.settings, seed), encoded) for seed in SEEDS]
    now = {(card.head, role.statistic) for card in assign_roles(counts, controls).cards for role in card.roles}
    before = roles_before(counts, controls)
    fresh = sample_examples(bundle, N_TEXTS, seed=OTHER_SEED)
    held = judge_words(bundle, encode_examples(task, fresh).examples) | judge_offsets(bundle, fresh)
    # The variants of an alignment are one role: a head has it if any variant does.
    names = {pair: "alignment" if pair[1].startswith("align") else pair[1] for pair in held}
    verdicts: dict[Pair, dict] = {}
    for pair, (low, holds) in held.items():
        verdict = verdicts.setdefault(
            (pair[0], names[pair]), {"holds": False, "low": low, "now": False, "before": False}
        )
        verdict["holds"] |= holds
        verdict["low"] = round(max(verdict["low"], low), 3)
        verdict["now"] |= pair in now
        verdict["before"] |= pair in before
    return [{"head": head, "role": name, **verdict} for (head, name), verdict in verdicts.items()]


def roles_before(counts: HeadCounts, controls: Sequence[HeadCounts]) -> set[Pair]:
    """Return the pairs of the former rule: the interval of all texts, fixed baselines alone, chosen once."""
    draws, roles = resample_matrix(counts.n_texts), set()
    for attention, own in counts.counts.items():
        names, baselines = counts.names[kind_of(attention)], counts.baselines[kind_of(attention)]
        for column, name in enumerate(names):
            rule = rule_of(name)
            if rule is None or own[:, 0, column, 1].sum() < MIN_CASES:
                continue
            fixed = _ratio(baselines[:, :, column].sum(0))
            best = 0 if name.startswith(("offset", "weight")) else int(fixed.argmax())
            needed = rule.threshold if rule.margin is None else max(rule.threshold, fixed[best] + rule.margin)
            same_kind = [
                one.counts[other] for one in controls for other in one.counts if kind_of(other) == kind_of(attention)
            ]
            if any((_ratio(other[:, :, column].sum(0)) >= needed).any() for other in same_kind):
                continue
            base = _ratio(draws @ baselines[:, best, column])
            for head in range(own.shape[1]):
                values = _ratio(draws @ own[:, head, column])
                excess = values - rule.threshold
                if rule.margin is not None:
                    excess = np.minimum(excess, values - base - rule.margin)
                if confidence_interval(excess)[0] >= 0:
                    roles.add((f"{attention}/{head}", name))
    return roles


def judge_words(bundle: Bundle, encoded: Sequence[EncodedExample]) -> dict[Pair, tuple[float, bool]]:
    """Return for every head and relation the lower of both shares' lower ends, and whether it holds."""
    sums: dict[Pair, Floats] = {}  # texts × (column, offset) × (sum of shares, cases)

    def add(pair: Pair, text: int, shares: tuple[list[float], list[float]]) -> None:
        table = sums.setdefault(pair, np.zeros((len(encoded), 2, 2)))
        for measure, values in enumerate(shares):
            table[text, measure] += (sum(values), len(values))

    def count(number: int, attention: str, weights: Floats, norms: Floats) -> None:
        example, kind = encoded[number], kind_of(attention)
        if kind == "decoder.cross":
            if example.example.sure is None:
                return
            maps = {name: words[..., :-1] for name, words in aligned_maps(weights, norms, example).items()}
            gold = {name: [(target, source) for source, target in example.example.sure] for name in ALIGNMENT_VARIANTS}
        else:
            positions = example.sides[-1 if kind == "decoder.self" else 0]
            words, gold = relation_words(weights, positions), {}
            for relation in positions.relations:
                gold.setdefault(relation.kind + ">", []).append((relation.word, relation.head))
                gold.setdefault(relation.kind + "<", []).append((relation.head, relation.word))
            maps = dict.fromkeys(gold, words)
        for name, cases in gold.items():
            for head, weights_of_head in enumerate(maps[name]):
                add((f"{attention}/{head}", name), number, shares_of(weights_of_head, cases, kind))

    for_each_map(bundle.task.model, encoded, count)
    draws = resample_matrix(len(encoded))
    verdicts = {}
    for pair, table in sums.items():
        if table[:, 0, 1].sum() >= MIN_CASES and rule_of(pair[1]) is not None:
            lows = [float(confidence_interval(_ratio(draws @ table[:, measure]))[0]) for measure in (0, 1)]
            verdicts[pair] = (min(lows), min(lows) >= HOLDS)
    return verdicts


def shares_of(weights: Floats, cases: list[tuple[int, int]], kind: str) -> tuple[list[float], list[float]]:
    """Return for each case the share of other words, and of other pairs as far apart, with less weight."""
    related = set(cases)
    n_rows, n_columns = weights.shape
    in_column, at_offset = [], []
    for row, column in cases:
        if (kind == "decoder.self" and column > row) or row == column:
            continue
        first = column + 1 if kind == "decoder.self" else 0
        own = weights[row, column]
        others = [
            weights[other, column]
            for other in range(first, n_rows)
            if (other, column) not in related and (kind == "decoder.cross" or other != column)
        ]
        offset = column - row
        pairs = [
            weights[other, other + offset]
            for other in range(n_rows)
            if 0 <= other + offset < n_columns and (other, other + offset) not in related
        ]
        for shares, rivals in ((in_column, others), (at_offset, pairs)):
            if rivals:
                shares.append(float(np.mean([(own > rival) + 0.5 * (own == rival) for rival in rivals])))
    return in_column, at_offset


def judge_offsets(bundle: Bundle, examples: Sequence[Example]) -> dict[Pair, tuple[float, bool]]:
    """Return for every head and offset how often the largest weight is there when words are in random order."""
    rng = random.Random(OTHER_SEED)
    shuffled = []
    for example in examples:
        texts = []
        for rendering in example.texts:
            words = list(rendering.words) or list(rendering.text)
            rng.shuffle(words)
            texts.append(plain_text(("" if rendering.text and " " not in rendering.text else " ").join(words)))
        shuffled.append(Example(tuple(texts)))
    encoded = encode_examples(bundle.task, shuffled).examples
    hits: dict[Pair, Floats] = {}

    def count(number: int, attention: str, weights: Floats, norms: Floats) -> None:
        if attention.endswith("cross"):
            return
        largest = weights.argmax(-1) - np.arange(weights.shape[1])
        for head, offsets in enumerate(largest):
            for name, offset in (("weight-1", -1), ("weight+1", 1), *((f"offset{n:+d}", n) for n in range(-5, 6))):
                table = hits.setdefault((f"{attention}/{head}", name), np.zeros((len(encoded), 2)))
                rows = np.arange(len(offsets)) + offset
                counted = (rows >= 0) & (rows < len(offsets))
                table[number] += ((offsets[counted] == offset).sum(), counted.sum())

    for_each_map(bundle.task.model, encoded, count)
    draws = resample_matrix(len(encoded))
    lows = {pair: float(confidence_interval(_ratio(draws @ table))[0]) for pair, table in hits.items()}
    return {pair: (low, low >= 0.5) for pair, low in lows.items()}


def _ratio(sums: Floats) -> Floats:
    return np.divide(sums[..., 0], sums[..., 1], out=np.zeros_like(sums[..., 0]), where=sums[..., 1] > 0)


if __name__ == "__main__":
    main()
