"""A bundle: one folder that holds a trained model whole, with text in and text out.

    bundle.json          format, task, model settings, languages, scores with their signatures
    weights.safetensors  as they were trained; or, where bundle.json has int8, their matrices in bytes
    tokenizer.model
    recipe.toml          the resolved recipe it was trained by
    shortlist.safetensors  where bundle.json has shortlist: which pieces may be written for which
    MANIFEST.sha256      of all the others; checked on load

No pickle anywhere. May import tasks and everything below.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_args

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from manyheads.decode import DecodeSettings, EngineName, Shortlist
from manyheads.errors import BundleError, RecipeError
from manyheads.metrics import Score
from manyheads.model import ModelSettings, Transformer
from manyheads.model.device import pick_device
from manyheads.model.rounding import from_bytes, to_bytes
from manyheads.model.weights import load_weights, save_tensors, weights_of
from manyheads.settings import build, did_you_mean, read_toml, to_table, to_toml
from manyheads.storage import check_files, check_seal, sealed_folder
from manyheads.tasks import TASKS, Answering, Prediction, Task, Translation, Translations
from manyheads.text.tokenizer import Tokenizer

FORMAT = 2  # raised when an older manyheads could no longer read what this one writes; 2: weights may be bytes
_FACTS = "bundle.json"
_WEIGHTS = "weights.safetensors"
_TOKENIZER = "tokenizer.model"
_RECIPE = "recipe.toml"
_SHORTLIST = "shortlist.safetensors"
_FILES = (_FACTS, _WEIGHTS, _TOKENIZER, _RECIPE)


@dataclass(frozen=True)
class Bundle:
    """A trained model, ready to use."""

    task: Task
    decode: DecodeSettings
    recipe: Mapping[str, Any]
    scores: Mapping[str, Sequence[Score]] = field(default_factory=dict)  # by test set
    int8: Mapping[str, Any] | None = None  # of a model in eight bits, what that was measured to cost
    shortlist: Shortlist | None = None  # the pieces that may be written for each; without it all may
    shortened: Mapping[str, Any] | None = None  # of a shortlist, what it was measured to cost
    swift: Task | None = None  # the task as the chosen engine answers it; of taps and gates an engine knows nothing

    @property
    def answering(self) -> Task:
        """The task to ask when only the answers matter: by the fastest engine that gives the same."""
        return self.swift if self.swift is not None and self.swift.model is self.task.model else self.task

    @property
    def kind(self) -> str:
        """Which task it is for, as a recipe names it."""
        return str(self.task.settings.kind)

    def predict(self, texts: Iterable[str], **changes: Any) -> list[Any]:
        """The answer to each text: a translation, a label, spans, a continuation.

        `changes` override decoding settings, as in `beam=5` or `method="greedy"`.
        """
        if isinstance(texts, str):
            raise TypeError('predict takes a list of texts: predict(["…"]).')
        return [prediction.answer for prediction in self.predictions(texts, **changes)]

    def candidates(self, texts: Iterable[str], **changes: Any) -> list[Sequence[Translation]]:
        """The n best translations of each text, best first, with their log-probabilities."""
        found = self.predictions(texts, **changes)
        return [prediction.candidates for prediction in found if isinstance(prediction, Translations)]

    def predictions(self, texts: Iterable[str], *, first: int = 0, **changes: Any) -> Sequence[Prediction]:
        """The answer to each text with all that is known of it: probabilities, candidates, places.

        Samples are drawn by a text's number; `first` is that of the first, where these are a part of many.
        """
        texts = list(texts)
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                raise TypeError(f"texts[{number}] is of type {type(text).__name__}, not str.")
        table = to_table(self.decode) | changes
        return self.answering.predict(texts, build(DecodeSettings, table, "decode."), first)

    def save(self, path: Path | str) -> None:
        """Write the folder, whole or not at all."""
        facts: dict[str, Any] = {
            "format": 1 if self.int8 is None else 2,
            "task": self.kind,
            "model": to_table(self.task.model.settings),
            "settings": to_table(self.task.settings),
            "facts": self.task.facts(),
            "decode": to_table(self.decode),
            "scores": {name: [asdict(score) for score in scores] for name, scores in self.scores.items()},
        }
        weights = weights_of(self.task.module)
        if self.int8 is not None:
            facts["int8"], weights = self.int8, to_bytes(weights)
        if self.shortlist is not None:
            facts["shortlist"] = self.shortened or {}
        with sealed_folder(Path(path)) as folder:
            (folder / _FACTS).write_text(json.dumps(facts, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
            save_tensors(weights, folder / _WEIGHTS)
            if self.shortlist is not None:
                arrays = {name: torch.from_numpy(array) for name, array in self.shortlist.arrays.items()}
                save_tensors(arrays, folder / _SHORTLIST)
            (folder / _TOKENIZER).write_bytes(self.task.tokenizer.to_bytes())
            (folder / _RECIPE).write_text(to_toml(self.recipe), encoding="utf-8")


def load(
    path: Path | str,
    device: str = "cpu",
    engine: EngineName = "auto",
    tell: Callable[[str], None] = lambda line: None,
    *,
    use_shortlist: bool = True,
) -> Bundle:
    """Read a bundle, after checking that every byte of it is what was written.

    What it is asked is answered by the `engine` of this name, or the fastest that can; `tell` hears which. A bundle
    with a shortlist answers by it, where the engine can, unless told not to.
    """
    if engine not in get_args(EngineName):
        raise BundleError(f'engine = "{engine}" is not an engine. {did_you_mean(engine, get_args(EngineName))}')
    folder = Path(path)
    sealed = check_seal(folder, BundleError)
    facts = _read_facts(folder, sealed)
    check_files(folder, sealed, _FILES, BundleError)
    tokenizer = Tokenizer.from_file(folder / _TOKENIZER)
    try:
        model = Transformer(build(ModelSettings, facts["model"], "model."))
        kind = TASKS[facts["task"]]
        settings: Any = build(kind.settings_type, facts["settings"], "task.")
        task = kind.restore(model, tokenizer, settings, facts.get("facts", {}))
        decode = build(DecodeSettings, facts["decode"], "decode.")
        scores = {name: [Score(**score) for score in scores] for name, scores in facts["scores"].items()}
    except (RecipeError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise BundleError(f"{folder}/{_FACTS} is not as this manyheads writes it: {error}") from None
    try:
        load_weights(task.module, from_bytes(load_file(folder / _WEIGHTS)), f"{folder}/{_WEIGHTS}")
    except SafetensorError as error:
        raise BundleError(f"{folder}/{_WEIGHTS} is not a safetensors file: {error}.") from None
    except KeyError as error:
        raise BundleError(f"{folder}/{_WEIGHTS} has bytes without their scales: {error}.") from None
    if tokenizer.vocabulary != model.settings.vocabulary:
        raise BundleError(
            f"{folder}: the tokenizer has {tokenizer.vocabulary:,} pieces, the model {model.settings.vocabulary:,}. "
            "They are not of one training."
        )
    task.module.to(pick_device(device)).eval()
    int8, shortened = facts.get("int8"), facts.get("shortlist")
    shortlist = None if shortened is None else _read_shortlist(folder, sealed, tokenizer.vocabulary)
    swift = None
    if isinstance(task, Answering):
        used = shortlist if use_shortlist else None
        swift = task.answering(engine, folder, tell, is_int8=int8 is not None, shortlist=used)
    return Bundle(
        task=task,
        decode=decode,
        recipe=read_toml(folder / _RECIPE),
        scores=scores,
        int8=int8,
        shortlist=shortlist,
        shortened=shortened,
        swift=swift,
    )


def _read_shortlist(folder: Path, sealed: set[str], vocabulary: int) -> Shortlist:
    check_files(folder, sealed, (_SHORTLIST,), BundleError)
    try:
        found = Shortlist.from_arrays({name: one.numpy() for name, one in load_file(folder / _SHORTLIST).items()})
        found.refuse_other(vocabulary)
    except (SafetensorError, BundleError) as error:
        raise BundleError(f"{folder}/{_SHORTLIST}: {error}") from None
    return found


def model_settings(path: Path | str) -> dict[str, Any]:
    """The model settings of a bundle, as a table."""
    folder = Path(path)
    facts = _read_facts(folder, check_seal(folder, BundleError))
    model = facts.get("model")
    if not isinstance(model, dict):
        raise BundleError(f"{folder}/{_FACTS} is not as this manyheads writes it: it has no model.")
    return dict(model)


def _read_facts(folder: Path, sealed: set[str]) -> dict[str, Any]:
    """What bundle.json says, if it is of a format and a task that we know: only then can the rest be judged."""
    check_files(folder, sealed, (_FACTS,), BundleError)
    try:
        facts = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
    except ValueError as error:
        raise BundleError(f"{folder}/{_FACTS} is not JSON: {error}.") from None
    given = facts.get("format") if isinstance(facts, dict) else None
    if not isinstance(given, int) or given < 1:
        raise BundleError(f"{folder}/{_FACTS} names no bundle format that we know: {given!r}.")
    if given > FORMAT:
        raise BundleError(
            f"{folder}: made by a newer manyheads (bundle format {given}; this one reads up to {FORMAT}). "
            "Upgrade: pip install -U manyheads"
        )
    if facts.get("task") not in TASKS:
        raise BundleError(
            f"{folder}: its task {facts.get('task')!r} is not known to this manyheads. Known: {', '.join(TASKS)}."
        )
    return dict(facts)
