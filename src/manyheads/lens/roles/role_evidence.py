"""The evidence for the roles of a head: its decisive statistics, and those that are nearest to another role."""

from dataclasses import asdict
from typing import Any

from manyheads.lens.roles.role_assignment import MIN_CASES, RoleCard, as_displayed, rule_of
from manyheads.lens.roles.role_names import statistic_name

_N_NEAR_MISSES = 4


def role_evidence(card: RoleCard) -> list[dict[str, Any]]:
    """Return the statistics of the head's roles, then its nearest misses, as JSON objects."""
    decisive = [role.statistic for role in card.roles]
    margins = {name: margin for name, margin in _margins(card).items() if name not in decisive}
    nearest = sorted(margins, key=lambda name: -margins[name])[:_N_NEAR_MISSES]
    return [
        {
            "id": name,
            "names": statistic_name(name).by_language(),
            **asdict(as_displayed(name, card.statistics[name])[1]),
        }
        for name in [*decisive, *nearest]
    ]


def role_score(card: RoleCard) -> float:
    """Return the largest excess of a role; of a head without a role, how much it lacks for one."""
    if card.roles:
        return max(role.excess for role in card.roles)
    return min(0.0, max(_margins(card).values(), default=0.0))


def _margins(card: RoleCard) -> dict[str, float]:
    """Return how far the lower end of each statistic's interval is above what its role needs."""
    margins = {}
    for name, statistic in card.statistics.items():
        rule = rule_of(name)
        if rule is not None and statistic.n >= MIN_CASES:
            needed = rule.threshold if rule.margin is None else max(rule.threshold, statistic.baseline + rule.margin)
            margins[name] = statistic.low - needed
    return margins
