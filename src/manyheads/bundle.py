"""A bundle: one folder that holds a trained model whole, with text in and text out.

    bundle.json          format, task, model settings, languages, scores with their signatures
    weights.safetensors  as they were trained; or, where bundle.json has int8, their matrices in bytes
    tokenizer.model
    recipe.toml          the resolved recipe it was trained by
    shortlist.safetensors  where bundle.json has shortlist: which tokens may be written for which
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
from manyheads.model.weights import dequantize_weights, load_weights, quantize_weights, save_tensors, weights_of
from manyheads.settings import build, did_you_mean, read_toml, to_table, to_toml
from manyheads.storage import atomic_folder, require_files, verify_manifest
from manyheads.tasks import TASKS, Prediction, SupportsEngines, Task, Translation, Translations
from manyheads.text.tokenizer import Tokenizer

FORMAT = 2  # raised when an older manyheads could no longer read what this one writes; 2: weights may be bytes
_CONFIG = "bundle.json"
_WEIGHTS = "weights.safetensors"
_TOKENIZER = "tokenizer.model"
_RECIPE = "recipe.toml"
_SHORTLIST = "shortlist.safetensors"
_FILES = (_CONFIG, _WEIGHTS, _TOKENIZER, _RECIPE)


@dataclass(frozen=True)
class Bundle:
    """A trained model, ready to use."""

    task: Task
    decode: DecodeSettings
    recipe: Mapping[str, Any]
    scores: Mapping[str, Sequence[Score]] = field(default_factory=dict)  # by test set
    int8: Mapping[str, Any] | None = None  # of a model in eight bits, what that was measured to cost
    shortlist: Shortlist | None = None  # the tokens that may be written for each; without it all may
    shortlist_cost: Mapping[str, Any] | None = None  # of a shortlist, what it was measured to cost
    engine_task: Task | None = (
        None  # the task as the chosen engine answers it; of taps and gates an engine knows nothing
    )

    @property
    def inference_task(self) -> Task:
        """The task to ask when only the answers matter: by the fastest engine that gives the same."""
        return (
            self.engine_task
            if self.engine_task is not None and self.engine_task.model is self.task.model
            else self.task
        )

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
        return self.inference_task.predict(texts, build(DecodeSettings, table, "decode."), first)

    def save(self, path: Path | str) -> None:
        """Write the folder, whole or not at all."""
        config: dict[str, Any] = {
            "format": 1 if self.int8 is None else 2,
            "task": self.kind,
            "model": to_table(self.task.model.settings),
            "settings": to_table(self.task.settings),
            "metadata": self.task.metadata(),
            "decode": to_table(self.decode),
            "scores": {name: [asdict(score) for score in scores] for name, scores in self.scores.items()},
        }
        weights = weights_of(self.task.module)
        if self.int8 is not None:
            config["int8"], weights = self.int8, quantize_weights(weights)
        if self.shortlist is not None:
            config["shortlist"] = self.shortlist_cost or {}
        with atomic_folder(Path(path)) as folder:
            (folder / _CONFIG).write_text(json.dumps(config, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
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
    sealed = verify_manifest(folder, BundleError)
    config = _read_config(folder, sealed)
    require_files(folder, sealed, _FILES, BundleError)
    tokenizer = Tokenizer.from_file(folder / _TOKENIZER)
    try:
        model = Transformer(build(ModelSettings, config["model"], "model."))
        kind = TASKS[config["task"]]
        settings: Any = build(kind.settings_type, config["settings"], "task.")
        task = kind.restore(model, tokenizer, settings, config.get("metadata", {}))
        decode = build(DecodeSettings, config["decode"], "decode.")
        scores = {name: [Score(**score) for score in scores] for name, scores in config["scores"].items()}
    except (RecipeError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise BundleError(f"{folder}/{_CONFIG} is not as this manyheads writes it: {error}") from None
    try:
        load_weights(task.module, dequantize_weights(load_file(folder / _WEIGHTS)), f"{folder}/{_WEIGHTS}")
    except SafetensorError as error:
        raise BundleError(f"{folder}/{_WEIGHTS} is not a safetensors file: {error}.") from None
    except KeyError as error:
        raise BundleError(f"{folder}/{_WEIGHTS} has bytes without their scales: {error}.") from None
    if tokenizer.vocab_size != model.settings.vocab_size:
        raise BundleError(
            f"{folder}: the tokenizer has {tokenizer.vocab_size:,} tokens, the model {model.settings.vocab_size:,}. "
            "They are not of one training."
        )
    task.module.to(pick_device(device)).eval()
    int8, shortlist_cost = config.get("int8"), config.get("shortlist")
    shortlist = None if shortlist_cost is None else _read_shortlist(folder, sealed, tokenizer.vocab_size)
    engine_task = None
    if isinstance(task, SupportsEngines):
        used = shortlist if use_shortlist else None
        engine_task = task.with_engine(engine, folder, tell, is_int8=int8 is not None, shortlist=used)
    return Bundle(
        task=task,
        decode=decode,
        recipe=read_toml(folder / _RECIPE),
        scores=scores,
        int8=int8,
        shortlist=shortlist,
        shortlist_cost=shortlist_cost,
        engine_task=engine_task,
    )


def _read_shortlist(folder: Path, sealed: set[str], vocab_size: int) -> Shortlist:
    require_files(folder, sealed, (_SHORTLIST,), BundleError)
    try:
        found = Shortlist.from_arrays({name: one.numpy() for name, one in load_file(folder / _SHORTLIST).items()})
        found.check_vocab_size(vocab_size)
    except (SafetensorError, BundleError) as error:
        raise BundleError(f"{folder}/{_SHORTLIST}: {error}") from None
    return found


def model_settings(path: Path | str) -> dict[str, Any]:
    """The model settings of a bundle, as a table."""
    folder = Path(path)
    config = _read_config(folder, verify_manifest(folder, BundleError))
    model = config.get("model")
    if not isinstance(model, dict):
        raise BundleError(f"{folder}/{_CONFIG} is not as this manyheads writes it: it has no model.")
    return dict(model)


def _read_config(folder: Path, sealed: set[str]) -> dict[str, Any]:
    """What bundle.json says, if it is of a format and a task that we know: only then can the rest be judged."""
    require_files(folder, sealed, (_CONFIG,), BundleError)
    try:
        config = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
    except ValueError as error:
        raise BundleError(f"{folder}/{_CONFIG} is not JSON: {error}.") from None
    given = config.get("format") if isinstance(config, dict) else None
    if not isinstance(given, int) or given < 1:
        raise BundleError(f"{folder}/{_CONFIG} names no bundle format that we know: {given!r}.")
    if given > FORMAT:
        raise BundleError(
            f"{folder}: made by a newer manyheads (bundle format {given}; this one reads up to {FORMAT}). "
            "Upgrade: pip install -U manyheads"
        )
    if config.get("task") not in TASKS:
        raise BundleError(
            f"{folder}: its task {config.get('task')!r} is not known to this manyheads. Known: {', '.join(TASKS)}."
        )
    return dict(config)
