"""Bundles, checkpoints and logs with a right manifest and a mutated content; and decoding settings.

A bundle that loads must also answer.
"""

import dataclasses
import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import torch
from safetensors.torch import load, save

from manyheads.bundle import Bundle
from manyheads.bundle import load as load_bundle
from manyheads.decode import DecodeSettings, Shortlist
from manyheads.report import write_report
from manyheads.storage import MANIFEST, write_manifest
from manyheads.training import Checkpoints

from fuzz.mutations import mutated
from fuzz.values import changed, hostile_value
from lens.makers import KINDS, TEXTS, task_of
from training.doubling import make_trainer

Files = dict[str, bytes]

_TINY = {"width": 8, "n_heads": 2, "n_encoder_layers": 1, "n_decoder_layers": 1, "max_length": 32}
_RECIPE = {"data": {"builtin": "en-zh"}, "train": {"steps": 10}, "seed": 1}
_SHORT = DecodeSettings(beam=2, max_new_tokens=3)


@cache
def _bundle(kind: str) -> Bundle:
    made = Bundle(task_of(kind.partition("+")[0], **_TINY), _SHORT, _RECIPE)
    if kind.endswith("int8"):
        return Bundle(made.task, _SHORT, _RECIPE, int8={"bleu": 1.0})
    if kind.endswith("shortlist"):
        lists = [[4, 5, 6]] * made.task.tokenizer.vocab_size
        return Bundle(made.task, _SHORT, _RECIPE, shortlist=Shortlist.from_lists(lists, [3]), shortlist_cost={})
    return made


@cache
def _files(kind: str) -> Files:
    """The files of a valid bundle."""
    with tempfile.TemporaryDirectory() as folder:
        _bundle(kind).save(Path(folder, "bundle"))
        return _read(Path(folder, "bundle"))


def _read(folder: Path) -> Files:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def _write(files: Files, folder: Path, *, is_sealed: bool = True) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    if is_sealed:  # as `write_manifest`, without syncing
        names = sorted(name for name in files if name != MANIFEST)
        lines = "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in names)
        (folder / MANIFEST).write_text(lines)
    return folder


def _use(folder: Path, rng: Random) -> None:
    """Load a bundle; one that loads must answer or refuse the text."""
    bundle = load_bundle(folder, engine="torch")
    bundle.predict([rng.choice(list(TEXTS.values())), "", "x"], max_new_tokens=3)


def _any_kind(rng: Random) -> str:
    return rng.choice((*KINDS, "seq2seq+int8", "seq2seq+shortlist"))


def config(rng: Random) -> None:
    """Hostile values in bundle.json."""
    files = dict(_files(_any_kind(rng)))
    table = changed(rng, json.loads(files["bundle.json"]), rng.choice((0, 1, 1, 2, 4)))
    files["bundle.json"] = json.dumps(table).encode("utf-8", "surrogatepass")
    _use(_write(files, Path("bundle")), rng)


def content(rng: Random) -> None:
    """Mutated bytes of one file."""
    files = dict(_files(_any_kind(rng)))
    name = rng.choice([name for name in files if name != MANIFEST])
    files[name] = mutated(rng, files[name])
    _use(_write(files, Path("bundle")), rng)


def manifest(rng: Random) -> None:
    """A mutated manifest, and files that are missing, links or other things than files."""
    files = dict(_files("seq2seq"))
    files[MANIFEST] = mutated(rng, files[MANIFEST])
    folder = _write(files, Path("bundle"), is_sealed=rng.random() < 0.1)
    if rng.random() < 0.3:
        path = folder / rng.choice(sorted(files))
        path.unlink()
        match rng.randrange(4):
            case 0:
                path.symlink_to(rng.choice(("/dev/zero", path.name, "/", "..", "nothing")))
            case 1:
                path.mkdir()
    _use(folder, rng)


def weights(rng: Random) -> None:
    """Tensors of other shapes, types, names and values, in weights and shortlists."""
    kind = _any_kind(rng)
    files = dict(_files(kind))
    name = rng.choice([name for name in files if name.endswith(".safetensors")])
    tensors = load(files[name])
    for _ in range(rng.choice((0, 1, 1, 3))):
        key = rng.choice(sorted(tensors))
        tensors |= _changed_tensor(rng, key, tensors[key])
        if rng.random() < 0.2:
            tensors.pop(key, None)
        if not tensors:
            break
    files[name] = save({key: value.clone().contiguous() for key, value in tensors.items()})
    _use(_write(files, Path("bundle")), rng)


def _changed_tensor(rng: Random, key: str, value: torch.Tensor) -> dict[str, torch.Tensor]:
    match rng.randrange(7):
        case 0:
            return {f"{key}.scale": torch.ones(rng.choice((0, 1, 8, 400)))}
        case 1:
            return {key: value.to(rng.choice((torch.int8, torch.float64, torch.bfloat16, torch.bool, torch.int64)))}
        case 2:
            return {key: value.flatten()}
        case 3:
            return {key: torch.zeros(rng.choice(((0,), (), (1, 1), (3, 0), (8, 8), (1, 2, 3, 4))))}
        case 4:
            return {rng.choice(("x", "", "a\nb", "é" * 300)): value}
        case 5:
            return {key: torch.full_like(value, rng.choice((0, -1, 7, 100)))}
        case _:
            filling = rng.choice((float("nan"), float("inf"), 1e38, -1e30, 0.0))
            return {key: torch.full_like(value, filling) if value.is_floating_point() else value + 1}


def tokenizer(rng: Random) -> None:
    """A mutated tokenizer in an otherwise valid bundle."""
    files = dict(_files("classify"))
    files["tokenizer.model"] = mutated(rng, files["tokenizer.model"], 2)
    _use(_write(files, Path("bundle")), rng)


@cache
def _checkpoint() -> Files:
    with tempfile.TemporaryDirectory() as folder:
        trainer = make_trainer(ema_decay=0.9)
        next(iter(trainer.run()))
        Checkpoints(Path(folder), 1).save(trainer, snapshot=True)
        return _read(Path(folder))


def checkpoint(rng: Random) -> None:
    """A checkpoint with a mutated file."""
    files = dict(_checkpoint())
    folders = sorted({str(Path(name).parent) for name in files})
    name = rng.choice([name for name in files if not name.endswith(MANIFEST)])
    if name.endswith(".json") and rng.random() < 0.7:
        files[name] = json.dumps(changed(rng, json.loads(files[name]), 2)).encode("utf-8", "surrogatepass")
    else:
        files[name] = mutated(rng, files[name])
    run = _write(files, Path("run"), is_sealed=False)
    for folder in folders:
        write_manifest(run / folder)
    checkpoints = Checkpoints(run, 1)
    trainer = make_trainer(ema_decay=0.9)
    checkpoints.restore(trainer)
    next(iter(trainer.run()), None)
    checkpoints.averaged()


_EVENTS: tuple[dict[str, Any], ...] = (
    {"event": "Prepared", "n_rows": 100, "n_parameters": 1000, "vocab_size": 300, "device": "cpu", "seconds": 1.5},
    {"event": "Step", "step": 1, "epoch": 0, "loss": 5.0, "learning_rate": 0.001, "tokens_per_second": 100.0},
    {"event": "Validated", "step": 1, "metric": "BLEU", "score": 1.0, "best": 1.0, "sample": ["a", "b", "c"]},
    {"event": "Saved", "step": 1},
    {"event": "Finished", "bundle": "x", "cards": {"test": {"kind": "translation", "scores": []}}},
)


def log(rng: Random) -> None:
    """The report of a run with a mutated log and recipe."""
    events = [changed(rng, event, rng.choice((0, 0, 1, 2))) for event in _EVENTS for _ in range(rng.choice((1, 1, 3)))]
    lines = "\n".join(json.dumps(event) for event in events).encode() + b"\n"
    recipe = mutated(rng, b'[train]\nsteps = 100\n[task]\nkind = "seq2seq"\n')
    folder = _write({"log.jsonl": mutated(rng, lines), "recipe.toml": recipe}, Path("run"), is_sealed=False)
    if rng.random() < 0.1:
        (folder / rng.choice(("log.jsonl", "recipe.toml"))).unlink()
    write_report(folder)


_DECODE_KEYS = [field.name for field in dataclasses.fields(DecodeSettings)]


def decode(rng: Random) -> None:
    """Predictions with hostile decoding settings."""
    bundle = _bundle(rng.choice(("seq2seq", "language")))
    settings: dict[str, Any] = {"max_new_tokens": rng.randrange(6), "method": rng.choice(("greedy", "beam", "sample"))}
    for key in rng.sample(_DECODE_KEYS, rng.choice((0, 1, 1, 2, 3))):
        settings[key] = hostile_value(rng) if rng.random() < 0.6 else rng.choice((1, 2, 7, 40, 0.5))
    bundle.candidates([TEXTS["seq2seq"], "", "a b"], **settings)


TARGETS: dict[str, Callable[[Random], None]] = {
    "bundle-config": config,
    "bundle-content": content,
    "bundle-manifest": manifest,
    "bundle-weights": weights,
    "bundle-tokenizer": tokenizer,
    "checkpoint": checkpoint,
    "run-log": log,
    "decode-settings": decode,
}
