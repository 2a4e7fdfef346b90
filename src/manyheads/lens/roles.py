"""A role card for every head: what it does, by published definitions, with baselines, controls and intervals.

A role is given where the low end of its statistic's interval (95 %, over texts drawn again) reaches what the role asks
for, and where no head of the same model randomly initialized, of any of the control seeds, does. A head may have
several roles; one that has none is "unknown". The definitions of the statistics are in lens/measures.

    role                 asks for                                                               after
    positional ±n        ≥ 90 % of largest weights at this offset                               Voita 2019
    previous-token,      more than half of the weight on the neighbour before, after            Elhage 2021; the half
      next-token                                                                                is ours
    begin, end,          more than half of the weight there                                     Clark 2019
      punctuation
    duplicate-token,     more than half of the weight on the same token elsewhere, on what      Wang 2023, Olsson 2022;
      induction          followed it earlier                                                    the half is ours
    rare-word            more than half of largest weights on the two rarest tokens, and ≥ 10   Voita 2019 (66 %); the
                         points more than at the best fixed offset                              half is ours
    a relation, > or <   ≥ 10 points more often right than the best fixed offset is at this     Clark 2019, Voita 2019
                         relation; so also `antecedent`, of pronouns
    alignment            AER ≥ 10 points lower than the diagonal's or any fixed offset's        our margin; Och 2003

What is not a role but a description: a head is `local` where at least three quarters of its weight are within two
places, `global` where its rows have at least 90 % of the entropy of even ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch

from manyheads.lens.encoded_examples import EncodedSample, Floats
from manyheads.lens.head_counts import BASELINES, HeadCounts, collect_counts, kind_of
from manyheads.lens.heads import Head
from manyheads.metrics import confidence_interval, resample_matrix
from manyheads.model import ModelSettings, Transformer

SEEDS = (1, 2, 3)  # of the controls
UNKNOWN = "unknown"
ALIGNMENT = "alignment"
_LEAST = 20  # cases that a statistic needs before it can make a role
_POSITIONAL = 0.9
_HALF = 0.5
_MARGIN = 0.1
_LOCAL = 0.75
_GLOBAL = 0.9
_HALVES = {
    "weight-1": "previous-token",
    "weight+1": "next-token",
    "bos": "attention-sink",
    "eos": "eos",
    "punctuation": "punctuation",
    "duplicate": "duplicate-token",
    "induction": "induction",
}
_DESCRIPTIONS = ("confidence", "entropy", "spread", "distance", "near")
_ONE_WAY = ("antecedent<", "relative<")  # a noun has no need to look at the pronoun that will stand for it


@dataclass(frozen=True)
class Statistic:
    """One statistic of one head: with its interval, what knowing nothing gives, and what the best control head gives."""

    value: float
    low: float
    high: float
    n: int  # cases it was counted over
    baseline: float
    baseline_by: str  # which baseline that is: even attention, a fixed offset, the diagonal
    control: float


def as_displayed(name: str, statistic: Statistic) -> tuple[str, Statistic]:
    """What people are told of a statistic, and what stands before it: of alignments the error rate, less is better."""
    if not name.startswith("align"):
        return "", statistic
    less = Statistic(
        value=1 - statistic.value,
        low=1 - statistic.high,
        high=1 - statistic.low,
        n=statistic.n,
        baseline=1 - statistic.baseline,
        baseline_by=statistic.baseline_by,
        control=1 - statistic.control,
    )
    return "AER ", less


@dataclass(frozen=True)
class Role:
    """What a head was found to do; `excess` is how far the low end is above what was asked for."""

    name: str
    statistic: str
    excess: float


@dataclass(frozen=True)
class RoleCard:
    """All that was found of one head."""

    head: str
    roles: tuple[Role, ...]  # the clearest first
    reach: str  # local, global or middle
    statistics: Mapping[str, Statistic]

    @property
    def role(self) -> str:
        """The clearest role, or "unknown"."""
        return self.roles[0].name if self.roles else UNKNOWN


@dataclass(frozen=True)
class HeadReport:
    """The cards of a model, the roles that its controls would have been given, and what all of it is based on."""

    cards: tuple[RoleCard, ...]
    n_texts: int
    n_skipped: int
    seeds: tuple[int, ...]
    controls: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by role: control heads that reach it

    def to_json(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)

    def with_role(self, name: str) -> list[RoleCard]:
        """The heads with a role, the clearest first."""
        found = [(role.excess, card) for card in self.cards for role in card.roles if role.name == name]
        return [card for _, card in sorted(found, key=lambda pair: -pair[0])]


@dataclass(frozen=True)
class _Rule:
    """What a role asks of a statistic: to reach a threshold, and to be so much above a baseline."""

    role: str
    statistic: str
    least: float = 0.0
    margin: float | None = None


def make_report(model: Transformer, encoded_sample: EncodedSample, seeds: Sequence[int] = SEEDS) -> HeadReport:
    """Watch a model and its controls at these texts, and say what each head does."""
    head_counts = collect_counts(model, encoded_sample.examples)
    controls = [collect_counts(random_control(model.settings, seed), encoded_sample.examples) for seed in seeds]
    return assign_roles(head_counts, controls, n_skipped=encoded_sample.n_skipped, seeds=seeds)


def random_control(settings: ModelSettings, seed: int) -> Transformer:
    """A model of the same settings that has learnt nothing."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Transformer(settings).eval()


def assign_roles(
    head_counts: HeadCounts, controls: Sequence[HeadCounts], *, n_skipped: int = 0, seeds: Sequence[int] = SEEDS
) -> HeadReport:
    """The cards by what was counted of a model and of its controls at the same texts."""
    often = resample_matrix(head_counts.n_texts)
    cards: list[RoleCard] = []
    reached: dict[str, tuple[str, ...]] = {}
    for kind, names in head_counts.names.items():
        view = _Kind(kind, names, head_counts, controls, often)
        for rule in view.rules():
            heads = view.controls_that_reach(rule)
            if heads:
                reached[rule.role] = (*reached.get(rule.role, ()), *heads)
        cards += view.cards()
    order = {str(head): number for number, head in enumerate(head_counts.heads)}
    cards.sort(key=lambda card: order[card.head])
    return HeadReport(tuple(cards), head_counts.n_texts, n_skipped, tuple(seeds), reached)


def _ratio(sums: Floats) -> Floats:
    """The statistic of sums [..., 2]; 0 of nothing."""
    return np.divide(sums[..., 0], sums[..., 1], out=np.zeros_like(sums[..., 0]), where=sums[..., 1] > 0)


class _Kind:
    """The attentions of one kind, whose heads are judged by the same baselines and controls."""

    def __init__(
        self, kind: str, names: Sequence[str], head_counts: HeadCounts, controls: Sequence[HeadCounts], often: Floats
    ) -> None:
        self.names = list(names)
        self.attentions = [name for name in head_counts.counts if kind_of(name) == kind]
        self.head_counts = head_counts
        self.often = often
        self.baselines = head_counts.baselines[kind]
        self.base = _ratio(self.baselines.sum(0))  # baselines × statistics
        self.control_heads = [
            (f"seed {number}, {Head(name, head)}", statistics)
            for number, control in enumerate(controls, start=1)
            for name in self.attentions
            for head, statistics in enumerate(_ratio(control.counts[name].sum(0)))
        ]
        self.n_cases = np.max([head_counts.counts[name].sum(0)[..., 1].max(0) for name in self.attentions], axis=0)
        self.best = {name: self._best_baseline(name, column) for column, name in enumerate(self.names)}

    def _best_baseline(self, statistic: str, column: int) -> str:
        """The best of what a statistic is compared with; an offset's own with even attention, for it would be 100 %."""
        is_of_offset = statistic.startswith(("offset", "weight", *_DESCRIPTIONS))
        own = list(zip(self.base[:, column].tolist(), BASELINES, strict=True))
        return own[0][1] if is_of_offset else max(own, key=lambda pair: pair[0])[1]

    def rules(self) -> list[_Rule]:
        """The roles that there are cases enough to judge by."""
        rules = []
        for name, n_cases in zip(self.names, self.n_cases, strict=True):
            if n_cases < _LEAST or name in _DESCRIPTIONS or name in _ONE_WAY:
                continue
            if name.startswith("offset"):
                rules.append(_Rule(f"positional {name.removeprefix('offset')}", name, least=_POSITIONAL))
            elif name in _HALVES:
                rules.append(_Rule(_HALVES[name], name, least=_HALF))
            elif name == "rare":
                rules.append(_Rule("rare-word", name, least=_HALF, margin=_MARGIN))
            elif name.startswith("align"):
                rules.append(_Rule(ALIGNMENT, name, margin=_MARGIN))
            else:
                rules.append(_Rule("antecedent" if name == "antecedent>" else name, name, margin=_MARGIN))
        return rules

    def _is_reached(self, rule: _Rule, value: float) -> bool:
        above = rule.margin is None or value - self._baseline(rule.statistic) >= rule.margin
        return value >= rule.least and above

    def _baseline(self, statistic: str) -> float:
        return float(self.base[BASELINES.index(self.best[statistic]), self.names.index(statistic)])

    def controls_that_reach(self, rule: _Rule) -> tuple[str, ...]:
        """The control heads whose statistic reaches what a role asks for, be it by chance."""
        column = self.names.index(rule.statistic)
        return tuple(
            name for name, statistics in self.control_heads if self._is_reached(rule, float(statistics[column]))
        )

    def cards(self) -> list[RoleCard]:
        """Those of every head."""
        rules = [rule for rule in self.rules() if not self.controls_that_reach(rule)]
        drawn_base = _ratio(np.einsum("rt,tbfc->rbfc", self.often, self.baselines))
        cards = []
        for attention in self.attentions:
            counts = self.head_counts.counts[attention]
            drawn = _ratio(np.einsum("rt,thfc->rhfc", self.often, counts))
            values = _ratio(counts.sum(0))
            for number in range(counts.shape[1]):
                statistics = self._statistics(values[number], drawn[:, number], counts[:, number].sum(0)[:, 1])
                roles = self._roles(rules, drawn[:, number], drawn_base)
                cards.append(RoleCard(str(Head(attention, number)), roles, _reach(statistics), statistics))
        return cards

    def _statistics(self, values: Floats, drawn: Floats, n_cases: Floats) -> dict[str, Statistic]:
        lows, highs = confidence_interval(drawn)
        statistics = {}
        for column, name in enumerate(self.names):
            if n_cases[column] > 0:
                control = max((float(own[column]) for _, own in self.control_heads), default=float("nan"))
                statistics[name] = Statistic(
                    value=float(values[column]),
                    low=float(lows[column]),
                    high=float(highs[column]),
                    n=int(n_cases[column]),
                    baseline=self._baseline(name),
                    baseline_by=self.best[name],
                    control=control,
                )
        return statistics

    def _roles(self, rules: Sequence[_Rule], drawn: Floats, drawn_base: Floats) -> tuple[Role, ...]:
        found: dict[str, Role] = {}
        for rule in rules:
            column = self.names.index(rule.statistic)
            excess = drawn[:, column] - rule.least
            if rule.margin is not None:
                base = drawn_base[:, BASELINES.index(self.best[rule.statistic]), column]
                excess = np.minimum(excess, drawn[:, column] - base - rule.margin)
            low = float(confidence_interval(excess)[0])
            # Of several statistics that make one role, as the kinds of alignment, the clearest counts.
            if low >= 0 and (rule.role not in found or low > found[rule.role].excess):
                found[rule.role] = Role(rule.role, rule.statistic, low)
        return tuple(sorted(found.values(), key=_clearness))


def _clearness(role: Role) -> tuple[int, float]:
    """What is said of words before what is said of places."""
    is_plain = role.name.startswith("positional") or role.name in _HALVES.values()
    return int(is_plain), -role.excess


def _reach(statistics: Mapping[str, Statistic]) -> str:
    if "near" in statistics and statistics["near"].low >= _LOCAL:
        return "local"
    return "global" if statistics["spread"].low >= _GLOBAL else "middle"


def alignment_error(statistic: Statistic) -> tuple[float, float, float]:
    """A statistic of alignment as an error rate: value, low, high."""
    return 1 - statistic.value, 1 - statistic.high, 1 - statistic.low
