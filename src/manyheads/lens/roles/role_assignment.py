"""`RoleCard`: what a head does, by published definitions, with baselines, controls and confidence intervals.

A head has a role if the lower end of the 95 % interval of its statistic (a bootstrap over texts) meets the threshold of
the role, and no head of a randomly initialized model with the same settings meets it, for any of the control seeds. A
head can have several roles. Heads that match no definition are labeled "unknown". `lens/roles/measures.py` defines the
statistics.

    role                 threshold                                                              source
    positional ±n        ≥ 90 % of largest weights at this offset                               Voita 2019
    previous-token,      more than half of the weight on the previous, the next position        Elhage 2021; the half
      next-token                                                                                is ours
    attention-sink,      more than half of the weight on BOS, on EOS, on punctuation            Clark 2019
      eos, punctuation
    duplicate-token,     more than half of the weight on the same token elsewhere, on the       Wang 2023, Olsson 2022;
      induction          token after an earlier occurrence                                      the half is ours
    rare-word            more than half of largest weights on the two rarest tokens, and ≥ 10   Voita 2019 (66 %); the
                         points more than at the best fixed offset                              half is ours
    a relation, > or <   correct ≥ 10 points more often than the best fixed offset; so also     Clark 2019, Voita 2019
                         `antecedent`, for pronouns
    alignment            AER ≥ 10 points lower than the diagonal's or any fixed offset's        our margin; Och 2003

A card also describes the reach of a head, which is not a role: `local` if at least three quarters of the weight are
within two positions, `global` if the rows have at least 90 % of the entropy of uniform rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch

from manyheads.lens.heads import Head
from manyheads.lens.roles.head_counts import BASELINES, HeadCounts, collect_counts, kind_of
from manyheads.lens.traces.encoded_examples import EncodedSample, Floats
from manyheads.metrics import confidence_interval, resample_matrix
from manyheads.model import ModelSettings, Transformer

SEEDS = (1, 2, 3)  # of the randomly initialized controls
UNKNOWN = "unknown"
ALIGNMENT = "alignment"
MIN_CASES = 20  # a statistic over fewer cases gives no role
_POSITIONAL = 0.9
_HALF = 0.5
_MARGIN = 0.1
_LOCAL = 0.75
_GLOBAL = 0.9
_HALF_ROLES = {  # roles with a threshold of one half, by statistic
    "weight-1": "previous-token",
    "weight+1": "next-token",
    "bos": "attention-sink",
    "eos": "eos",
    "punctuation": "punctuation",
    "duplicate": "duplicate-token",
    "induction": "induction",
}
_DESCRIPTIONS = ("confidence", "entropy", "spread", "distance", "near")
_NOT_ROLES = ("antecedent<", "relative<")  # from a noun to its pronoun: no definition in the literature


@dataclass(frozen=True)
class Statistic:
    """One statistic of one head with its 95 % interval, its best baseline and the best control head."""

    value: float
    low: float
    high: float
    n: int  # cases
    baseline: float
    baseline_by: str  # the name of the baseline: uniform, offset±n, diagonal
    control: float


def as_displayed(name: str, statistic: Statistic) -> tuple[str, Statistic]:
    """Return a prefix and the statistic as people read it: alignments as an error rate (AER), lower is better."""
    if not name.startswith("align"):
        return "", statistic
    error_rate = Statistic(
        value=1 - statistic.value,
        low=1 - statistic.high,
        high=1 - statistic.low,
        n=statistic.n,
        baseline=1 - statistic.baseline,
        baseline_by=statistic.baseline_by,
        control=1 - statistic.control,
    )
    return "AER ", error_rate


@dataclass(frozen=True)
class Role:
    """A role of a head; `excess` is how far the lower end of the interval is above the threshold."""

    name: str
    statistic: str
    excess: float


@dataclass(frozen=True)
class RoleCard:
    """The roles and statistics of one head."""

    head: str
    roles: tuple[Role, ...]  # by decreasing excess; roles about words before roles about positions
    reach: str  # local, global or middle
    statistics: Mapping[str, Statistic]

    @property
    def role(self) -> str:
        """The first role, or "unknown"."""
        return self.roles[0].name if self.roles else UNKNOWN


@dataclass(frozen=True)
class HeadReport:
    """The cards of a model, and the roles that its controls meet by chance."""

    cards: tuple[RoleCard, ...]
    n_texts: int
    n_skipped: int
    seeds: tuple[int, ...]
    controls: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by role: the control heads that meet it

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return asdict(self)

    def with_role(self, name: str) -> list[RoleCard]:
        """Return the cards with this role, by decreasing excess."""
        with_excess = [(role.excess, card) for card in self.cards for role in card.roles if role.name == name]
        return [card for _, card in sorted(with_excess, key=lambda pair: -pair[0])]


@dataclass(frozen=True)
class Rule:
    """The definition of a role: a threshold of its statistic, and a margin over the best baseline."""

    role: str
    statistic: str
    threshold: float = 0.0
    margin: float | None = None


def rule_of(statistic: str) -> Rule | None:
    """Return the definition of the role that a statistic can give; None if it gives none."""
    if statistic in _DESCRIPTIONS or statistic in _NOT_ROLES:
        return None
    if statistic.startswith("offset"):
        return Rule(f"positional {statistic.removeprefix('offset')}", statistic, threshold=_POSITIONAL)
    if statistic in _HALF_ROLES:
        return Rule(_HALF_ROLES[statistic], statistic, threshold=_HALF)
    if statistic == "rare":
        return Rule("rare-word", statistic, threshold=_HALF, margin=_MARGIN)
    if statistic.startswith("align"):
        return Rule(ALIGNMENT, statistic, margin=_MARGIN)
    return Rule("antecedent" if statistic == "antecedent>" else statistic, statistic, margin=_MARGIN)


def make_report(model: Transformer, encoded_sample: EncodedSample, seeds: Sequence[int] = SEEDS) -> HeadReport:
    """Return the role cards of a model on these texts, compared with randomly initialized controls."""
    head_counts = collect_counts(model, encoded_sample.examples)
    controls = [collect_counts(random_control(model.settings, seed), encoded_sample.examples) for seed in seeds]
    return assign_roles(head_counts, controls, n_skipped=encoded_sample.n_skipped, seeds=seeds)


def random_control(settings: ModelSettings, seed: int) -> Transformer:
    """Return a randomly initialized model with these settings."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Transformer(settings).eval()


def assign_roles(
    head_counts: HeadCounts, controls: Sequence[HeadCounts], *, n_skipped: int = 0, seeds: Sequence[int] = SEEDS
) -> HeadReport:
    """Return the role cards from the counts of a model and of its controls on the same texts."""
    draws = resample_matrix(head_counts.n_texts)
    cards: list[RoleCard] = []
    met_by_controls: dict[str, tuple[str, ...]] = {}
    for kind, names in head_counts.names.items():
        group = _Kind(kind, names, head_counts, controls, draws)
        for rule in group.rules():
            heads = group.controls_that_meet(rule)
            if heads:
                met_by_controls[rule.role] = (*met_by_controls.get(rule.role, ()), *heads)
        cards += group.cards()
    order = {str(head): number for number, head in enumerate(head_counts.heads)}
    cards.sort(key=lambda card: order[card.head])
    return HeadReport(tuple(cards), head_counts.n_texts, n_skipped, tuple(seeds), met_by_controls)


def _ratio(sums: Floats) -> Floats:
    """Return the ratio of sums [..., 2]; 0 where the denominator is 0."""
    return np.divide(sums[..., 0], sums[..., 1], out=np.zeros_like(sums[..., 0]), where=sums[..., 1] > 0)


class _Kind:
    """The attentions of one kind, which share baselines and controls."""

    def __init__(
        self, kind: str, names: Sequence[str], head_counts: HeadCounts, controls: Sequence[HeadCounts], draws: Floats
    ) -> None:
        self.names = list(names)
        self.attentions = [name for name in head_counts.counts if kind_of(name) == kind]
        self.head_counts = head_counts
        self.draws = draws
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
        """Return the best baseline; the uniform one for statistics of an offset, since that fixed offset has 100 %."""
        if statistic.startswith(("offset", "weight", *_DESCRIPTIONS)):
            return BASELINES[0]
        values = zip(self.base[:, column].tolist(), BASELINES, strict=True)
        return max(values, key=lambda pair: pair[0])[1]

    def rules(self) -> list[Rule]:
        """Return the definitions of the roles whose statistics have enough cases."""
        names = [name for name, n_cases in zip(self.names, self.n_cases, strict=True) if n_cases >= MIN_CASES]
        return [rule for rule in map(rule_of, names) if rule is not None]

    def _is_met(self, rule: Rule, value: float) -> bool:
        is_above_baseline = rule.margin is None or value - self._baseline(rule.statistic) >= rule.margin
        return value >= rule.threshold and is_above_baseline

    def _baseline(self, statistic: str) -> float:
        return float(self.base[BASELINES.index(self.best[statistic]), self.names.index(statistic)])

    def controls_that_meet(self, rule: Rule) -> tuple[str, ...]:
        """Return the control heads whose statistic meets a role."""
        column = self.names.index(rule.statistic)
        return tuple(name for name, statistics in self.control_heads if self._is_met(rule, float(statistics[column])))

    def cards(self) -> list[RoleCard]:
        """Return the cards of every head."""
        rules = [rule for rule in self.rules() if not self.controls_that_meet(rule)]
        drawn_base = _ratio(np.einsum("rt,tbfc->rbfc", self.draws, self.baselines))
        cards = []
        for attention in self.attentions:
            counts = self.head_counts.counts[attention]
            drawn = _ratio(np.einsum("rt,thfc->rhfc", self.draws, counts))
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

    def _roles(self, rules: Sequence[Rule], drawn: Floats, drawn_base: Floats) -> tuple[Role, ...]:
        roles: dict[str, Role] = {}
        for rule in rules:
            column = self.names.index(rule.statistic)
            excess = drawn[:, column] - rule.threshold
            if rule.margin is not None:
                base = drawn_base[:, BASELINES.index(self.best[rule.statistic]), column]
                excess = np.minimum(excess, drawn[:, column] - base - rule.margin)
            low = float(confidence_interval(excess)[0])
            # Several statistics can give one role, as the variants of alignment do. The one with most excess counts.
            if low >= 0 and (rule.role not in roles or low > roles[rule.role].excess):
                roles[rule.role] = Role(rule.role, rule.statistic, low)
        return tuple(sorted(roles.values(), key=_order))


def _order(role: Role) -> tuple[bool, float]:
    """Sort roles about words before roles about positions, then by decreasing excess."""
    is_positional = role.name.startswith("positional") or role.name in _HALF_ROLES.values()
    return is_positional, -role.excess


def _reach(statistics: Mapping[str, Statistic]) -> str:
    if "near" in statistics and statistics["near"].low >= _LOCAL:
        return "local"
    return "global" if statistics["spread"].low >= _GLOBAL else "middle"
