"""A question asked on the data of a recipe: `manyheads lab QUESTION --on recipe.toml`.

Each arm trains the model of the recipe with the arm's change for a few hundred steps and is scored on the validation
set. Conditions do not apply: widths, depth and batch size are those of the recipe.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from manyheads.errors import LabError, RecipeError, TrainingError
from manyheads.lab.lab_texts import in_each_language
from manyheads.lab.question import NO_CONDITION, ONLY, Answer, Arm, ArmComparison, Measure, Plot, Question
from manyheads.lab.sweep import RunTrial
from manyheads.lab.trial import initialize_by_name
from manyheads.messages import Message, _
from manyheads.model import Transformer, evaluating
from manyheads.run import Corpus, Recipe, RunFolder, read_recipe
from manyheads.run.preparation import PreparedData, prepare
from manyheads.settings import toml_value
from manyheads.tasks import Task, TrainingData
from manyheads.training import Trainer, peak_learning_rate

_DEFAULT_STEPS = 200
_N_LAST = 50  # steps whose mean loss is reported
_RECIPE_KEYS = {"smoothing": "task.smoothing", "warmup": "train.warmup"}  # of the keys of Setup
_SCORE, _LOSS = "score", "loss"


@dataclass(frozen=True)
class RecipeExperiment:
    """A question as it runs on a recipe."""

    question: Question
    impossible: Mapping[str, str]  # arms that cannot run, with the reason
    recipe: Path
    folder: Path  # of the prepared data
    data: str  # identifies the recipe and the number of steps
    run: RunTrial

    def prepare(self) -> None:
        """Clean and tokenize the text of the recipe, or find it in the cache."""
        RunFolder(self.folder).claim()
        for _stage in prepare(read_recipe(self.recipe), RunFolder(self.folder)):
            pass


def ask_on_recipe(question: Question, path: Path, folder: Path, *, is_full: bool = False) -> RecipeExperiment:
    """The question as it is asked on a recipe: which arms can run on it, and what they are compared by."""
    recipe = read_recipe(path)
    n_steps = recipe.train.steps if is_full else min(recipe.train.steps, _DEFAULT_STEPS)
    impossible = {arm.name: reason for arm in question.arms if (reason := _fault(arm, path, n_steps))}
    possible = [arm for arm in question.arms if arm.name not in impossible]
    if len(possible) < 2:
        reasons = " ".join(dict.fromkeys(impossible.values()))
        raise LabError(
            _(
                "{question} cannot be asked on {path}: fewer than two of its arms can run. {reasons}",
                question=question.id,
                path=path,
                reasons=reasons,
            )
        )
    peak = peak_learning_rate(recipe.train, recipe.model.width)
    metric = recipe.train.validation_metric or recipe.task_class.metrics[0]
    n_last = min(_N_LAST, n_steps)
    measures = (
        Measure(_SCORE, Message("{metric} on the validation set", metric=metric), "higher", digits=2),
        Measure(_LOSS, Message("training loss, last {n_last} steps", n_last=n_last), "lower", digits=3),
    )
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
    asked = replace(
        question,
        conditions=NO_CONDITION,
        skipped=(),
        measures=measures,
        comparisons=tuple(_comparisons(question)),
        plots=(Plot(_SCORE), Plot(_LOSS)),
        claims=(),
        tuned_on=_SCORE,
        learning_rates=(peak / 2, peak, 2 * peak),
        n_tuning_seeds=1,
        measures_time=False,
        answer=_answer(question, possible),
        method=Message(
            "The model of {recipe} with the change of each arm, {n_steps:,} steps, scored on the validation set. A "
            "linear baseline is not mixed in.",
            recipe=path.name,
            n_steps=n_steps,
        ),
    )
    return RecipeExperiment(
        asked, impossible, path, folder, f"{digest} {n_steps}", partial(_run_trial, str(path), str(folder), n_steps)
    )


def _comparisons(question: Question) -> list[ArmComparison]:
    """The quality comparisons of a question, each pair of arms once, as comparisons of the validation score."""
    found: dict[tuple[str, str], ArmComparison] = {}
    for asked in question.comparisons:
        better = question.measure(asked.measure).better
        if better is None or asked.against_condition is not None or (asked.arm, asked.against) in found:
            continue
        expect = asked.expect
        if better == "lower" and expect != "same":
            expect = "higher" if expect == "lower" else "lower"
        found[asked.arm, asked.against] = replace(asked, measure=_SCORE, condition=ONLY, expect=expect, margin=1.0)
    return list(found.values())


def _answer(question: Question, arms: Sequence[Arm]) -> Answer:
    """On other data the question's own answer does not apply: name the score of each arm instead."""
    scores = in_each_language(
        lambda: ", ".join(f"{arm.label} {{{{mean {question.id} {arm.name} {ONLY} {_SCORE}}}}}" for arm in arms)
    )
    text = Message("Validation scores: {scores}.", scores=scores)
    return Answer(text, text)


def _assignments(arm: Arm) -> list[str]:
    """The change of an arm as `key=value` of a recipe."""
    found = []
    for key, value in arm.changes.items():
        name = key if key.startswith("model.") else _RECIPE_KEYS.get(key)
        if key == "alter":
            continue
        if name is None or callable(value):
            raise LabError(_("An arm changes {key}, which a recipe does not have.", key=key))
        found.append(f"{name}={toml_value(value)}")
    return found


def _fault(arm: Arm, path: Path, n_steps: int) -> str:
    """Why an arm cannot run on a recipe; "" if it can."""
    try:
        recipe = _arm_recipe(arm, path, n_steps, None, 1)
        _altered(arm, Transformer(replace(recipe.model, vocab_size=16)))
    except (LabError, RecipeError) as error:
        return str(error).removeprefix(f"{path}: ")
    return ""


def _altered(arm: Arm, model: Transformer) -> Transformer:
    alter = arm.changes.get("alter")
    changed = model if alter is None else alter(model)
    if not isinstance(changed, Transformer):
        raise LabError(_("An arm is not a Transformer, which the tasks need."))
    return changed


def _arm_recipe(arm: Arm, path: Path, n_steps: int, learning_rate: float | None, seed: int) -> Recipe:
    rate = [] if learning_rate is None else [f"train.learning_rate={learning_rate!r}"]
    # A linear model that is mixed in would hide what the arms differ in.
    baseline = ["task.baseline=false"] if hasattr(read_recipe(path).task, "baseline") else []
    return read_recipe(path, [*_assignments(arm), *rate, *baseline, f"train.steps={n_steps}", f"seed={seed}"])


@cache
def _prepared(path: Path, folder: Path) -> tuple[PreparedData, list[Any]]:
    """The data of the recipe, from the cache; once for each process."""
    recipe = read_recipe(path)
    stages = prepare(recipe, RunFolder(folder))
    while True:
        try:
            next(stages)
        except StopIteration as end:
            return end.value, list(Corpus.of(recipe).valid())


def _run_trial(
    path: str,
    folder: str,
    n_steps: int,
    question: str,
    arm: str,
    condition: str,
    seed: int,
    rate: float | None,
    full: bool,
) -> Mapping[str, float]:
    """Train one arm of a question on a recipe; called in a worker process."""
    from manyheads.lab.questions import QUESTIONS

    torch.set_num_threads(1)
    chosen = QUESTIONS[question].arm(arm)
    recipe = _arm_recipe(chosen, Path(path), n_steps, rate, seed)
    data, valid = _prepared(Path(path), Path(folder))
    model = _altered(chosen, Transformer(replace(recipe.model, vocab_size=data.tokenizer.vocab_size)))
    task: Task = recipe.task_class.create(model, data.tokenizer, recipe.task, data.encoded.texts)
    initialize_by_name(task.module, seed)
    trainer: Trainer[Any] = Trainer(
        task.module,
        task.training_task(
            TrainingData(
                encoded=data.encoded,
                batch_tokens=recipe.train.batch_tokens,
                sampling=recipe.tokenizer.sampling,
                seed=seed,
                boundaries=data.boundaries,
                weights=Corpus.of(recipe).weights,
            )
        ),
        recipe.train,
        width=recipe.model.width,
        seed=seed,
    )
    losses = []
    try:
        losses += [step.loss for step in trainer.run()]
    except TrainingError:  # diverged: the weights before that step are scored
        if not losses:
            raise
    sample = list(islice(task.usable(valid), task.init.n_validated))
    with trainer.using_eval_weights(), evaluating(task.module):
        result = task.validate(sample, recipe.train.validation_metric or task.metrics[0])
    return {_SCORE: result.score, _LOSS: fmean(losses[-_N_LAST:])}
