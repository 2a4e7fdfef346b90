"""`run`: train and score a model by a recipe, as a stream of events.

Running the same recipe into the same folder again resumes where it stopped, and the final weights are bit-identical.
"""

import hashlib
import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from manyheads.bounded_files import MAX_BYTES
from manyheads.bundle import Bundle, load
from manyheads.data.cleaning import KEPT, TextSet
from manyheads.data.split import NOTHING_TO_VALIDATE_ON
from manyheads.data.texts import chunks
from manyheads.decode import EngineSelector
from manyheads.errors import CheckpointError, DataError, ManyheadsError, RecipeError, TrainingError
from manyheads.messages import _
from manyheads.metrics import Use
from manyheads.model import evaluating
from manyheads.model.size import refuse_too_large
from manyheads.model.weights import count_parameters, load_weights, weights_of
from manyheads.run.corpus import Corpus
from manyheads.run.environment import Environment, original_environment
from manyheads.run.events import (
    FROZEN_FEATURES,
    BaselineScored,
    DecodingChosen,
    Event,
    Finished,
    Interrupted,
    Prepared,
    RecipeChanged,
    Resumed,
    Saved,
    Stage,
    StoppedEarly,
    Validated,
    WeightsChosen,
    event_record,
)
from manyheads.run.follower import check_same_everywhere
from manyheads.run.preparation import delete_prepared_data, prepare
from manyheads.run.recipe import Recipe
from manyheads.run.run_folder import RunFolder
from manyheads.run.scoring import VALID, score_rows, validation_uses
from manyheads.run.stopping import StopRequest
from manyheads.run.trainer_setup import check_device, create_task, create_trainer, pick_own_device
from manyheads.run.warm_start import freeze, warm_start
from manyheads.settings import to_table, to_toml
from manyheads.storage import DISK_FULL, MANIFEST, atomic_write, locked, remove_partial
from manyheads.tasks import LabelingTask, PairTask, Task
from manyheads.text.tokens.seen_words import SeenWords
from manyheads.training import Checkpoints, ProcessGroup, Trainer
from manyheads.training.micro_batches import check_divisible, choose_micro_batches

# Settings that may change between interruption and resumption: none of them affects the steps already made.
_EDITABLE = ("train.steps", "train.keep_all_snapshots", "train.shard", "train.compile", "decode", "device")
_TRAINING_BYTES = 16  # per parameter: a weight, its gradient and the two moments of Adam
_VALIDATION_DUE = "validation_due"  # a note in a checkpoint: its step is not validated yet
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of training in the final weights
_N_TRACKED = 4  # of them, rows whose predictions are logged at every validation


def run(
    recipe: Recipe, path: Path, should_stop: Callable[[], bool] = lambda: False, group: ProcessGroup | None = None
) -> Iterator[Event]:
    """Train by the recipe in the run folder `path`, or resume; yield the events and append them to the log.

    `should_stop` is called after every step; when it returns True, the run saves a checkpoint and ends. With a
    `StopRequest`, signals also interrupt validation and everything after the last step at once. This is rank 0 of a
    `group` of several processes; the others call `follow_run`.
    """
    folder = RunFolder(path)
    group = group or ProcessGroup()
    stop = should_stop if isinstance(should_stop, StopRequest) else StopRequest(should_stop)
    try:
        folder.claim()
        with locked(path):
            check_same_everywhere(recipe, group)
            recipe = _with_micro_batches(recipe, folder, group)
            changes = check_same_recipe(recipe, path)
            _check_checkpoints_exist(folder)
            _remove_partial_files(folder)
            if not folder.is_started:
                _delete_outdated_data(recipe, folder)
            atomic_write(folder.recipe_file, _recipe_content(recipe))
            with (
                original_environment(folder, group.size) as environment,
                folder.log_file.open("a", encoding="utf-8") as log,
            ):
                events = _Run(recipe, folder, stop, environment, group).events()
                for event in chain([RecipeChanged(changes)] if changes else [], events):
                    record = {"event": type(event).__name__, "time": time.time()} | event_record(event)
                    log.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")
                    log.flush()
                    yield event
    except BaseException as error:
        group.report_failure(error)
        group.abandon()
        if not isinstance(error, OSError) or error.errno not in DISK_FULL:
            raise
        raise TrainingError(
            _(
                "{path}: the disk is full. Everything saved before is intact: free some space, then run the same "
                "command again to resume.",
                path=path,
            )
        ) from None


def _with_micro_batches(recipe: Recipe, folder: RunFolder, group: ProcessGroup) -> Recipe:
    """Set `train.micro_batches` if the recipe does not: as the run was started, or so that all processes have work."""
    if folder.is_started and folder.recipe_file.exists():
        recorded = folder.read_recipe_table().get("train", {}).get("micro_batches")
        chosen = recipe.train.micro_batches or (recorded if isinstance(recorded, int) else None)
    else:
        chosen = choose_micro_batches(recipe.train, group.size)
    recipe = replace(recipe, train=replace(recipe.train, micro_batches=chosen))
    check_divisible(recipe.train, group.size, is_started=folder.is_started)
    return recipe


def delete_run(path: Path) -> None:
    """Delete the files of a run, and no others; the folder remains a run folder.

    The cached text remains, because other runs may use it. To delete it, remove the folder `.manyheads-cache` beside
    the run folder, or the one that MANYHEADS_CACHE names.
    """
    if not path.exists():
        return
    folder = RunFolder(path)
    folder.claim()
    with locked(path):
        folder.log_file.write_text("", encoding="utf-8")
        delete_prepared_data(folder)
        for written in (folder.bundle, folder.best, *folder.step_folders()):
            if (written / MANIFEST).exists():
                shutil.rmtree(written)
        for parent in (folder.snapshots, folder.checkpoints):
            if parent.is_dir() and not any(parent.iterdir()):
                parent.rmdir()
        for file in (folder.recipe_file, folder.environment_file, folder.report_file, folder.lens_file):
            file.unlink(missing_ok=True)


def check_same_recipe(recipe: Recipe, path: Path) -> list[str]:
    """Refuse a folder that belongs to a run of another recipe; return the changes of settings that may change."""
    folder = RunFolder(path)
    folder.check_format()
    if not folder.recipe_file.exists() or not folder.is_started:
        return []
    # Files may move: their contents are compared by digest.
    differences = _differences(_without_files(folder.read_recipe_table()), _without_files(to_table(recipe)))
    changes = {
        name: _("{name} was {old}, now {new}", name=name, old=_show(old), new=_show(new))
        for name, (old, new) in differences.items()
    }
    if "train.steps" in changes and recipe.train.schedule == "cosine":
        changes["train.steps"] += _(" (from here on the learning rate decays to 0 at the new last step)")
    fixed = [change for name, change in changes.items() if not name.startswith(_EDITABLE)]
    if fixed:
        raise RecipeError(
            _(
                "{path} contains a run of another recipe ({changes}). Choose another folder with -o. Only {editable} "
                "may change between interruption and resumption.",
                path=path,
                changes="; ".join(fixed),
                editable=", ".join(_EDITABLE),
            )
        )
    newest = folder.newest_step or 0
    if newest > recipe.train.steps:
        raise RecipeError(
            _(
                "train.steps = {steps}, but {path} is at step {newest} already. Choose another folder with -o.",
                steps=recipe.train.steps,
                path=path,
                newest=newest,
            )
        )
    return list(changes.values())


def _check_checkpoints_exist(folder: RunFolder) -> None:
    """Refuse to start over in a folder whose log records checkpoints that no longer exist."""
    if folder.newest_step is not None:
        return
    steps = [entry["step"] for entry in folder.log().of_kind("Saved", "Interrupted")]
    if steps:
        raise CheckpointError(
            _(
                "{path}: the checkpoints are missing, but the log records one at step {step}. Restore "
                "{checkpoints}, or train into another folder with -o.",
                path=folder.path,
                step=steps[-1],
                checkpoints=folder.checkpoints,
            )
        )


def _remove_partial_files(folder: RunFolder) -> None:
    """Remove what a killed run left half-written; the caller holds the lock."""
    Checkpoints(folder.path, 1).sweep()
    remove_partial(folder.path, folder.bundle.name)
    with folder.log_file.open("r+b") as log:
        n_whole = sum(len(line) for line in log if line.endswith(b"\n"))
        log.truncate(n_whole)


def _delete_outdated_data(recipe: Recipe, folder: RunFolder) -> None:
    """Delete the tokenizer if the recipe changed: that is allowed before the first checkpoint."""
    if not folder.recipe_file.exists() or _differences(folder.read_recipe_table(), to_table(recipe)):
        delete_prepared_data(folder)


def _without_files(table: Mapping[str, Any]) -> dict[str, Any]:
    data = {key: value for key, value in table.get("data", {}).items() if key not in ("train", "valid", "test")}
    data["mix"] = [{**entry, "files": len(entry["files"])} for entry in data.get("mix", ())]
    return {**table, "data": data}


def _differences(
    old: Mapping[str, object], new: Mapping[str, object], section: str = ""
) -> dict[str, tuple[object, object]]:
    """Return the old and new value of every setting that differs, by its full name; None where it is not set."""
    different: dict[str, tuple[object, object]] = {}
    for key in sorted({*old, *new}):
        before, after = old.get(key), new.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            different |= _differences(before, after, f"{section}{key}.")
        elif before != after:
            different[f"{section}{key}"] = (before, after)
    return different


def _show(value: object) -> str:
    return _("not set") if value is None else str(value)


def _recipe_content(recipe: Recipe) -> bytes:
    """Return the resolved recipe, which lists every file of a folder; raise if no run or bundle could read it again."""
    content = to_toml(to_table(recipe)).encode()
    if len(content) > MAX_BYTES:
        raise RecipeError(
            _(
                "The recipe takes {n_bytes:,} bytes with the names of all files; at most {most:,} are "
                "possible. Join small files into larger ones.",
                n_bytes=len(content),
                most=MAX_BYTES,
            )
        )
    return content


def _blend(start: Mapping[str, Tensor], trained: Mapping[str, Tensor], share: float) -> dict[str, Tensor]:
    """Return weights on the way from those at the start to the trained ones."""
    return {
        name: torch.lerp(value, trained[name].to(value.device), share) if value.is_floating_point() else trained[name]
        for name, value in start.items()
    }


class _Run:
    """The state of one run; each method is a stage."""

    def __init__(
        self, recipe: Recipe, folder: RunFolder, stop: StopRequest, environment: Environment, group: ProcessGroup
    ) -> None:
        self.recipe = recipe
        self.group = group
        self.folder = folder
        self.stop = stop
        self.environment = environment
        self.corpus = Corpus.of(recipe)
        self.start: dict[str, Tensor] | None = None  # the weights before the first step, if the output layer is fitted

    def events(self) -> Iterator[Event]:
        yield from self._prepare()
        settings = self.recipe.train
        checkpoints = Checkpoints(
            self.folder.path, settings.average_snapshots, self._identity, keeps_all=settings.keep_all_snapshots
        )
        trainer = self._trainer()
        warnings = checkpoints.restore(trainer)
        trainer.share()
        if trainer.step or warnings:
            yield Resumed(trainer.step, warnings)
        with self.stop.deferred():
            is_stopped = yield from self._train(trainer, checkpoints)
            self.group.command("stop")
            self.group.finish()
        if is_stopped:
            yield Interrupted(trainer.step)
            return
        if self._is_out_of_patience(trainer):
            yield StoppedEarly(trainer.step, int(trainer.notes["best_step"]))
        try:
            with self.stop.immediate():
                yield from self._finish(checkpoints)
        except KeyboardInterrupt:
            if not self.stop.requested:
                raise
            yield Interrupted(trainer.step)

    def _prepare(self) -> Iterator[Event]:
        started = time.perf_counter()
        device = pick_own_device(self.recipe, self.group)
        check_device(self.recipe, device)
        if device.type == "cpu":
            refuse_too_large(self.recipe.model, _TRAINING_BYTES)
        self.data = yield from prepare(self.recipe, self.folder)
        self.tokenizer = self.data.tokenizer
        model = replace(self.recipe.model, vocab_size=self.tokenizer.vocab_size)
        self.recipe = replace(self.recipe, model=model)
        self.group.share({"micro_batches": self.recipe.train.micro_batches, "threads": self.environment.threads})
        self.task: Task = create_task(self.recipe, self.data)
        fits_head = self.recipe.task.fits_head
        copied = None if self.folder.is_started and not fits_head else self._warm_start()
        freeze(self.task.module, self.recipe.freeze, may_freeze_all=not self.recipe.train.steps)
        self.task.module.to(device)
        self._read_held_out_rows()
        if fits_head:
            yield Stage(_("fitting the output layer"))
            self.task.fit_head(self.data.encoded.texts)
            # A resumed run needs them again, to compare the trained weights with them.
            self.start = {name: value.clone() for name, value in weights_of(self.task.module).items()}
        yield Prepared(
            noun=self.task.noun,
            n_rows=len(self.data.encoded),
            loss_unit=self.task.loss_unit,
            dropped={reason: count for reason, count in self.data.counts.items() if reason != KEPT},
            vocab_size=self.tokenizer.vocab_size,
            n_parameters=count_parameters(self.task.module),
            device=str(self.task.model.device),
            seconds=time.perf_counter() - started,
            warnings=self.data.warnings,
            loss_terms=self.recipe.task.loss_terms,
            n_threads=self.environment.threads,
            n_processes=self.group.size,
            has_too_few_cores=self.environment.is_short_of_cores,
            old_torch=None if self.environment.torch == torch.__version__ else self.environment.torch,
            warm_start=copied,
            n_valid=len(self.valid),
            valid_dropped=dict(self.valid_dropped),
        )
        usable = list(self.task.usable(self.valid))
        if isinstance(self.task, LabelingTask) and self.task.baseline_name:
            yield BaselineScored(self.task.baseline_name, self.task.baseline_tally(usable).score())
        if self.start is not None:
            yield BaselineScored(FROZEN_FEATURES, self.task.tally(usable, self.recipe.decode).score())

    def _read_held_out_rows(self) -> None:
        """Read the validation set and the test set to the end, so that faulty files are reported before training."""
        self.valid_dropped = Counter[str]()
        self.valid = list(self.corpus.valid(self.valid_dropped))
        self.valid_sample = list(islice(self.task.usable(self.valid), self.task.init.n_validated))
        if not self.valid and self.valid_dropped:
            raise DataError(NOTHING_TO_VALIDATE_ON)
        if not self.valid_sample:
            raise DataError(_("The validation set is empty. Set data.valid, or give more training text."))

    def _warm_start(self) -> str | None:
        """Copy the weights of the bundle `init_from`; return a description, or None without such a bundle."""
        if not self.recipe.init_from:
            return None
        n_copied, n_all = warm_start(self.task.model, load(self.recipe.init_from).task.model, self.recipe.init_from)
        return f"{n_copied} of {n_all} weights from {self.recipe.init_from}"

    @property
    def _identity(self) -> str:
        """A string that distinguishes this run's checkpoints from those of others."""
        return f"{hashlib.sha256(self.tokenizer.to_bytes()).hexdigest()} {self.recipe.seed}"

    def _trainer(self) -> Trainer[Any]:
        task = self.task
        if self.recipe.train.shard and not self.group.is_alone:  # rank 0 validates a whole model of its own
            task = create_task(self.recipe, self.data)
            load_weights(task.module, weights_of(self.task.module), "the new model")
            freeze(task.module, self.recipe.freeze)
            task.module.to(self.task.model.device)
        return create_trainer(self.recipe, self.data, task, self.group, self.task)

    def _train(self, trainer: Trainer[Any], checkpoints: Checkpoints) -> Generator[Event, None, bool]:
        """Train to the last step, or until the score no longer improves; return whether a stop was requested."""
        settings = self.recipe.train
        is_behind = trainer.step == settings.steps and not checkpoints.has_snapshot(trainer.step)
        if trainer.notes.pop(_VALIDATION_DUE, 0.0) or is_behind:  # the run was stopped at exactly this step
            yield from self._validate_and_save(trainer, checkpoints)
            if self._save_if_stopped(trainer, checkpoints):
                return True
        if self._is_out_of_patience(trainer):
            return False
        for step in trainer.run():
            yield step
            yield from self._validate_and_save(trainer, checkpoints)
            if self._save_if_stopped(trainer, checkpoints):
                return True
            if self._is_out_of_patience(trainer):
                break
        return False

    def _save_if_stopped(self, trainer: Trainer[Any], checkpoints: Checkpoints) -> bool:
        """Return whether a stop was requested; if so, save what is not saved yet."""
        if not (self.stop() or self.group.is_stop_requested):
            return False
        if checkpoints.newest != trainer.step:
            checkpoints.save(trainer, snapshot=False)
        return True

    def _validate_and_save(self, trainer: Trainer[Any], checkpoints: Checkpoints) -> Iterator[Event]:
        """Validate and save after a step, if they are due; a signal ends it, and it is repeated on resumption."""
        settings = self.recipe.train
        is_last = trainer.step == settings.steps
        # Validation comes first, so that a run killed between the two validates again.
        if is_last or trainer.step % settings.validate_every == 0:
            notes = dict(trainer.notes)
            try:
                # Innermost: an interruption must not leave the model with half of its training weights.
                with trainer.using_eval_weights(), evaluating(self.task.module), self.stop.immediate():
                    validated = self._validate(trainer.step, trainer.notes)
            except KeyboardInterrupt:
                if not self.stop.requested:
                    raise
                trainer.notes = notes | {_VALIDATION_DUE: 1.0}
                return
            if settings.patience is not None and trainer.notes["best_step"] == trainer.step:
                checkpoints.save_best(trainer)
            yield validated
        if is_last or self._is_out_of_patience(trainer) or trainer.step % settings.save_every == 0:
            checkpoints.save(trainer, snapshot=True)
            yield Saved(trainer.step)

    def _validate(self, step: int, notes: dict[str, float]) -> Validated:
        settings = self.recipe.train
        result = self.task.validate(self.valid_sample, settings.validation_metric or self.task.metrics[0])
        if "best" not in notes or result.score > notes["best"]:
            notes |= {"best": result.score, "best_step": step, "misses": 0}
        else:
            notes["misses"] += 1
        sample = result.samples[step // settings.validate_every % len(result.samples)]
        tracked = result.samples[:: max(1, len(result.samples) // _N_TRACKED)][:_N_TRACKED]
        return Validated(step, result.metric, result.score, notes["best"], sample, tracked)

    def _is_out_of_patience(self, trainer: Trainer[Any]) -> bool:
        patience = self.recipe.train.patience
        return patience is not None and trainer.notes.get("misses", 0) >= patience

    def _finish(self, checkpoints: Checkpoints) -> Iterator[Event]:
        weights = checkpoints.averaged() if self.recipe.train.patience is None else checkpoints.best()
        load_weights(self.task.module, weights, f"a checkpoint in {self.folder.path}")
        self.task.module.eval()
        task = self.task
        if self.start is not None:
            chosen = self._choose_weights(self.start, weights)
            yield chosen
            task = task.with_trained_share(chosen.share)
            if not self.recipe.train.steps and not self.recipe.data.valid:
                task = task.refit_head(list(self.data.encoded.texts), self.valid)
        refitted, task = task, task.calibrate(self.valid)
        is_calibrated, decode, choice = task is not refitted or task.is_refitted, self.recipe.decode, None
        if isinstance(task, PairTask):
            yield Stage(_("choosing how to decode"))
            metric = self.recipe.train.validation_metric or task.metrics[0]
            task, decode, choice = task.tune_decoding(self.valid, decode, metric)
            if choice:
                yield DecodingChosen(choice)
        engine_task = task.with_engine(EngineSelector("auto"))
        uses = validation_uses(self.recipe, is_calibrated=is_calibrated, is_tuned=choice is not None)
        cards = {}
        for name, rows in self.corpus.tests().items():
            yield Stage(_("scoring the {name} set", name=name))
            own_uses = (*self._training_use(name), *(uses if name == VALID else ()))
            cards[name] = score_rows(engine_task, rows, decode, own_uses)
        scores = {name: card.scores for name, card in cards.items()}
        table, words = to_table(self.recipe), self._seen_words()
        # The scores of this run are those of folds; others would be of rows that the model was fitted on.
        uses = ("training", *uses) if task.is_refitted else uses
        bundle = Bundle(task, decode, table, scores, validation_used_for=uses, decoding_choice=choice, seen_words=words)
        bundle.save(self.folder.bundle)
        yield Finished(bundle=self.folder.bundle, cards=cards)

    def _choose_weights(self, start: Mapping[str, Tensor], trained: Mapping[str, Tensor]) -> WeightsChosen:
        """Load the weights with the lowest loss on validation rows: those before training, after it, or in between.

        The mean of both is often better than either (WiSE-FT, Wortsman 2022).
        """
        shares = _SHARES if self.recipe.train.steps else (0.0,)
        losses = {}
        for share in shares:
            load_weights(self.task.module, _blend(start, trained, share), "the weights of this run")
            losses[share] = self.task.fitted_loss(self.valid)
        best = min(shares, key=lambda share: losses[share])
        load_weights(self.task.module, _blend(start, trained, best), "the weights of this run")
        return WeightsChosen(best, {f"{share:.0%}": loss for share, loss in losses.items()}, len(self.valid))

    def _training_use(self, name: str) -> tuple[Use, ...]:
        """Return the mark of a set of which training kept a text, which `clean.drop_leaked = false` allows."""
        if self.recipe.data.builtin or self.recipe.clean.drop_leaked:
            return ()
        scored = TextSet(self.corpus.tests()[name], self.corpus.fields)
        is_trained_on = any(scored.has(chunk).any() for chunk in chunks(self.data.encoded.texts))
        return ("training",) if is_trained_on else ()

    def _seen_words(self) -> SeenWords | None:
        """The words of the training texts, and of those of the bundle `init_from`; None if they are not known."""
        texts = self.data.encoded.texts
        own = SeenWords.of(texts.text(0, row) for row in range(len(texts)))  # the first field is what the model reads
        if own is None or not self.recipe.init_from:
            return own
        try:
            earlier = load(self.recipe.init_from).seen_words
        except ManyheadsError:  # it was moved while this run trained
            return None
        return None if earlier is None else own.union(earlier)
