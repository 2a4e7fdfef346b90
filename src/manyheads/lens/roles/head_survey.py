"""`HeadSurvey`: what every head of a bundle does over the bundle's own texts, for the pages of the lens.

It combines what the commands `heads show` and `heads importance` compute, with the same results for the same sample:
roles with their evidence, importance by ablation and by gradient, similar heads, and examples from strong to weak.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from manyheads.bundle import Bundle
from manyheads.errors import DataError, LensError, RecipeError
from manyheads.lens.ablated_probability import (
    WAYS,
    affordable,
    answered_texts,
    lost_probabilities,
)
from manyheads.lens.heads import Head, find_heads, heads_of
from manyheads.lens.importance import Agreement, HeadImportance, ablate, gradient_importance, rank_agreement
from manyheads.lens.roles.head_counts import collect_counts
from manyheads.lens.roles.head_examples import HeadExample, HeadStrengths, measure_strengths, stratified_examples
from manyheads.lens.roles.role_assignment import (
    MIN_CASES,
    SEEDS,
    HeadReport,
    RoleCard,
    as_displayed,
    assign_roles,
    random_control,
    rule_of,
)
from manyheads.lens.roles.role_names import role_color, role_message, statistic_name
from manyheads.lens.roles.similarity import Similarity, compare_heads
from manyheads.lens.scored_rows import open_sample, valid_rows
from manyheads.lens.traces.encoded_examples import EncodedSample, encode_examples, no_text
from manyheads.lens.traces.examples import SAMPLE, sample_examples, with_targets
from manyheads.messages import Message, _
from manyheads.tasks import Progress
from manyheads.tasks.lens_examples import Example

EFFECT_ROWS = 100
_N_NEAREST = 5
_MEASURES = (
    *("importance", "importance_mean", "importance_resample", "gradient", "entropy", "distance", "confidence"),
    *("strength", "role_score", "aer", "near", "bos", "eos", "punctuation", "weight-1", "weight+1", "duplicate"),
    *("induction", "rare"),
)
# The end of each stage on the scale of progress, by measured times.
_SAMPLED, _COUNTED, _CONTROLLED, _COMPARED, _STRENGTHS, _GRADIENTS = 0.02, 0.12, 0.5, 0.54, 0.58, 0.64
_STOPPED = Message("The computation was stopped.")
_UNREADABLE = Message(
    "The validation data of this bundle cannot be read. Give rows like those: manyheads lens BUNDLE --valid FILE."
)

_N_NEAR_MISSES = 4


@dataclass(frozen=True)
class SurveyedHead:
    """What is known of one head."""

    card: RoleCard
    strength: float
    importance: HeadImportance | None  # None without validation rows
    nearest: tuple[tuple[str, float], ...]  # heads with similar weights, and their Jensen–Shannon divergence
    examples: tuple[HeadExample, ...]

    @property
    def values(self) -> dict[str, float]:
        """The measures of this head."""
        card = self.card
        known = {name: statistic.value for name, statistic in card.statistics.items()}
        known |= {"strength": self.strength, "role_score": role_score(card), "entropy": known["entropy"] / math.log(2)}
        if aligned := [value for name, value in known.items() if name.startswith("align")]:
            known["aer"] = 1 - max(aligned)
        if self.importance is not None:
            known |= self.importance.values
        return {name: known[name] for name in _MEASURES if name in known}

    def to_json(self) -> dict[str, Any]:
        """Return the head as a JSON object, without its examples."""
        card, importance = self.card, self.importance
        return {
            "head": card.head,
            "role": card.role,
            "names": role_message(card.role).by_language(),
            "color": role_color(card.role),
            "roles": [{**asdict(role), "names": role_message(role.name).by_language()} for role in card.roles],
            "reach": card.reach,
            "values": self.values,
            "evidence": role_evidence(card),
            "importance": None if importance is None else importance.to_json(),
            "nearest": [{"head": head, "distance": distance} for head, distance in self.nearest],
        }


@dataclass(frozen=True)
class HeadSurvey:
    """The heads of a bundle, or why they could not be observed."""

    heads: tuple[SurveyedHead, ...] = ()
    n_texts: int = 0
    message: Message | None = None

    @property
    def state(self) -> str:
        """`ready`, or `failed`; a survey that is ready may have a message too."""
        return "ready" if self.heads else "failed"

    @property
    def agreement(self) -> Agreement | None:
        """How far the ranking by gradient agrees with that by ablation; None for fewer than three heads."""
        importances = [head.importance for head in self.heads if head.importance is not None]
        if len(importances) < 3:
            return None
        return rank_agreement(
            [one.gradient.value for one in importances], [one.lost["zero"].value for one in importances]
        )

    def to_json(self) -> dict[str, Any]:
        """Return the survey as a JSON object."""
        heads = [head.to_json() for head in self.heads]
        measures = [name for name in _MEASURES if any(name in head["values"] for head in heads)]
        agreement = self.agreement
        return {
            "state": self.state,
            "done": 1.0,
            "message": None if self.message is None else self.message.by_language(),
            "n_texts": self.n_texts,
            "agreement": None if agreement is None else asdict(agreement),
            "measures": [{"id": name, "names": statistic_name(name).by_language()} for name in measures],
            "heads": heads,
        }

    def examples_json(self, head: Head | str) -> dict[str, Any]:
        """Return the examples of one head as a JSON object."""
        for surveyed in self.heads:
            if surveyed.card.head == str(head):
                return {"head": str(head), "examples": [asdict(example) for example in surveyed.examples]}
        raise LensError(
            _("There is no head {head} in this survey of {n_heads} heads.", head=head, n_heads=len(self.heads))
        )


@dataclass(frozen=True)
class HeadEffect:
    """The change of the task's score over validation rows without one head, with its paired 95 % interval."""

    state: str  # ready or failed
    metric: str = ""
    baseline: float = 0.0
    change: float = 0.0
    low: float = 0.0
    high: float = 0.0
    n_rows: int = 0
    message: Message | None = None

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        message = None if self.message is None else self.message.by_language()
        return {**asdict(self), "done": 1.0, "message": message}


def survey_heads(
    bundle: Bundle,
    n_texts: int = SAMPLE,
    *,
    files: Sequence[Path] = (),
    examples: Sequence[Example] | None = None,
    progress: Callable[[float], None] = lambda share: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> HeadSurvey:
    """Observe every head on the bundle's held-out texts, on the rows of these files, or on these examples.

    Importance needs rows: without validation data or files there is none. `progress` is called with the share that is
    done, from 0 to 1. A survey that fails or is stopped has no heads and a message.
    """
    stages = _Stages(progress, should_stop)
    try:
        sample, message = _read_sample(bundle, n_texts, files, examples)
        if sample is None:
            return HeadSurvey(message=message)
        report, similarities, strengths = _observe(bundle, sample, stages)
        importances = _importances(bundle, n_texts, files, stages)
        stages.reach(1.0)
    except _StoppedError:
        return HeadSurvey(message=_STOPPED)
    message = None if importances else _UNREADABLE
    nearest = _nearest(similarities)
    tokenizer = bundle.task.tokenizer
    heads = []
    for card in report.cards:
        head = Head.parse(card.head)
        shown = stratified_examples(head, strengths, sample.examples, tokenizer)
        importance = importances.get(head)
        heads.append(SurveyedHead(card, strengths.mean(head), importance, nearest.get(card.head, ()), tuple(shown)))
    return HeadSurvey(tuple(heads), report.n_texts, message)


def head_effect(
    bundle: Bundle, head: Head | str, n_rows: int = EFFECT_ROWS, *, files: Sequence[Path] = ()
) -> HeadEffect:
    """Return what ablating one head does to the task's score on validation rows; text is decoded greedily."""
    (found,) = find_heads(bundle.task.model, [Head.parse(head) if isinstance(head, str) else head])
    try:
        rows = valid_rows(bundle, n_rows, files)
        with open_sample(bundle.task, rows, bundle.decode) as sample:
            change = ablate(bundle.task, sample, [[found]])[0].change
    except (DataError, RecipeError):
        return HeadEffect("failed", message=_UNREADABLE)
    return HeadEffect("ready", change.name, change.before, change.difference, change.low, change.high, len(rows))


def _read_sample(
    bundle: Bundle, n_texts: int, files: Sequence[Path], examples: Sequence[Example] | None
) -> tuple[EncodedSample | None, Message | None]:
    """Return the texts to observe heads on, or why there are none."""
    try:
        if examples is None and files:
            rows = valid_rows(bundle, n_texts, files)
            examples = [example for row in rows for example in bundle.task.lens_examples.from_row(row)][:n_texts]
        elif examples is None:
            examples = sample_examples(bundle, n_texts)
    except (DataError, LensError, RecipeError):
        return None, _UNREADABLE
    try:
        return encode_examples(bundle.task, with_targets(bundle, examples)), None
    except LensError:
        return None, no_text(bundle.task)


def _observe(
    bundle: Bundle, sample: EncodedSample, stages: "_Stages"
) -> tuple[HeadReport, Sequence[Similarity], HeadStrengths]:
    """Return roles, similarity and strengths; the roles are those of `make_report`."""
    model, examples = bundle.task.model, sample.examples
    n_maps = len(examples) * len(model.attentions())
    stages.reach(_SAMPLED)
    counts = collect_counts(model, examples, stages.part(_COUNTED, n_maps))
    to_controlled = stages.part(_CONTROLLED, n_maps * len(SEEDS))
    controls = [collect_counts(random_control(model.settings, seed), examples, to_controlled) for seed in SEEDS]
    report = assign_roles(counts, controls, n_skipped=sample.n_skipped)
    stages.reach(_CONTROLLED)
    similarities = compare_heads(model, examples)
    stages.reach(_COMPARED)
    return report, similarities, measure_strengths(model, examples, stages.part(_STRENGTHS, len(examples)))


def _importances(
    bundle: Bundle, n_rows: int, files: Sequence[Path], stages: "_Stages"
) -> Mapping[Head, HeadImportance]:
    """Return the importance of every head; nothing if there are no rows."""
    task = bundle.task
    try:
        rows = valid_rows(bundle, n_rows, files)
        with open_sample(task, rows, bundle.decode) as sample:
            gradients = gradient_importance(task, sample, stages.part(_GRADIENTS, len(sample.plans)))
        heads = heads_of(task.model)
        texts = answered_texts(task, rows, affordable(n_rows, len(heads)))
    except (DataError, RecipeError):
        return {}
    lost = lost_probabilities(task, texts, progress=stages.part(1.0, len(texts) * len(WAYS)))
    return {
        head: HeadImportance({way: lost[way][number] for way in WAYS}, gradients[number])
        for number, head in enumerate(heads)
    }


def _nearest(similarities: Sequence[Similarity]) -> dict[str, tuple[tuple[str, float], ...]]:
    nearest = {}
    for similarity in similarities:
        for row, head in enumerate(similarity.heads):
            others = [
                (other, float(similarity.distances[row, column]))
                for column, other in enumerate(similarity.heads)
                if other != head
            ]
            nearest[head] = tuple(sorted(others, key=lambda pair: pair[1])[:_N_NEAREST])
    return nearest


class _Stages:
    """Progress over several stages; raises `_StoppedError` when the survey is to stop."""

    def __init__(self, progress: Callable[[float], None], should_stop: Callable[[], bool]) -> None:
        self._progress, self._should_stop, self._done = progress, should_stop, 0.0

    def reach(self, share: float) -> None:
        """Report that this share of everything is done."""
        if self._should_stop():
            raise _StoppedError
        self._done = share
        self._progress(share)

    def part(self, end: float, n_items: int) -> Progress:
        """Return a progress of items, the last of which reaches `end`."""
        start, n_done = self._done, 0

        def advance(done: int) -> None:
            nonlocal n_done
            n_done += done
            self.reach(start + (end - start) * min(1.0, n_done / max(1, n_items)))

        return advance


class _StoppedError(Exception):
    """The caller does not want the survey any more."""


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
