"""`RoleCard`: what a head does, by published definitions, with baselines, controls and confidence intervals.

Roles are selected on every other text and confirmed on the rest. A head has a role if its statistic meets the threshold
on the first half, the lower end of the 95 % interval of the second half (a bootstrap over texts) meets it too, and no
head of a randomly initialized model with the same settings meets it, for any of the control seeds. A head can have
several roles. Heads that match no definition are labeled "unknown". `lens/roles/measures.py` defines the statistics.

A relation has two kinds of rivals, and the best of them counts: what a fixed offset finds, and what the neighbors of a
word find in the same head. If the words between a verb and its object look at the verb as often as the object does, the
head does not find the verbs of objects; it looks back at verbs.

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
    a relation, > or <   correct ≥ 10 points more often than the best fixed offset and than     Clark 2019, Voita 2019;
                         the word's neighbors; so also `antecedent`, for pronouns               the neighbors are ours
    alignment            AER ≥ 10 points lower than the diagonal's, any fixed offset's, and     our margin; Och 2003
                         that of the neighbors

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
from manyheads.lens.roles.measures import NEIGHBORS, neighbor_name
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
_TAIL = 0.025  # of a 95 % interval
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
    baseline_by: str  # the name of the baseline: uniform, offset±n, diagonal, or neighbor±n: the head's own neighbors
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
    """A role of a head; `excess` is how far the lower end of the held-out interval is above the threshold."""

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
    if "@" in statistic or statistic in _DESCRIPTIONS or statistic in _NOT_ROLES:
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
    draws = _Draws.of(head_counts.n_texts)
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


def _drawn(draws: Floats, counts: Floats) -> Floats:
    """Return the statistics of counts [texts, ..., 2] in each draw [draws, texts]."""
    return _ratio((draws @ counts.reshape(len(counts), -1)).reshape(len(draws), *counts.shape[1:]))


def _ratio(sums: Floats) -> Floats:
    """Return the ratio of sums [..., 2]; 0 where the denominator is 0."""
    return np.divide(sums[..., 0], sums[..., 1], out=np.zeros_like(sums[..., 0]), where=sums[..., 1] > 0)


@dataclass(frozen=True, eq=False)
class _Draws:
    """Weights of texts [draws, texts]: of all texts once, of the half that selects, and resamples."""

    once: Floats
    selecting: Floats
    resampled: Floats
    held_out: Floats  # resamples of the half that confirms

    @classmethod
    def of(cls, n_texts: int) -> "_Draws":
        is_held_out = np.arange(n_texts) % 2 == 1
        resampled = resample_matrix(n_texts)
        held_out = np.zeros_like(resampled)
        if is_held_out.any():
            held_out[:, is_held_out] = resample_matrix(int(is_held_out.sum()))
        return cls(np.ones((1, n_texts)), (~is_held_out)[None].astype(np.float64), resampled, held_out)


class _Kind:
    """The attentions of one kind, which share baselines and controls."""

    def __init__(
        self, kind: str, names: Sequence[str], head_counts: HeadCounts, controls: Sequence[HeadCounts], draws: _Draws
    ) -> None:
        self.columns = {name: column for column, name in enumerate(names)}
        self.names = [name for name in names if "@" not in name]
        self.attentions = [name for name in head_counts.counts if kind_of(name) == kind]
        self.head_counts = head_counts
        self.draws = draws
        self.baselines = head_counts.baselines[kind]
        self.control_heads = [
            (f"seed {number}, {Head(name, head)}", control.counts[name][:, head])
            for number, control in enumerate(controls, start=1)
            for name in self.attentions
            for head in range(control.counts[name].shape[1])
        ]
        nothing = np.full(len(self.columns), np.nan)
        self.best_control = np.max([_ratio(own.sum(0)) for _, own in self.control_heads] or [nothing], axis=0)
        self.n_cases = np.max([head_counts.counts[name].sum(0)[..., 1].max(0) for name in self.attentions], axis=0)

    def rules(self) -> list[Rule]:
        """Return the definitions of the roles whose statistics have enough cases."""
        names = [name for name in self.names if self.n_cases[self.columns[name]] >= MIN_CASES]
        return [rule for rule in map(rule_of, names) if rule is not None]

    def _rivals(self, statistic: str, counts: Floats, draws: Floats) -> dict[str, Floats]:
        """Return what the statistic is compared with in each draw: fixed baselines, and the head's own neighbors.

        A statistic of an offset is compared with uniform attention alone, since that fixed offset has 100 %.
        """
        fixed = _drawn(draws, self.baselines[:, :, self.columns[statistic]])
        if statistic.startswith(("offset", "weight", *_DESCRIPTIONS)):
            return {BASELINES[0]: fixed[:, 0]}
        rivals = {name: fixed[:, number] for number, name in enumerate(BASELINES)}
        for offset in NEIGHBORS:
            column = self.columns.get(neighbor_name(statistic, offset))
            if column is not None and self.n_cases[column] >= MIN_CASES:
                rivals[f"neighbor{offset:+d}"] = _drawn(draws, counts[:, column])
        return rivals

    def _excess(self, rule: Rule, counts: Floats, draws: Floats) -> Floats:
        """Return how far a head exceeds what a role needs in each draw; `counts` are texts × statistics × 2."""
        values = _drawn(draws, counts[:, self.columns[rule.statistic]])
        excess = values - rule.threshold
        if rule.margin is not None:
            best = np.max(list(self._rivals(rule.statistic, counts, draws).values()), axis=0)
            excess = np.minimum(excess, values - best - rule.margin)
        return np.asarray(excess)

    def controls_that_meet(self, rule: Rule) -> tuple[str, ...]:
        """Return the control heads whose statistic meets a role."""
        met = ((name, self._excess(rule, counts, self.draws.once)[0] >= 0) for name, counts in self.control_heads)
        return tuple(name for name, is_met in met if is_met)

    def cards(self) -> list[RoleCard]:
        """Return the cards of every head."""
        rules = [rule for rule in self.rules() if not self.controls_that_meet(rule)]
        cards = []
        for attention in self.attentions:
            for number in range(self.head_counts.counts[attention].shape[1]):
                counts = self.head_counts.counts[attention][:, number]
                statistics = self._statistics(counts)
                head = str(Head(attention, number))
                cards.append(RoleCard(head, self._roles(rules, counts), _reach(statistics), statistics))
        return cards

    def _statistics(self, counts: Floats) -> dict[str, Statistic]:
        values, n_cases = _ratio(counts.sum(0)), counts.sum(0)[:, 1]
        lows, highs = confidence_interval(_drawn(self.draws.resampled, counts))
        statistics = {}
        for name in self.names:
            column = self.columns[name]
            if n_cases[column] > 0:
                low, high = float(lows[column]), float(highs[column])
                if name not in _DESCRIPTIONS:
                    low, high = _spread(low, high, counts[:, column, 1])
                rivals = self._rivals(name, counts, self.draws.once)
                best = max(rivals, key=lambda rival: float(rivals[rival][0]))
                statistics[name] = Statistic(
                    value=float(values[column]),
                    low=low,
                    high=high,
                    n=int(n_cases[column]),
                    baseline=float(rivals[best][0]),
                    baseline_by=best,
                    control=float(self.best_control[column]),
                )
        return statistics

    def _roles(self, rules: Sequence[Rule], counts: Floats) -> tuple[Role, ...]:
        """Return the roles that one half of the texts selects and the other confirms."""
        roles: dict[str, Role] = {}
        for rule in rules:
            if self._excess(rule, counts, self.draws.selecting)[0] < 0:
                continue
            low = float(confidence_interval(self._excess(rule, counts, self.draws.held_out))[0])
            # Several statistics can give one role, as the variants of alignment do. The one with most excess counts.
            if low >= 0 and (rule.role not in roles or low > roles[rule.role].excess):
                roles[rule.role] = Role(rule.role, rule.statistic, low)
        return tuple(sorted(roles.values(), key=_order))


def _spread(low: float, high: float, n_cases: Floats) -> tuple[float, float]:
    """Return an interval that is no point: of a share of 0 or 1 in every text, the exact binomial one over texts."""
    if low != high or low not in (0.0, 1.0):
        return low, high
    missed = _TAIL ** (1 / np.count_nonzero(n_cases))
    return (missed, 1.0) if low else (0.0, 1 - missed)


def _order(role: Role) -> tuple[bool, float]:
    """Sort roles about words before roles about positions, then by decreasing excess."""
    is_positional = role.name.startswith("positional") or role.name in _HALF_ROLES.values()
    return is_positional, -role.excess


def _reach(statistics: Mapping[str, Statistic]) -> str:
    if "near" in statistics and statistics["near"].low >= _LOCAL:
        return "local"
    return "global" if statistics["spread"].low >= _GLOBAL else "middle"
