"""From what the data looks like to a recipe, each choice with its reason.

`propose` is pure but for what it is given to measure with: the same survey and the same pace give the same plan.
Other tasks than translation get a sibling of `propose_translation` each.
"""

import math
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from manyheads.errors import RecipeError
from manyheads.recipe.estimating import Pace
from manyheads.recipe.settings import Recipe
from manyheads.recipe.surveying import Survey, counted
from manyheads.settings import show

_SMALLER = {"base": "small", "small": "tiny"}  # what to fall back to where a machine is too slow

_FEW = 5_000  # pairs: every trick against overfitting
_SOME = 200_000  # from here on a wider model pays
_MANY = 2_000_000
_LINE = 118
_LEAST_STEPS = 600  # a handful of pairs is met more often than 100 times
_HOUR = 3600.0


@dataclass(frozen=True)
class Choice:
    """One setting of a recipe, and why it is so."""

    name: str  # section.key
    value: object
    why: str


@dataclass(frozen=True)
class Proposal:
    """The settings of a recipe, in the order they are written."""

    choices: tuple[Choice, ...]
    preset: str
    n_epochs: float

    def get(self, name: str, otherwise: Any) -> Any:
        """The value of a setting, or another where the proposal leaves it at its default."""
        return next((choice.value for choice in self.choices if choice.name == name), otherwise)

    def with_files_from(self, folder: Path) -> "Proposal":
        """As written into a folder: files within it are named from there, others in full."""
        names = ("data.train", "data.valid", "data.test")
        return replace(
            self,
            choices=tuple(
                replace(choice, value=[_named_from(folder, file) for file in choice.value])
                if choice.name in names and isinstance(choice.value, list)
                else choice
                for choice in self.choices
            ),
        )

    def table(self) -> dict[str, Any]:
        """As TOML's nested tables."""
        found: dict[str, Any] = {}
        for choice in self.choices:
            section, _, key = choice.name.rpartition(".")
            (found.setdefault(section, {}) if section else found)[key] = choice.value
        return found

    def recipe(self) -> Recipe:
        """As a checked recipe."""
        return Recipe.from_table(self.table())


@dataclass(frozen=True)
class Plan:
    """A proposal that fits into the time there is."""

    proposal: Proposal
    pace: Pace
    n_epochs: float  # times the text is met
    n_epochs_wanted: float  # and would be, if there were time

    @property
    def seconds(self) -> float:
        """How long the whole run takes if the machine stays as busy as it is now."""
        return self.pace.seconds(self.proposal.recipe())

    @property
    def free_seconds(self) -> float:
        """How long it takes when the machine does nothing else."""
        return self.pace.free_seconds(self.proposal.recipe())

    @property
    def is_cut(self) -> bool:
        """Whether the budget ends training notably sooner than would be good."""
        return self.n_epochs < 0.95 * self.n_epochs_wanted


def propose(survey: Survey, budget: float | None, measure: Callable[[Recipe, Survey], Pace]) -> Plan:
    """A plan for this text within a budget of seconds, or within one chosen by the size of the text.

    A budget that is given holds for the machine as busy as it is; the other for a free one, lest a moment's load
    spoil a recipe. Where a model is too slow to meet the whole text even once, a smaller one is proposed.
    """
    preset = ""
    while True:
        proposal = propose_translation(survey, preset)
        pace = measure(proposal.recipe(), survey)
        plan = _fit(proposal, pace, default_budget(survey.n_pairs) * pace.slowdown if budget is None else budget)
        is_late = budget is not None and plan.seconds > budget
        if (plan.n_epochs >= 1 and not is_late) or proposal.preset not in _SMALLER:
            break
        preset = _SMALLER[proposal.preset]
    if is_late:
        steps = plan.proposal.get("train.steps", 0)
        raise RecipeError(
            f"The budget is too short: even {steps} steps, with preparing and scoring, take about "
            f"{plan.seconds:,.0f} s here. Give --budget {math.ceil(plan.seconds / 60)}m or more."
        )
    return plan


def default_budget(n_pairs: int) -> float:
    """Seconds that are worth spending on so much text."""
    return _HOUR if n_pairs < _SOME else 6 * _HOUR if n_pairs < _MANY else 24 * _HOUR


def _fit(proposal: Proposal, pace: Pace, budget: float) -> Plan:
    per_update = pace.batches_per_epoch / proposal.get("train.accumulate", 1)  # updates that an epoch is
    wanted = max(_LEAST_STEPS, _two_digits(proposal.n_epochs * per_update))
    full = with_steps(proposal, wanted, per_update)
    fixed = (pace.prepare + pace.finish) * pace.slowdown
    variable = pace.seconds(full.recipe()) - fixed
    affordable = _two_digits(wanted * max(0.0, budget - fixed) / variable)
    least = _LEAST_STEPS // 10
    steps = max(least, min(wanted, affordable))
    fitting = with_steps(proposal, steps, per_update)
    while steps > least and pace.seconds(fitting.recipe()) > budget:  # shorter runs validate and save more often
        steps = max(least, _two_digits(0.98 * steps))
        fitting = with_steps(proposal, steps, per_update)
    return Plan(fitting, pace, steps / per_update, wanted / per_update)


def _two_digits(number: float) -> int:
    """A count of steps is an estimate: 11,316 → 11,000."""
    scale = 10 ** max(0, int(math.log10(max(1.0, number))) - 1)
    return int(number // scale * scale)


def propose_translation(survey: Survey, preset: str = "") -> Proposal:
    """A recipe for translation that suits this much text; `preset` asks for another size of model."""
    n = survey.n_pairs
    wanted = "tiny" if n < _SOME else "small" if n < _MANY else "base"
    preset = preset or wanted
    smaller = f"; {wanted} would suit the text, but is too slow here" if preset != wanted else ""
    about = f"{'' if survey.is_exact else 'about '}{counted(n, 'pair')}"
    pieces = _n_pieces(survey)
    choices = [
        *_data_choices(survey),
        Choice("tokenizer.kind", "bpe", "pieces of words, learnt from your text"),
        Choice("tokenizer.vocabulary", pieces, _why_pieces(survey, about)),
        Choice("model.preset", preset, f"{_SIZES[preset]}: enough for {about}{smaller}"),
        Choice("model.norm_place", "pre", "trains steadily at a high learning rate"),
        Choice("model.dropout", _dropout(n), f"the less text, the more: {about}"),
        Choice("model.max_length", _max_length(survey), "pieces; longer sentences are left out of training"),
        Choice("task.smoothing", 0.1, "label smoothing: never quite sure of itself, which helps beam search"),
        *_training_choices(n, preset),
        Choice("decode.beam", 5, "hypotheses kept side by side when translating"),
    ]
    if n < _FEW:
        sampling = Choice(
            "tokenizer.sampling", 0.1, "cuts words differently each time they are met: more from few pairs"
        )
        choices.insert([choice.name for choice in choices].index("tokenizer.vocabulary") + 1, sampling)
    return Proposal(tuple(choices), preset, _n_epochs(n))


_SIZES = {
    "tiny": "4 + 4 layers of width 128",
    "small": "4 + 4 layers of width 256",
    "base": "6 + 6 layers of width 512",
}
_RATES = {"tiny": 3e-3, "small": 2e-3, "base": 1e-3}
_BATCHES = {"tiny": 1200, "small": 3000, "base": 8000}  # small ones learn more from as many tokens


def _data_choices(survey: Survey) -> Iterable[Choice]:
    data = survey.data
    yield Choice("data.train", list(data.train), "what to learn from")
    if data.valid:
        yield Choice("data.valid", list(data.valid), "watched while training, never learnt from")
    if data.test:
        yield Choice("data.test", list(data.test), "scored once, at the end")
    if data.source_column:
        yield Choice("data.source_column", data.source_column, "the column to translate from")
        yield Choice("data.target_column", data.target_column, "the column to translate into")
    for side, language in zip(("source", "target"), survey.languages, strict=True):
        why = "how BLEU cuts words depends on it" if side == "target" else "the language translated from"
        if language:
            yield Choice(f"task.{side}_language", language, why)


def _training_choices(n_pairs: int, preset: str) -> Iterable[Choice]:
    """Steps and what follows from them are put in by `with_steps`, when the length of an epoch is known."""
    yield Choice("train.steps", 1, "")
    few = n_pairs < _FEW
    yield Choice("train.batch_tokens", 1000 if few else _BATCHES[preset], "padded tokens of a batch, on either side")
    if preset == "base":
        yield Choice("train.accumulate", 3, "batches an update is made of: large models like 25,000 tokens")
    yield Choice("train.schedule", "cosine", "the learning rate climbs, then falls to 0 at the last step")
    rate = 3e-3 if few else _RATES[preset]
    yield Choice("train.learning_rate", rate, "at its peak; narrow models bear more")
    yield Choice("train.warmup", 1, "steps to climb")
    yield Choice("train.validate_every", 1, "translate 200 valid sentences to see how it goes")
    yield Choice("train.save_every", 1, "what a power cut can cost you, in steps")
    yield Choice("train.ema", 0.999, "a running mean of the weights: less noise")
    yield Choice("train.average", 1, "the running mean needs no further averaging")


def _n_epochs(n_pairs: int) -> float:
    """45 epochs of Multi30k's 29,000 pairs, fewer of more."""
    return min(100.0, max(3.0, 45.0 * (29_000 / n_pairs) ** 0.55))


_PIECES = (  # below so many pairs: so many pieces; with many signs: so many
    (1_000, 1000, 1500),
    (_FEW, 2000, 3000),
    (15_000, 4000, 3000),
    (60_000, 6000, 4000),
    (500_000, 8000, 10_000),
    (_MANY, 16_000, 16_000),
)


def _n_pieces(survey: Survey) -> int:
    for limit, pieces, with_many_signs in _PIECES:
        if survey.n_pairs < limit:
            return with_many_signs if survey.has_many_signs else pieces
    return 32_000


def _why_pieces(survey: Survey, about: str) -> str:
    signs = "; most are single characters such as 字" if survey.has_many_signs else ""
    return f"each has to be met often enough to be learnt: {about}{signs}"


def _dropout(n_pairs: int) -> float:
    """Little: in the hours one has, a small model learns too little rather than too much (benchmarks/quality.md)."""
    for limit, dropout in ((_FEW, 0.3), (15_000, 0.2), (500_000, 0.15)):
        if n_pairs < limit:
            return dropout
    return 0.1


def _max_length(survey: Survey) -> int:
    """256, 512 or 1024 places: room for all sentences but one in a thousand, unless they are longer still.

    A piece is taken to have three characters, or one where it is written with many signs.
    """
    lengths = sorted(max(map(len, pair)) for pair in survey.sample)
    long = lengths[int(0.999 * (len(lengths) - 1))]
    wanted = long if survey.has_many_signs else long / 3
    return next((places for places in (256, 512) if wanted < 0.9 * places), 1024)


def _named_from(folder: Path, file: str) -> str:
    full, root = Path(file).resolve(), folder.resolve()
    return str(full.relative_to(root)) if full.is_relative_to(root) else str(full)


def with_steps(proposal: Proposal, steps: int, per_epoch: float) -> Proposal:
    """A proposal with so many steps, of which an epoch has `per_epoch`, and with what depends on them."""
    warmup = 4000 if proposal.preset == "base" else 600
    often = _round(steps / 25)
    values = {
        "train.steps": steps,
        "train.warmup": max(1, min(warmup, steps // 8)),
        "train.validate_every": often,
        "train.save_every": often,
    }
    choices = [replace(choice, value=values.get(choice.name, choice.value)) for choice in proposal.choices]
    seen = f"about {round_off(steps / per_epoch)} times through the text"
    return replace(
        proposal,
        choices=tuple(replace(choice, why=seen) if choice.name == "train.steps" else choice for choice in choices),
    )


def round_off(number: float) -> str:
    """A number of epochs as people say it: 0.83, 5.7, 45."""
    return f"{number:.2g}" if number < 10 else f"{number:,.0f}"


def _round(number: float) -> int:
    """Down to one of 1, 2, 5, 10, 20, 50 …"""
    if number < 1:
        return 1
    scale = 10 ** int(math.log10(number))
    return int(next(part for part in (5, 2, 1) if part * scale <= number) * scale)


def to_commented_toml(proposal: Proposal, heading: Iterable[str]) -> str:
    """The proposal as a recipe to read: a heading, then each setting with its reason."""
    lines = [f"# {line}".rstrip() for line in heading]
    section = ""
    for name in dict.fromkeys(choice.name.rpartition(".")[0] for choice in proposal.choices):
        section = name
        rows = [choice for choice in proposal.choices if choice.name.rpartition(".")[0] == section]
        lines += ["", f"[{section}]"]
        settings = [f"{choice.name.rpartition('.')[2]} = {show(choice.value)}" for choice in rows]
        column = max((len(setting) for setting in settings if len(setting) <= 40), default=0)
        for choice, setting in zip(rows, settings, strict=True):
            line = f"{setting:<{column}}  # {choice.why}"
            if not choice.why:
                lines.append(setting)
            elif len(line) <= _LINE:
                lines.append(line)
            else:
                lines += [*textwrap.wrap(choice.why, _LINE, initial_indent="# ", subsequent_indent="# "), setting]
    return "\n".join(lines) + "\n"
