"""`run`: a recipe carried out, from text to a scored bundle, as a stream of events.

    run folder/   recipe.toml   tokenizer.model   data.json   checkpoints/   snapshots/   best/   log.jsonl
                  report.html   lock   bundle/        and beside it the cache, which runs share

Running the same recipe into the same folder goes on where it stopped.
"""

import errno
import hashlib
import json
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch

from manyheads.bundle import Bundle, load
from manyheads.data.cleaning import KEPT
from manyheads.errors import CheckpointError, DataError, RecipeError, TrainingError
from manyheads.model import Transformer, evaluating
from manyheads.model.device import pick_device
from manyheads.model.weights import load_weights
from manyheads.run.corpus import Corpus
from manyheads.run.events import (
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
)
from manyheads.run.preparation import delete_prepared_data, prepare
from manyheads.run.recipe import Recipe
from manyheads.run.warm_start import freeze, warm_start
from manyheads.settings import read_toml, to_table, to_toml
from manyheads.storage import MANIFEST, atomic_write, locked, remove_partial
from manyheads.tasks import SupportsEngines, Task, TrainingData
from manyheads.train import Checkpoints, Trainer

_RECIPE = "recipe.toml"
_LOG = "log.jsonl"
# What a run under way may change: how long it goes on, where, and how it is looked at; not what it learns on the way.
_EDITABLE = ("train.steps", "train.keep_all_snapshots", "decode", "device")
_N_VALIDATED = 200  # valid sentences translated at each validation
_N_TRACKED = 4  # of them, those whose translation is kept each time
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # no space, none for this user, none in this file


def run(recipe: Recipe, folder: Path, should_stop: Callable[[], bool] = lambda: False) -> Iterator[Event]:
    """Carry the recipe out in a folder; the log of events is kept there too."""
    try:
        _claim_folder(folder)
        with locked(folder):
            edits = check_same_recipe(recipe, folder)
            _check_checkpoints_exist(folder)
            _sweep(folder)
            if not _is_started(folder):
                _delete_stale_data(recipe, folder)
            atomic_write(folder / _RECIPE, to_toml(to_table(recipe)).encode())
            with (folder / _LOG).open("a", encoding="utf-8") as log:
                for event in chain([RecipeChanged(edits)] if edits else [], _Run(recipe, folder, should_stop).events()):
                    record = {"event": type(event).__name__, "time": time.time()} | asdict(event)
                    log.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")
                    log.flush()
                    yield event
    except OSError as error:
        if error.errno not in _DISK_FULL:
            raise
        raise TrainingError(
            f"{folder}: the disk is full. What was saved before is whole: free some space, then run the same command "
            "again to go on."
        ) from None


def _check_checkpoints_exist(folder: Path) -> None:
    """Refuse to begin again, over what is left of a run, because its checkpoints were removed."""
    if Checkpoints(folder, 1).newest is not None:
        return
    steps = [entry["step"] for entry in _log_entries(folder, ("Saved", "Interrupted"))]
    if steps:
        raise CheckpointError(
            f"{folder}: its checkpoints are gone, though its log tells of one at step {steps[-1]}. Put "
            f"{folder / 'checkpoints'} back, or train into another folder with -o."
        )


def _sweep(folder: Path) -> None:
    """Remove what a run that was killed left half-written: only we are here now, the folder is locked."""
    Checkpoints(folder, 1).sweep()
    remove_partial(folder, "bundle")
    with (folder / _LOG).open("r+b") as log:
        whole = 0
        for line in log:
            whole += len(line) if line.endswith(b"\n") else 0
        log.truncate(whole)


def _claim_folder(folder: Path) -> None:
    """Make the folder one of a run; one that holds anything else already is refused, lest it be overwritten."""
    if folder.exists() and not folder.is_dir():
        raise RecipeError(f"{folder} is a file; a run needs a folder. Choose another with -o.")
    folder.mkdir(parents=True, exist_ok=True)
    is_ours = (folder / _LOG).exists() or any(folder.glob(f"checkpoints/step-*/{MANIFEST}"))
    if any(folder.iterdir()) and not is_ours:
        raise RecipeError(f"{folder} holds other files and is not the folder of a run. Choose another with -o.")
    (folder / _LOG).touch()


def delete_run(folder: Path) -> None:
    """Remove what a run wrote, and nothing else that the folder holds; it stays the folder of a run.

    The cached text stays too, since other runs may use it: to clear it, delete the folder `.manyheads-cache` beside the
    run's, or the one that MANYHEADS_CACHE names.
    """
    if not folder.exists():
        return
    _claim_folder(folder)
    with locked(folder):
        (folder / _LOG).write_text("", encoding="utf-8")
        delete_prepared_data(folder)
        steps = (*folder.glob("snapshots/step-*"), *folder.glob("checkpoints/step-*"))
        for path in (folder / "bundle", folder / "best", *steps):
            if (path / MANIFEST).exists():
                shutil.rmtree(path)
        for name in ("snapshots", "checkpoints"):
            if (folder / name).is_dir() and not any((folder / name).iterdir()):
                (folder / name).rmdir()
        for name in (_RECIPE, "report.html"):
            (folder / name).unlink(missing_ok=True)


def _delete_stale_data(recipe: Recipe, folder: Path) -> None:
    """Before the first checkpoint a recipe may still be mended: what was made by the old one goes."""
    path = folder / _RECIPE
    if not path.exists() or _differences(read_toml(path), to_table(recipe)):
        delete_prepared_data(folder)


def _is_started(folder: Path) -> bool:
    return (folder / "bundle").exists() or Checkpoints(folder, 1).newest is not None


def check_same_recipe(recipe: Recipe, folder: Path) -> list[str]:
    """Refuse a folder that holds a run of another recipe; what was edited without touching what is learnt."""
    path = folder / _RECIPE
    if not path.exists() or not _is_started(folder):
        return []
    # Where the files are may change: what is in them is checked by its digest.
    differences = _differences(_without_files(read_toml(path)), _without_files(to_table(recipe)))
    told = {name: f"{name} was {old}, now {new}" for name, (old, new) in differences.items()}
    if "train.steps" in told and recipe.train.schedule == "cosine":
        told["train.steps"] += " (from here on the learning rate falls to 0 at the new end)"
    bound = [text for name, text in told.items() if not name.startswith(_EDITABLE)]
    if bound:
        raise RecipeError(
            f"{folder} holds a run of another recipe ({'; '.join(bound)}). Choose another folder with -o. "
            f"In a run under way only {', '.join(_EDITABLE)} may change."
        )
    newest = Checkpoints(folder, 1).newest or 0
    if newest > recipe.train.steps:
        raise RecipeError(
            f"train.steps = {recipe.train.steps}, but {folder} is at step {newest} already. "
            "Choose another folder with -o."
        )
    return list(told.values())


def _without_files(table: Mapping[str, Any]) -> dict[str, Any]:
    data = {key: value for key, value in table.get("data", {}).items() if key not in ("train", "valid", "test")}
    data["mix"] = [{**entry, "files": len(entry["files"])} for entry in data.get("mix", ())]
    return {**table, "data": data}


def _differences(
    old: Mapping[str, object], new: Mapping[str, object], section: str = ""
) -> dict[str, tuple[object, object]]:
    found: dict[str, tuple[object, object]] = {}
    for key in sorted({*old, *new}):
        before, after = old.get(key), new.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            found |= _differences(before, after, f"{section}{key}.")
        elif before != after:
            found[f"{section}{key}"] = (before, after)
    return found


class _Run:
    """The state of one run: each method is a stage."""

    def __init__(self, recipe: Recipe, folder: Path, should_stop: Callable[[], bool]) -> None:
        self.recipe = recipe
        self.folder = folder
        self.should_stop = should_stop
        self.corpus = Corpus(recipe.data, recipe.seed, recipe.clean, recipe.task)

    def events(self) -> Iterator[Event]:
        yield from self._prepare()
        settings = self.recipe.train
        checkpoints = Checkpoints(
            self.folder, settings.average_snapshots, self._identity, keeps_all=settings.keep_all_snapshots
        )
        trainer = self._trainer()
        warnings = checkpoints.restore(trainer)
        if trainer.step or warnings:
            yield Resumed(trainer.step, warnings)
        yield from self._train(trainer, checkpoints)
        if self._is_out_of_patience(trainer):
            yield StoppedEarly(trainer.step, int(trainer.notes["best_step"]))
        elif trainer.step < self.recipe.train.steps:
            yield Interrupted(trainer.step)
            return
        elif not checkpoints.has_snapshot(trainer.step):  # it had been stopped at just this step
            yield from self._validate_and_save(trainer, checkpoints)
        yield from self._finish(checkpoints)

    def _prepare(self) -> Iterator[Event]:
        started = time.perf_counter()
        self.data = yield from prepare(self.recipe, self.folder, is_started=_is_started(self.folder))
        self.tokenizer = self.data.tokenizer
        model = replace(self.recipe.model, vocab_size=self.tokenizer.vocab_size)
        self.recipe = replace(self.recipe, model=model)
        torch.manual_seed(self.recipe.seed)
        self.task: Task = self.recipe.task_class.create(
            Transformer(model), self.tokenizer, self.recipe.task, self.data.encoded.texts
        )
        copied = "" if _is_started(self.folder) else self._warm_start()
        freeze(self.task.module, self.recipe.freeze)
        self.task.module.to(pick_device(self.recipe.device))
        self.valid = list(self.corpus.valid())  # to its end: what is wrong with it should be known now
        for rows in self.corpus.tests().values() if self.recipe.data.test else ():
            deque(rows, maxlen=0)  # likewise
        self.valid_sample = list(islice(self.task.usable(self.valid), _N_VALIDATED))
        if not self.valid_sample:
            raise DataError("There is nothing to validate on. Give data.valid, or more training text.")
        yield Prepared(
            noun=self.task.noun,
            n_rows=len(self.data.encoded),
            loss_unit=self.task.loss_unit,
            dropped={reason: count for reason, count in self.data.counts.items() if reason != KEPT},
            vocab_size=self.tokenizer.vocab_size,
            n_parameters=sum(parameter.numel() for parameter in self.task.module.parameters()),
            device=str(self.task.model.device),
            seconds=time.perf_counter() - started,
            warnings=self.data.warnings,
            warm_start=copied,
        )

    def _warm_start(self) -> str:
        """Take over the weights of another bundle; what is told of it."""
        if not self.recipe.init_from:
            return ""
        n_copied, n_all = warm_start(self.task.model, load(self.recipe.init_from).task.model, self.recipe.init_from)
        return f"{n_copied} of {n_all} weights from {self.recipe.init_from}"

    @property
    def _identity(self) -> str:
        """What tells this run's checkpoints from another's."""
        return f"{hashlib.sha256(self.tokenizer.to_bytes()).hexdigest()} {self.recipe.seed}"

    def _trainer(self) -> Trainer[Any]:
        training_data = TrainingData(
            encoded=self.data.encoded,
            batch_tokens=self.recipe.train.batch_tokens,
            sampling=self.recipe.tokenizer.sampling,
            seed=self.recipe.seed,
            boundaries=self.data.boundaries,
            weights=self.corpus.weights,
        )
        return Trainer(
            self.task.module,
            self.task.training_task(training_data),
            self.recipe.train,
            width=self.recipe.model.width,
            seed=self.recipe.seed,
        )

    def _train(self, trainer: Trainer[Any], checkpoints: Checkpoints) -> Iterator[Event]:
        if self._is_out_of_patience(trainer):
            return
        for step in trainer.run():
            yield step
            yield from self._validate_and_save(trainer, checkpoints)
            if self._is_out_of_patience(trainer):
                break
            if self.should_stop() and trainer.step < self.recipe.train.steps:
                if checkpoints.newest != trainer.step:
                    checkpoints.save(trainer, snapshot=False)
                break

    def _validate_and_save(self, trainer: Trainer[Any], checkpoints: Checkpoints) -> Iterator[Event]:
        """Validate and save after a step, if it is time for it."""
        settings = self.recipe.train
        is_last = trainer.step == settings.steps
        # Validated before it is saved, so that a run killed between the two validates again.
        if is_last or trainer.step % settings.validate_every == 0:
            with trainer.using_eval_weights(), evaluating(self.task.module):
                validated = self._validate(trainer.step, trainer.notes)
            if settings.patience and trainer.notes["best_step"] == trainer.step:
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
        shown = result.samples[step // settings.validate_every % len(result.samples)]
        tracked = result.samples[:: max(1, len(result.samples) // _N_TRACKED)][:_N_TRACKED]
        return Validated(step, result.metric, result.score, notes["best"], shown, tracked)

    def _is_out_of_patience(self, trainer: Trainer[Any]) -> bool:
        return 0 < self.recipe.train.patience <= trainer.notes.get("misses", 0)

    def _finish(self, checkpoints: Checkpoints) -> Iterator[Event]:
        weights = checkpoints.best() if self.recipe.train.patience else checkpoints.averaged()
        load_weights(self.task.module, weights, "what was saved of the run")
        self.task.module.eval()
        task = self.task.calibrate(self.valid)
        engine_task = task.with_engine("auto") if isinstance(task, SupportsEngines) else task
        cards = {}
        for name, rows in self.corpus.tests().items():
            yield Stage(f"scoring the {name} set")
            cards[name] = engine_task.score(rows, self.recipe.decode)
        scores = {name: card.scores for name, card in cards.items()}
        Bundle(task, self.recipe.decode, to_table(self.recipe), scores).save(self.folder / "bundle")
        yield Finished(bundle=self.folder / "bundle", cards=cards)


def _log_entries(folder: Path, kinds: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """What the log tells of such events; lines that a full disk or a power cut left in tokens are passed over."""
    with (folder / _LOG).open(encoding="utf-8", errors="replace") as log:
        for line in log:
            if not any(f'"{kind}"' in line for kind in kinds):
                continue
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict) and entry.get("event") in kinds:
                yield entry
