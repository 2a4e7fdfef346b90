"""Import from Hugging Face: a local folder of somebody else's model becomes an ordinary bundle.

The weights are rewritten where our modules have another form: the ids of the tokens are renumbered (see `Numbering`),
token types are added to the positions. Everything is checked before a bundle exists.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manyheads.bounded_files import read_bounded, read_json_object
from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings
from manyheads.errors import BundleError, RecipeError
from manyheads.interop.checkpoint_files import Checkpoint, Config, find_folder
from manyheads.interop.decoder_families import DECODERS
from manyheads.interop.encoder_families import ENCODERS
from manyheads.interop.import_plan import Family, Head, Plan
from manyheads.interop.llama2c_import import open_llama2c
from manyheads.interop.sentencepiece_import import read_llama2c_tokenizer
from manyheads.interop.seq2seq_families import SEQ2SEQ
from manyheads.interop.tokenizer_import import read_tokenizer
from manyheads.messages import _
from manyheads.model import ModelSettings, Transformer
from manyheads.model.size import machine_memory
from manyheads.settings import build, did_you_mean, to_table
from manyheads.tasks import TASKS
from manyheads.text.tokens.imported_tokenizer import ImportedTokenizer, SpecialIds

FAMILIES: dict[str, Family] = {**ENCODERS, **DECODERS, **SEQ2SEQ}
_MODULES = "sentence_transformers.models."
_POOLINGS = {"pooling_mode_cls_token": "first", "pooling_mode_mean_tokens": "mean", "pooling_mode_max_tokens": "max"}
_POOLING_NAMES = {"cls": "first", "mean": "mean", "max": "max"}


@dataclass(frozen=True)
class SentenceFolder:
    """A folder of sentence-transformers: where its Transformer is, and what follows it."""

    transformer: Path
    settings: dict[str, Any]  # of the embed task
    lowercase: bool = False


def import_huggingface(path: Path | str) -> Bundle:
    """Read a folder of Hugging Face or sentence-transformers, or a file of llama2.c; the model computes the same."""
    if Path(path).is_file():
        return _import_llama2c(Path(path))
    folder = find_folder(path)
    sentence = _sentence_folder(folder)
    folder = sentence.transformer if sentence else folder
    config = Config.read(folder)
    family, head = _family_of(config, wants_vectors=sentence is not None)
    checkpoint = Checkpoint.open(folder)
    config.tensors = checkpoint.shapes
    _refuse_too_large(checkpoint)
    n_ids = config.integer("vocab_size")
    lowercase = sentence is not None and sentence.lowercase
    tokenizer = read_tokenizer(folder, config, family.roles(config), n_ids, lowercase=lowercase)
    return _make_bundle(config, checkpoint, family, head, tokenizer, sentence.settings if sentence else None)


def _import_llama2c(path: Path) -> Bundle:
    config, checkpoint = open_llama2c(path)
    _refuse_too_large(checkpoint)
    n_ids, name = config.integer("vocab_size"), "tokenizer.bin"
    content = read_llama2c_tokenizer(path.with_name(name), n_ids)
    tokenizer = ImportedTokenizer.make(content, SpecialIds(pad=None, mask=0, bos=1, eos=2), n_ids, name=name)
    return _make_bundle(config, checkpoint, FAMILIES["llama"], Head("language"), tokenizer)


def _make_bundle(
    config: Config,
    checkpoint: Checkpoint,
    family: Family,
    head: Head,
    tokenizer: ImportedTokenizer,
    task_table: Mapping[str, Any] | None = None,
) -> Bundle:
    """The bundle of a model whose files are open; `task_table` are the task's settings if the head does not know."""
    try:
        settings = ModelSettings(vocab_size=tokenizer.vocab_size, **{**family.settings(config), **head.model})
        task_class = TASKS[head.kind]
        own = head.settings(config) if task_table is None else task_table
        task_settings: Any = build(task_class.settings_type, {"kind": head.kind, **own}, "task.")
    except RecipeError as error:
        raise BundleError(_("{path}: {reason}", path=config.path, reason=" ".join(str(error).split()))) from None
    has_prefix = any(name.startswith(family.prefix) for name in checkpoint.shapes)
    plan = Plan(settings, tokenizer.numbering, family.prefix if has_prefix else "", checkpoint.shapes)
    family.plan(config, plan)
    task = task_class.restore(Transformer(settings), tokenizer, task_settings, head.metadata(config))
    if task.module is not task.model:
        plan.sources = {f"model.{name}": source for name, source in plan.sources.items()}
    head.plan(config, plan)
    plan.load(task.module, checkpoint, family.is_ignored)
    task.module.eval()
    # The lens observes heads on the built-in English texts; pairs of texts have to be given.
    data: dict[str, Any] = {"train": [str(checkpoint.folder)]} if settings.has_cross_attention else {"builtin": "en"}
    recipe = {"task": to_table(task_settings), "model": to_table(settings), "data": data}
    return Bundle(task=task, decode=DecodeSettings(), recipe=recipe)


def _family_of(config: Config, *, wants_vectors: bool) -> tuple[Family, Head]:
    """The family by model_type, and the head by the class that wrote the folder."""
    kind = config.text("model_type", default="")
    if kind not in FAMILIES:
        raise BundleError(
            _(
                "{path}: model_type = {kind} is not an architecture that can be imported. Known: {known}.",
                path=config.path,
                kind=repr(kind),
                known=", ".join(FAMILIES),
            )
        )
    family = FAMILIES[kind]
    classes = config.table.get("architectures")
    name = classes[0] if isinstance(classes, list) and classes else next(iter(family.heads))
    if wants_vectors:
        name = next(iter(family.heads))
    if name not in family.heads:
        raise BundleError(
            _(
                "{path}: the class {name} cannot be imported. {hint}",
                path=config.path,
                name=name,
                hint=did_you_mean(str(name), family.heads),
            )
        )
    return family, family.heads[name]


def _refuse_too_large(checkpoint: Checkpoint) -> None:
    memory, needed = machine_memory(), 4 * checkpoint.n_numbers
    if memory is not None and needed > memory:
        raise BundleError(
            _(
                "{folder}: the model has {n_numbers:,} numbers, which need {needed:,.1f} GB of memory; this machine "
                "has {memory:,.1f} GB. Use a smaller model.",
                folder=checkpoint.folder,
                n_numbers=checkpoint.n_numbers,
                needed=needed / 1e9,
                memory=memory / 1e9,
            )
        )


def _sentence_folder(folder: Path) -> SentenceFolder | None:
    """What modules.json says; None if the folder is not of sentence-transformers."""
    path = folder / "modules.json"
    if not path.is_file():
        return None
    modules = _modules(path)
    types = [kind.rsplit(".", 1)[-1] for kind, _place in modules]
    if types[:1] != ["Transformer"] or not {*types[1:]} <= {"Pooling", "Normalize"}:
        raise BundleError(
            _(
                "{path}: the modules {types} cannot be imported: only Transformer, Pooling and Normalize.",
                path=path,
                types=", ".join(types),
            )
        )
    transformer = folder / modules[0][1]
    settings: dict[str, Any] = {"normalize": "Normalize" in types}
    pooling = next((folder / place for kind, place in modules if kind.endswith(".Pooling")), None)
    settings["pooling"] = "mean" if pooling is None else _pooling(pooling / "config.json")
    own = transformer / "sentence_bert_config.json"
    table = read_json_object(own, BundleError) if own.is_file() else {}
    if isinstance(table.get("max_seq_length"), int):
        settings["max_tokens"] = table["max_seq_length"]
    return SentenceFolder(transformer, settings, lowercase=table.get("do_lower_case") is True)


def _modules(path: Path) -> list[tuple[str, str]]:
    """The type and the folder of each module; modules.json is a list, not an object."""
    try:
        modules = json.loads(read_bounded(path))
        found = [(str(each["type"]), str(each["path"])) for each in modules]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise BundleError(_("{path} cannot be read: {reason}.", path=path, reason=error)) from None
    if any(Path(place).is_absolute() or ".." in Path(place).parts for _kind, place in found):
        raise BundleError(_("{path} names a folder outside its own.", path=path))
    return found


def _pooling(path: Path) -> str:
    table = read_json_object(path, BundleError)
    chosen = [ours for name, ours in _POOLINGS.items() if table.get(name) is True]
    if isinstance(table.get("pooling_mode"), str):
        chosen = [_POOLING_NAMES[table["pooling_mode"]]] if table["pooling_mode"] in _POOLING_NAMES else []
    others = [name for name, value in table.items() if name.startswith("pooling_mode_") and value is True]
    if len(chosen) != 1 or len(others) > 1:
        names = ", ".join(others) or str(table.get("pooling_mode"))
        raise BundleError(
            _("{path}: the pooling {names} cannot be imported: only cls, mean or max.", path=path, names=names)
        )
    return chosen[0]
