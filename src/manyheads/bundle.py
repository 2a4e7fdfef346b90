"""A bundle: one folder with everything a trained model needs, text in and text out.

    bundle.json            format, task, model settings, metadata, scores with their signatures
    weights.safetensors    float32 weights; int8 matrices with their scales if bundle.json has "int8"
    tokenizer.model
    recipe.toml            the resolved recipe it was trained with
    shortlist.safetensors  if bundle.json has "shortlist": the target tokens allowed for each source token
    baseline.safetensors   the linear model that is mixed into a classifier's answers, if it has one
    words.safetensors      if bundle.json has "seen_words": hashes of the words of the training texts
    MANIFEST.sha256        checksums of all other files, verified on load

No file is a pickle. This module may import tasks and all packages below it.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from manyheads.bounded_files import read_json_object
from manyheads.decode import DecodeSettings, EngineSelector, Shortlist
from manyheads.errors import BundleError, RecipeError
from manyheads.messages import _
from manyheads.metrics import Score, Use, format_score
from manyheads.model import ModelSettings, Transformer
from manyheads.model.device import pick_device
from manyheads.model.size import parameters_by_part
from manyheads.model.weights import (
    check_header,
    dequantize_weights,
    load_weights,
    quantize_weights,
    read_header,
    read_tensors,
    refuse_infinite,
    save_tensors,
    weights_of,
)
from manyheads.settings import build, read_toml, shown, to_table, to_toml
from manyheads.storage import MANIFEST, atomic_folder, require_files, verify_manifest
from manyheads.tasks import (
    TASKS,
    DecodingChoice,
    LabelingTask,
    PairTask,
    Prediction,
    Task,
    TextOptions,
)
from manyheads.tasks.seq2seq.settings import options_per_text
from manyheads.text.tokens.seen_words import MAX_WORDS, SeenWords
from manyheads.text.tokens.tokenizer import Tokenizer
from manyheads.text.tokens.words import is_blank

FORMAT = 3  # of bundle.json; other formats are refused
_CONFIG = "bundle.json"
_WEIGHTS = "weights.safetensors"
_TOKENIZER = "tokenizer.model"
_RECIPE = "recipe.toml"
_SHORTLIST = "shortlist.safetensors"
_SEEN_WORDS = "words.safetensors"
_BASELINE = "baseline.safetensors"
_N_SHOWN = 5  # parts of a bundle's repr
_FILES = (_CONFIG, _WEIGHTS, _TOKENIZER, _RECIPE)


@dataclass(frozen=True)
class Bundle:
    """A trained model, ready to use.

    `predict`, `candidates` and `predictions` decode with `engine`. The methods of `task` decode with PyTorch.
    """

    task: Task
    decode: DecodeSettings
    recipe: Mapping[str, Any]
    scores: Mapping[str, Sequence[Score]] = field(default_factory=dict)  # by test set
    validation_used_for: Sequence[Use] = ()  # what the run used its validation set for: its scores are optimistic
    decoding_choice: DecodingChoice | None = None  # why `decode` has the length penalty it has, if the run chose it
    int8: Mapping[str, Any] | None = None  # the measured cost of quantization, if the weights are quantized
    shortlist: Shortlist | None = None
    shortlist_cost: Mapping[str, Any] | None = None  # the measured cost of the shortlist
    seen_words: SeenWords | None = field(default=None, compare=False)  # of the training texts; None if not stored
    engine: EngineSelector = field(default_factory=lambda: EngineSelector("torch"), compare=False)

    def __repr__(self) -> str:
        n_heads = sum(attention.heads.n_heads for attention in self.task.model.attentions())
        parts = [f"{self.kind} {'→'.join(self.task.languages(self.task.settings))}".strip()]
        parts += [f"{n_heads} heads", f"{self.task.model.n_parameters:,} parameters"]
        for name, (score, *_others) in ((name, scores) for name, scores in self.scores.items() if scores):
            parts.append(f"{name} {score.name} {format_score(score.name, score.value)}")
        return f"{type(self).__name__}({', '.join(parts[:_N_SHOWN])})"

    @property
    def kind(self) -> str:
        """The name of the task, as in a recipe."""
        return str(self.task.settings.kind)

    @property
    def engine_task(self) -> Task:
        """The task, decoding with this bundle's engine if the task generates text with engines."""
        return self.task.with_engine(self.engine)

    def predict(self, texts: Iterable[str], **changes: Any) -> list[Any]:
        """Return the answer for each text: a translation, a label, spans or a continuation.

        `changes` override decoding settings, such as `beam=5` or `method="greedy"`; `threshold=0.9` leaves out labels
        and spans that are less probable.
        """
        if isinstance(texts, str):
            raise TypeError(_('predict takes a list of texts: predict(["…"]).'))
        return [prediction.answer for prediction in self.predictions(texts, **changes)]

    def embed(self, texts: Iterable[str]) -> NDArray[np.float32]:
        """Return the vector of each text as a row; that of a blank text has zeros.

        This is for bundles of the task embed, and for classifiers: theirs is the vector before the output layer.
        """
        if isinstance(texts, str):
            raise TypeError(_('embed takes a list of texts: embed(["…"]).'))
        texts = list(texts)
        vectors = self.task.embed(texts).numpy()
        vectors[[number for number, text in enumerate(texts) if is_blank(text)]] = 0.0
        return vectors

    def candidates(self, texts: Iterable[str], **changes: Any) -> list[Sequence[Any]]:
        """Return the `n_best` hypotheses for each text, best first, with their log-probabilities."""
        if not self.task.model.settings.has_decoder:
            raise BundleError(
                _(
                    "A bundle of task {kind} generates no text, so it has no candidates. Use predictions().",
                    kind=self.kind,
                )
            )
        predictions: Iterable[Any] = self.predictions(texts, **changes)
        return [prediction.candidates for prediction in predictions]

    def predictions(
        self,
        texts: Iterable[str],
        *,
        first: int = 0,
        options: TextOptions | Sequence[TextOptions] | None = None,
        threshold: float | None = None,
        **changes: Any,
    ) -> Sequence[Prediction]:
        """Return the answer for each text with its details: probabilities, candidates, positions.

        `threshold` leaves out labels and spans that are less probable. `beam` chooses beam search. The random stream of
        a text is its index plus `first`; pass it when texts come in parts. `options` are what the translations of all
        texts, or of each, must contain, repeat and begin with.
        """
        texts = list(texts)
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                raise TypeError(
                    _("texts[{number}] is of type {type}, not str.", number=number, type=type(text).__name__)
                )
        if "beam" in changes:
            changes = {"method": "beam"} | changes
        settings = build(DecodeSettings, to_table(self.decode) | changes, "decode.")
        if changes.get("abstain") is not None:
            self.require_confidence(settings)
        task = self.engine_task if threshold is None else self.with_threshold(threshold).engine_task
        if options is None:
            return task.predict(texts, settings, first)
        if not isinstance(task, PairTask):
            raise BundleError(
                _("glossary, keep and prefix are for translation; this is a bundle of the task {kind}.", kind=self.kind)
            )
        return task.predict(texts, settings, first, options=options_per_text(options, len(texts)))

    def with_threshold(self, threshold: float) -> "Bundle":
        """Return the bundle with this threshold: labels and spans that are less probable are left out."""
        if not isinstance(self.task, LabelingTask):
            raise BundleError(_("threshold: a bundle of task {kind} has no threshold.", kind=self.kind))
        if not 0 <= threshold < 1:
            raise BundleError(_("threshold = {threshold} must be at least 0 and less than 1.", threshold=threshold))
        return replace(self, task=self.task.with_threshold(threshold))

    def baseline_alone(self) -> "Bundle":
        """Return the bundle with the answers of its linear model alone, which is many times as fast."""
        if not isinstance(self.task, LabelingTask) or not self.task.baseline_name:
            raise BundleError(_("This bundle of the task {kind} has no linear baseline.", kind=self.kind))
        return replace(self, task=self.task.baseline_alone())

    def require_confidence(self, settings: DecodeSettings) -> None:
        """Raise BundleError if predictions with these settings have no confidence by which to abstain."""
        if not isinstance(self.task, PairTask):
            raise BundleError(_("abstain is for translation; this is a bundle of the task {kind}.", kind=self.kind))
        if not self.task.has_confidence:
            raise BundleError(
                _(
                    "abstain needs a confidence, which this bundle does not have: it is fitted at the end of "
                    "training, if there are 20 validation rows. Leave out abstain, or train again."
                )
            )
        if settings.method == "sample":
            raise BundleError(_("abstain needs a confidence, which samples do not have. Use beam or greedy search."))

    def unseen_words(self, text: str) -> list[str]:
        """Return the words of a text that did not occur in the training texts, in order and each once.

        The list is empty if the bundle does not store its words: one made by an earlier version, or from more than a
        million different words.
        """
        if self.seen_words is None:
            return []
        mask = self.task.mask_text
        return self.seen_words.unseen(text.replace(mask, " ") if mask else text)

    def save(self, path: Path | str) -> None:
        """Write the folder atomically."""
        config: dict[str, Any] = {
            "format": FORMAT,
            "task": self.kind,
            "model": to_table(self.task.model.settings),
            "settings": to_table(self.task.settings),
            "metadata": self.task.metadata(),
            "decode": to_table(self.decode),
            "scores": {name: [asdict(score) for score in scores] for name, scores in self.scores.items()},
        }
        if self.validation_used_for:
            config["validation_used_for"] = list(self.validation_used_for)
        if self.decoding_choice is not None:
            config["decoding_choice"] = asdict(self.decoding_choice)
        weights = weights_of(self.task.module)
        if self.int8 is not None:
            config["int8"], weights = self.int8, quantize_weights(weights)
        if self.shortlist is not None:
            config["shortlist"] = self.shortlist_cost or {}
        if self.seen_words is not None:
            config["seen_words"] = {"n_words": len(self.seen_words)}
        with atomic_folder(Path(path)) as folder:
            (folder / _CONFIG).write_text(json.dumps(config, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
            save_tensors(weights, folder / _WEIGHTS)
            if self.shortlist is not None:
                arrays = {name: torch.from_numpy(array) for name, array in self.shortlist.arrays.items()}
                save_tensors(arrays, folder / _SHORTLIST)
            if isinstance(self.task, LabelingTask) and (tensors := self.task.baseline_tensors()):
                save_tensors(tensors, folder / _BASELINE)
            if self.seen_words is not None:
                # As signed integers, which every version of torch can store.
                save_tensors({"hashes": torch.from_numpy(self.seen_words.hashes.view(np.int32))}, folder / _SEEN_WORDS)
            (folder / _TOKENIZER).write_bytes(self.task.tokenizer.to_bytes())
            (folder / _RECIPE).write_text(to_toml(self.recipe), encoding="utf-8")


def load(path: Path | str, device: str = "cpu", engine: str = "auto", *, use_shortlist: bool = True) -> Bundle:
    """Read a bundle after verifying its checksums.

    `engine` is "native", "torch", or "auto" for the fastest that supports the model and the settings. A fallback to
    "torch" is logged once; that of "auto" only after many texts. The shortlist of a bundle is used if the engine
    supports it and `use_shortlist` is true.
    """
    selector = EngineSelector(engine)  # an unknown engine fails before anything is read
    folder = Path(path)
    if not (folder / MANIFEST).exists() and (folder / "bundle" / MANIFEST).exists():
        raise BundleError(
            _(
                "{folder} is the folder of a run. Give its bundle: {bundle}.",
                folder=folder,
                bundle=folder / "bundle",
            )
        )
    listed = verify_manifest(folder, BundleError)
    config = _read_config(folder, listed)
    require_files(folder, listed, _FILES, BundleError)
    tokenizer = Tokenizer.from_file(folder / _TOKENIZER)
    task, decode, scores = _restore(folder, config, tokenizer)
    weights = dequantize_weights(read_tensors(folder / _WEIGHTS, BundleError))
    refuse_infinite(weights, folder / _WEIGHTS, BundleError)  # again: a huge scale makes finite numbers infinite
    load_weights(task.module, weights, f"{folder}/{_WEIGHTS}")
    if _BASELINE in listed:
        task = _with_baseline(task, folder)
    task.module.to(pick_device(device)).eval()
    int8, shortlist_cost = _cost(folder, config, "int8"), _cost(folder, config, "shortlist")
    shortlist = None if shortlist_cost is None else _read_shortlist(folder, listed, tokenizer.vocab_size)
    selector.is_int8, selector.shortlist = int8 is not None, shortlist if use_shortlist else None
    return Bundle(
        task=task,
        decode=decode,
        recipe=read_toml(folder / _RECIPE),
        scores=scores,
        validation_used_for=_uses(folder, config),
        decoding_choice=_decoding_choice(folder, config),
        int8=int8,
        shortlist=shortlist,
        shortlist_cost=shortlist_cost,
        seen_words=_read_seen_words(folder, listed) if "seen_words" in config else None,
        engine=selector,
    )


def model_settings(path: Path | str) -> dict[str, Any]:
    """Read the model settings of a bundle as a table."""
    folder = Path(path)
    config = _read_config(folder, verify_manifest(folder, BundleError))
    model = config.get("model")
    if not isinstance(model, dict):
        raise _unexpected(folder / _CONFIG, _("it has no model."))
    return dict(model)


def _read_config(folder: Path, listed: set[str]) -> dict[str, Any]:
    """Read bundle.json. Its format and task are checked first, since all else depends on them."""
    require_files(folder, listed, (_CONFIG,), BundleError)
    config = read_json_object(folder / _CONFIG, BundleError)
    number = config.get("format")
    if not isinstance(number, int) or number < 1:
        raise BundleError(
            _(
                "{path} has no valid bundle format: {number}. This manyheads reads {known}.",
                path=folder / _CONFIG,
                number=shown(number),
                known=FORMAT,
            )
        )
    if number < FORMAT:
        raise BundleError(
            _(
                "{folder}: made by an older manyheads (bundle format {number}; this one reads {known}). Train it "
                "again.",
                folder=folder,
                number=number,
                known=FORMAT,
            )
        )
    if number > FORMAT:
        raise BundleError(
            _(
                "{folder}: made by a newer manyheads (bundle format {number}; this one reads {known}). Upgrade: "
                "pip install -U manyheads",
                folder=folder,
                number=number,
                known=FORMAT,
            )
        )
    if not isinstance(config.get("task"), str) or config["task"] not in TASKS:
        raise BundleError(
            _(
                "{folder}: unknown task {task}. Known: {known}.",
                folder=folder,
                task=shown(config.get("task")),
                known=", ".join(TASKS),
            )
        )
    return config


def _restore(
    folder: Path, config: Mapping[str, Any], tokenizer: Tokenizer
) -> tuple[Task, DecodeSettings, dict[str, list[Score]]]:
    """Make the task from bundle.json, without its weights.

    Its sizes are compared with the tokenizer and with the header of the weights before anything is allocated.
    """
    weights = folder / _WEIGHTS
    header = read_header(weights, BundleError)
    try:
        settings = build(ModelSettings, config["model"], "model.")
        _check_sizes(folder, settings, tokenizer, sum(math.prod(shape) for _, shape in header.values()))
        kind = TASKS[config["task"]]
        task_settings: Any = build(kind.settings_type, config["settings"], "task.")
        metadata = config.get("metadata", {})
        if not isinstance(metadata, dict):
            raise TypeError(_("{name} is not an object.", name="metadata"))
        model = Transformer(settings)
        with torch.device("meta"):
            check_header(kind.restore(model, tokenizer, task_settings, metadata).module, header, str(weights))
        task = kind.restore(model, tokenizer, task_settings, metadata)
        decode = build(DecodeSettings, config["decode"], "decode.")
        scores = {name: [Score.from_record(score) for score in scores] for name, scores in config["scores"].items()}
    except (RecipeError, LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        reason = _("; ").join(error.faults) if isinstance(error, RecipeError) else error
        raise _unexpected(folder / _CONFIG, reason) from None
    return task, decode, scores


def _check_sizes(folder: Path, settings: ModelSettings, tokenizer: Tokenizer, n_numbers: int) -> None:
    """Raise BundleError if the tokenizer or the weights, `n_numbers` in all, are those of another model."""
    if tokenizer.vocab_size != settings.vocab_size:
        raise BundleError(
            _(
                "{folder}: the tokenizer has {n_tokens:,} tokens, the model {vocab_size:,}. They belong to different "
                "runs.",
                folder=folder,
                n_tokens=tokenizer.vocab_size,
                vocab_size=settings.vocab_size,
            )
        )
    n_parameters = sum(parameters_by_part(settings).values())
    if n_parameters > n_numbers:
        raise BundleError(
            _(
                "{path} does not fit this model: it has {n_numbers:,} numbers, the model of {config} "
                "{n_parameters:,} parameters. They belong to different runs.",
                path=folder / _WEIGHTS,
                n_numbers=n_numbers,
                config=_CONFIG,
                n_parameters=n_parameters,
            )
        )


def _unexpected(path: Path, reason: object) -> BundleError:
    return BundleError(_("{path} does not have the expected content: {reason}", path=path, reason=reason))


def _cost(folder: Path, config: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """The measured cost of a compression, or None if the bundle does not have it."""
    cost = config.get(name)
    if cost is not None and not isinstance(cost, dict):
        raise _unexpected(folder / _CONFIG, _("{name} is not an object.", name=name))
    return cost


def _uses(folder: Path, config: Mapping[str, Any]) -> tuple[Use, ...]:
    """What the validation set was used for; bundles of earlier versions do not tell."""
    uses = config.get("validation_used_for", [])
    if not isinstance(uses, list) or not all(use in get_args(Use) for use in uses):
        known = ", ".join(get_args(Use))
        raise _unexpected(folder / _CONFIG, _("validation_used_for is not a list of {known}.", known=known))
    return tuple(uses)


def _with_baseline(task: Task, folder: Path) -> Task:
    try:
        if not isinstance(task, LabelingTask):
            raise TypeError(_("this task has no baseline."))
        return task.with_baseline(read_tensors(folder / _BASELINE, BundleError))
    except (TypeError, ValueError) as error:  # numpy has no bfloat16
        raise _unexpected(folder / _BASELINE, error) from None


def _decoding_choice(folder: Path, config: Mapping[str, Any]) -> DecodingChoice | None:
    """The choice of a decoding setting, or None if none was made."""
    if "decoding_choice" not in config:
        return None
    try:
        return build(DecodingChoice, config["decoding_choice"], "decoding_choice.")
    except (RecipeError, AttributeError, TypeError) as error:
        raise _unexpected(folder / _CONFIG, error) from None


def _read_shortlist(folder: Path, listed: set[str], vocab_size: int) -> Shortlist:
    require_files(folder, listed, (_SHORTLIST,), BundleError)
    tensors = read_tensors(folder / _SHORTLIST, BundleError)
    try:
        shortlist = Shortlist.from_arrays({name: tensor.numpy() for name, tensor in tensors.items()})
        shortlist.check_vocab_size(vocab_size)
    except (BundleError, TypeError) as error:  # numpy has no bfloat16
        raise BundleError(f"{folder / _SHORTLIST}: {error}") from None
    return shortlist


def _read_seen_words(folder: Path, listed: set[str]) -> SeenWords:
    require_files(folder, listed, (_SEEN_WORDS,), BundleError)
    tensors = read_tensors(folder / _SEEN_WORDS, BundleError)
    try:
        hashes = tensors["hashes"]
        if hashes.dtype != torch.int32 or hashes.ndim != 1 or len(hashes) > MAX_WORDS:
            raise BundleError(_("hashes must be at most {most:,} int32 numbers.", most=MAX_WORDS))
    except (KeyError, BundleError) as error:
        raise _unexpected(folder / _SEEN_WORDS, error) from None
    return SeenWords(np.unique(hashes.numpy().view(np.uint32)))
