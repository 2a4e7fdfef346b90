"""Paired effects: the mean difference between two arms over seeds, its 95 % interval, and Holm's correction.

The interval is that of the paired t test. Holm's correction is made over all comparisons of a question; an effect is
clear if its corrected p value is below 0.05. Measures on a logarithmic scale are compared by ratio.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from scipy.stats import t as student

from manyheads.lab.question import ArmComparison, Measure, Question
from manyheads.lab.result_store import Results

ALPHA = 0.05
Verdict = Literal["as predicted", "contrary", "not distinguishable"]
Bound = Literal["", "≥", "≤", "both"]  # which side of a comparison is only a bound


@dataclass(frozen=True)
class Effect:
    """A comparison with its outcome; of a logarithmic measure, `mean`, `low` and `high` are ratios."""

    comparison: ArmComparison
    mean: float
    low: float
    high: float
    p: float  # uncorrected, two-sided
    corrected_p: float
    n_seeds: int
    is_ratio: bool
    is_computed: bool  # the difference does not depend on the seed, as of numbers of parameters: no chance is involved
    bound: Bound = ""  # steps to a level that some runs of a side did not reach

    @property
    def is_clear(self) -> bool:
        """Whether the arms differ beyond chance, corrected for the number of comparisons."""
        return self.corrected_p < ALPHA

    @property
    def verdict(self) -> Verdict:
        """The outcome compared with the prediction."""
        zero = 1.0 if self.is_ratio else 0.0
        if self.bound and not self._is_beyond_its_bound(zero):
            return "not distinguishable"
        if self.comparison.expect == "same":
            margin = self.comparison.margin
            lowest, highest = (1 / (1 + margin), 1 + margin) if self.is_ratio else (-margin, margin)
            if lowest <= self.low and self.high <= highest:
                return "as predicted"
            return "contrary" if self.is_clear else "not distinguishable"
        if not self.is_clear:
            return "not distinguishable"
        return "as predicted" if (self.mean > zero) == (self.comparison.expect == "higher") else "contrary"

    def _is_beyond_its_bound(self, zero: float) -> bool:
        """Whether the difference would only grow if every run had reached the level."""
        return (self.bound == "≥" and self.mean > zero) or (self.bound == "≤" and self.mean < zero)


def find_effects(question: Question, results: Results) -> list[Effect]:
    """The effects of all comparisons whose arms could run."""
    effects = [
        effect for comparison in question.comparisons if (effect := _compare(comparison, question, results)) is not None
    ]
    corrected = holm([effect.p for effect in effects])
    return [replace(effect, corrected_p=p) for effect, p in zip(effects, corrected, strict=True)]


def _compare(comparison: ArmComparison, question: Question, results: Results) -> Effect | None:
    against_condition = comparison.against_condition or comparison.condition
    measure = question.measure(comparison.measure)
    ours = results.values(comparison.arm, comparison.condition, comparison.measure)
    theirs = results.values(comparison.against, against_condition, comparison.measure)
    seeds = sorted(ours.keys() & theirs.keys())
    if len(seeds) < 2:
        return None
    paired = [ours[seed] for seed in seeds], [theirs[seed] for seed in seeds]
    mean, low, high, p = paired_difference(*paired, is_ratio=measure.is_logarithmic)
    # Sides that vary with the seed while their ratio does not, up to rounding: a factor by construction.
    is_factor = measure.is_logarithmic and mean != 1.0 and math.isclose(low, high, rel_tol=1e-6)
    is_computed = (is_factor or all(len(set(values)) == 1 for values in paired)) and not measure.is_censored
    if measure.is_censored and low == high:  # steps are read off every few steps, or are bounds: equal by rounding
        is_different = mean != (1.0 if measure.is_logarithmic else 0.0)
        p = 2.0 ** (1 - len(seeds)) if is_different else 1.0  # of a sign test
    bound: Bound = ""
    if measure.is_censored:
        is_bound = _is_bound(question, results, comparison.arm, comparison.condition, measure)
        is_other_bound = _is_bound(question, results, comparison.against, against_condition, measure)
        bound = "both" if is_bound and is_other_bound else "≥" if is_bound else "≤" if is_other_bound else ""
    return Effect(comparison, mean, low, high, p, p, len(seeds), measure.is_logarithmic, is_computed, bound)


def _is_bound(question: Question, results: Results, arm: str, condition: str, measure: Measure) -> bool:
    """Whether some run of a cell did not reach what a number of steps counts to."""
    is_full = results.size == "full"
    budget = question.cell_setup(question.arm(arm), question.condition(condition), is_full=is_full).steps
    return any(value > budget for value in results.values(arm, condition, measure.name).values())


def paired_difference(
    ours: Sequence[float], theirs: Sequence[float], *, is_ratio: bool = False
) -> tuple[float, float, float, float]:
    """The mean of ours − theirs (or ours / theirs) over pairs, its 95 % interval, and the p value of a t test."""
    scale = math.log if is_ratio else float
    differences = [scale(a) - scale(b) for a, b in zip(ours, theirs, strict=True)]
    mean, n_pairs = statistics.fmean(differences), len(differences)
    error = statistics.stdev(differences) / math.sqrt(n_pairs)
    if error == 0.0:  # all pairs differ by the same amount
        p, half = (1.0 if mean == 0.0 else 0.0), 0.0
    else:
        p = float(2 * student.sf(abs(mean) / error, n_pairs - 1))
        half = float(student.ppf(1 - ALPHA / 2, n_pairs - 1)) * error
    low, high = mean - half, mean + half
    return (math.exp(mean), math.exp(low), math.exp(high), p) if is_ratio else (mean, low, high, p)


def mean_interval(values: Sequence[float], *, is_logarithmic: bool = False) -> tuple[float, float, float]:
    """The mean over seeds (the geometric one of a logarithmic measure) and its 95 % interval."""
    neutral = [1.0 if is_logarithmic else 0.0] * len(values)
    if len(values) < 2:
        return values[0], values[0], values[0]
    mean, low, high, _ = paired_difference(values, neutral, is_ratio=is_logarithmic)
    return mean, low, high


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction (1979): the smallest of n values is multiplied by n, the next by n − 1, …"""
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = largest
    return corrected
