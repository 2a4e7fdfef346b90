"""`run`: a recipe carried out, from text to a scored bundle, as a stream of events.

    run folder/   recipe.toml   tokenizer.model   data/   checkpoints/   snapshots/   log.jsonl   bundle/

Running the same recipe into the same folder goes on where it stopped.
"""

import errno
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from manyheads.bundle import Bundle
from manyheads.data import Pairs
from manyheads.decode import DecodeSettings
from manyheads.errors import CheckpointError, DataError, RecipeError, TrainingError
from manyheads.metrics import Score, quick_bleu
from manyheads.model import Transformer
from manyheads.model.device import pick_device
from manyheads.model.weights import load_weights
from manyheads.recipe.corpus import Corpus
from manyheads.recipe.scoring import score, translate
from manyheads.recipe.settings import Recipe
from manyheads.settings import read_toml, to_table, to_toml
from manyheads.storage import LOCK, MANIFEST, check_files, check_seal, locked, sealed_folder, sweep, write_whole
from manyheads.tasks import Seq2Seq, Seq2SeqLesson, TensorBatch
from manyheads.text.tokenizer import Tokenizer
from manyheads.train import Checkpoints, Step, Trainer

_RECIPE = "recipe.toml"
_LOG = "log.jsonl"
_TOKENIZER = "tokenizer.model"
_TEXT = Path("data") / "train"
_FACTS = "facts.json"  # of tokenised text: what was kept, what was dropped, from which bytes it was made
_WATCHED = 200  # valid sentences translated at each validation
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # no space, none for this user, none in this file


@dataclass(frozen=True)
class Stage:
    """Something that takes a while begins."""

    what: str


@dataclass(frozen=True)
class Prepared:
    """The text is tokenised and the model is built."""

    n_pairs: int
    left_out: Mapping[str, int]  # why other pairs are not trained on, and how many
    vocabulary: int
    n_parameters: int
    device: str
    seconds: float


@dataclass(frozen=True)
class Resumed:
    """Training goes on from a checkpoint; `complaints` says what was wrong with newer ones."""

    step: int
    complaints: Sequence[str]


@dataclass(frozen=True)
class Validated:
    """A sample of the valid set was translated greedily."""

    step: int
    bleu: float
    best: float
    sample: tuple[str, str, str]  # source, translation, reference


@dataclass(frozen=True)
class Saved:
    """A checkpoint was written."""

    step: int


@dataclass(frozen=True)
class Interrupted:
    """Training was asked to stop; everything up to this step is saved."""

    step: int


@dataclass(frozen=True)
class Finished:
    """The bundle is written and scored."""

    bundle: Path
    scores: Mapping[str, Sequence[Score]]
    samples: Sequence[tuple[str, str, str]]
    n_cut_off: int
    n_too_long: int


Event = Stage | Prepared | Resumed | Step | Validated | Saved | Interrupted | Finished


def run(recipe: Recipe, folder: Path, should_stop: Callable[[], bool] = lambda: False) -> Iterator[Event]:
    """Carry the recipe out in a folder; the log of events is kept there too."""
    try:
        _claim(folder)
        with locked(folder):
            refuse_other(recipe, folder)
            _refuse_without_checkpoints(folder)
            _sweep(folder)
            if not _is_begun(folder):
                _discard_stale_text(recipe, folder)
            write_whole(folder / _RECIPE, to_toml(to_table(recipe)).encode())
            with (folder / _LOG).open("a", encoding="utf-8") as log:
                for event in _Run(recipe, folder, should_stop).events():
                    facts = {"event": type(event).__name__, "time": time.time()} | asdict(event)
                    log.write(json.dumps(facts, ensure_ascii=False, default=str) + "\n")
                    log.flush()
                    yield event
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise TrainingError(
            f"{folder}: the disk is full. What was saved before is whole: free some space, then run the same command "
            "again to go on."
        ) from None


def _refuse_without_checkpoints(folder: Path) -> None:
    """Refuse to begin again, over what is left of a run, because its checkpoints were removed."""
    steps = [entry["step"] for entry in _log_entries(folder) if entry.get("event") in ("Saved", "Interrupted")]
    if steps and not any(folder.glob("checkpoints/step-*")):
        raise CheckpointError(
            f"{folder}: its checkpoints are gone, though its log tells of one at step {steps[-1]}. Put "
            f"{folder / 'checkpoints'} back, or train into another folder with -o."
        )


def _sweep(folder: Path) -> None:
    """Remove what a run that was killed left half-written: only we are here now, the folder is locked."""
    Checkpoints(folder, 1).sweep()
    sweep(folder, "bundle")
    sweep((folder / _TEXT).parent, _TEXT.name)
    content = (folder / _LOG).read_bytes()
    with (folder / _LOG).open("r+b") as log:
        log.truncate(content.rfind(b"\n") + 1)


def _claim(folder: Path) -> None:
    """Make the folder one of a run; one that holds anything else already is refused, lest it be overwritten."""
    if folder.exists() and not folder.is_dir():
        raise RecipeError(f"{folder} is a file; a run needs a folder. Choose another with -o.")
    folder.mkdir(parents=True, exist_ok=True)
    is_ours = (folder / _LOG).exists() or any(folder.glob(f"checkpoints/step-*/{MANIFEST}"))
    if any(folder.iterdir()) and not is_ours:
        raise RecipeError(f"{folder} holds other files and is not the folder of a run. Choose another with -o.")
    (folder / _LOG).touch()


def discard(folder: Path) -> None:
    """Remove what a run wrote, and nothing else that the folder holds; it stays the folder of a run."""
    if not folder.exists():
        return
    _claim(folder)
    (folder / _LOG).write_text("", encoding="utf-8")
    _discard_text(folder)
    sealed = [folder / "bundle", *folder.glob("snapshots/step-*"), *folder.glob("checkpoints/step-*")]
    for path in sealed:
        if (path / MANIFEST).exists():
            shutil.rmtree(path)
    for name in ("snapshots", "checkpoints", "data"):
        if (folder / name).is_dir() and not any((folder / name).iterdir()):
            (folder / name).rmdir()
    for name in (_RECIPE, LOCK):
        (folder / name).unlink(missing_ok=True)


def _discard_text(folder: Path) -> None:
    (folder / _TOKENIZER).unlink(missing_ok=True)
    if (folder / _TEXT / MANIFEST).exists():
        shutil.rmtree(folder / _TEXT)


def _discard_stale_text(recipe: Recipe, folder: Path) -> None:
    """Before the first checkpoint a recipe and its files may still be mended: what was made of the old ones goes."""
    path = folder / _RECIPE
    is_same = path.exists() and not _differences(read_toml(path), to_table(recipe))
    if not is_same or _changed_files(Corpus(recipe.data, recipe.seed), folder):
        _discard_text(folder)


def _is_begun(folder: Path) -> bool:
    return (folder / "bundle").exists() or any(folder.glob("checkpoints/step-*"))


def _changed_files(corpus: Corpus, folder: Path) -> list[str]:
    """The files that are no longer what the run's text was made of; none where it was not made yet."""
    facts = folder / _TEXT / _FACTS
    if not facts.exists():
        return []
    known = json.loads(facts.read_text(encoding="utf-8"))["files"]
    return [file for file, digest in corpus.digests().items() if known.get(file) != digest]


def refuse_other(recipe: Recipe, folder: Path) -> None:
    """Refuse a folder that holds a run of another recipe; only how long to train may differ."""
    path = folder / _RECIPE
    if not path.exists() or not _is_begun(folder):
        return
    differences = _differences(read_toml(path), to_table(recipe))
    differences.pop("train.steps", None)
    if differences:
        told = "; ".join(f"{name} was {old}, now {new}" for name, (old, new) in differences.items())
        raise RecipeError(f"{folder} holds a run of another recipe ({told}). Choose another folder with -o.")


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
        self.corpus = Corpus(recipe.data, recipe.seed)
        self.best = 0.0

    def events(self) -> Iterator[Event]:
        yield from self._prepare()
        checkpoints = Checkpoints(self.folder, self.recipe.train.average, self._identity)
        trainer = self._trainer()
        complaints = checkpoints.restore(trainer)
        if trainer.step > self.recipe.train.steps:
            raise RecipeError(
                f"train.steps = {self.recipe.train.steps}, but {self.folder} is at step {trainer.step} already. "
                "Choose another folder with -o."
            )
        if trainer.step or complaints:
            self.best = _best_so_far(self.folder, trainer.step)
            yield Resumed(trainer.step, complaints)
        yield from self._train(trainer, checkpoints)
        if trainer.step < self.recipe.train.steps:
            yield Interrupted(trainer.step)
        else:
            if not checkpoints.has_snapshot:  # it had been stopped at just this step
                checkpoints.save(trainer, snapshot=True)
            yield from self._finish(checkpoints)

    def _prepare(self) -> Iterator[Event]:
        started = time.perf_counter()
        if not self._tokenizer_path.exists():
            yield Stage(f"learning {self.recipe.tokenizer.vocabulary:,} pieces from the text")
            self._learn_tokenizer()
        self.tokenizer = Tokenizer.from_file(self._tokenizer_path)
        model = replace(self.recipe.model, vocabulary=self.tokenizer.vocabulary)
        self.recipe = replace(self.recipe, model=model)
        data = self.folder / _TEXT
        if not data.exists():
            yield Stage("cutting the text into pieces")
            with sealed_folder(data) as aside:
                counts = Pairs.write(aside, self.corpus.train(), self.tokenizer, model.max_length)
                facts = {"counts": counts, "files": self.corpus.digests()}
                (aside / _FACTS).write_text(json.dumps(facts), encoding="utf-8")
        check_files(data, check_seal(data, DataError), (_FACTS,), DataError)
        counts = json.loads((data / _FACTS).read_text(encoding="utf-8"))["counts"]
        changed = _changed_files(self.corpus, self.folder)
        if changed:
            raise DataError(f"{', '.join(changed)} changed since this run began. Train into another folder with -o.")
        self.pairs = Pairs.open(data)
        if not len(self.pairs):
            raise DataError(f"There is no pair to train on: {_counted(counts)}.")
        torch.manual_seed(self.recipe.seed)
        self.model = Transformer(model).to(pick_device(self.recipe.device))
        self.task = Seq2Seq(self.model, self.tokenizer, self.recipe.task)
        valid = list(self.corpus.valid())
        if not self.recipe.data.builtin and not self.recipe.data.valid:
            counts["held out to validate"] = len(valid)
        usable = (pair for pair in valid if all(pair) and self.task.fits(pair[0]))
        self.watched = list(islice(usable, _WATCHED))
        if not self.watched:
            raise DataError("There is no pair to validate on. Give data.valid, or more training text.")
        yield Prepared(
            n_pairs=counts.pop("kept"),
            left_out=counts,
            vocabulary=self.tokenizer.vocabulary,
            n_parameters=self.model.n_parameters,
            device=str(self.model.output.weight.device),
            seconds=time.perf_counter() - started,
        )

    @property
    def _tokenizer_path(self) -> Path:
        return self.folder / _TOKENIZER

    def _learn_tokenizer(self) -> None:
        lines = (line for pair in self.corpus.train() for line in pair)
        tokenizer = Tokenizer.learn(lines, self.recipe.tokenizer, self.recipe.seed)
        write_whole(self._tokenizer_path, tokenizer.to_bytes())

    @property
    def _identity(self) -> str:
        return f"{hashlib.sha256(self.tokenizer.to_bytes()).hexdigest()} {self.recipe.seed}"

    def _trainer(self) -> Trainer[TensorBatch]:
        lesson = Seq2SeqLesson(
            model=self.model,
            pairs=self.pairs,
            tokenizer=self.tokenizer,
            settings=self.recipe.task,
            batch_tokens=self.recipe.train.batch_tokens,
            sampling=self.recipe.tokenizer.sampling,
            seed=self.recipe.seed,
        )
        return Trainer(self.model, lesson, self.recipe.train, width=self.model.settings.width, seed=self.recipe.seed)

    def _train(self, trainer: Trainer[TensorBatch], checkpoints: Checkpoints) -> Iterator[Event]:
        settings = self.recipe.train
        for step in trainer.run():
            yield step
            is_last = step.step == settings.steps
            # Before the save, or a run that dies between the two would never have this validation.
            if is_last or step.step % settings.validate_every == 0:
                with trainer.at_its_best():
                    validated = self._validate(step.step)
                yield validated
            if is_last or step.step % settings.save_every == 0:
                checkpoints.save(trainer, snapshot=True)
                yield Saved(step.step)
            if self.should_stop() and not is_last:
                checkpoints.save(trainer, snapshot=False)
                break

    def _validate(self, step: int) -> Validated:
        sources, references = ([pair[side] for pair in self.watched] for side in (0, 1))
        found = translate(self.task, sources, DecodeSettings(method="greedy"))
        value = quick_bleu(found, references, self.recipe.task.target_language)
        self.best = max(self.best, value)
        index = step // self.recipe.train.validate_every % len(sources)
        return Validated(step, value, self.best, (sources[index], found[index], references[index]))

    def _finish(self, checkpoints: Checkpoints) -> Iterator[Event]:
        load_weights(self.model, checkpoints.averaged(), "the average of the snapshots")
        cards = {}
        for name, pairs in self.corpus.tests().items():
            yield Stage(f"translating the {name} set")
            cards[name] = score(self.task, pairs, self.recipe.decode)
        scores = {name: card.scores for name, card in cards.items()}
        Bundle(self.task, self.recipe.decode, to_table(self.recipe), scores).save(self.folder / "bundle")
        yield Finished(
            bundle=self.folder / "bundle",
            scores=scores,
            samples=[sample for card in cards.values() for sample in card.samples[:5]],
            n_cut_off=sum(card.n_cut_off for card in cards.values()),
            n_too_long=sum(card.n_too_long for card in cards.values()),
        )


def _best_so_far(folder: Path, step: int) -> float:
    """The best score of the validations up to a step, of which the log tells."""
    validated = (entry for entry in _log_entries(folder) if entry.get("event") == "Validated")
    return max((entry["bleu"] for entry in validated if entry["step"] <= step), default=0.0)


def _log_entries(folder: Path) -> Iterator[dict[str, Any]]:
    """What the log tells; lines that a full disk or a power cut left in pieces are passed over."""
    for line in (folder / _LOG).read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            yield entry


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in counts.items())
