"""The part of a run on the processes other than rank 0: they read what rank 0 prepared, and compute.

Before anything else, all processes compare their recipes, data and versions: a model trained on two data sets by
accident would not fail, it would only be wrong.
"""

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from manyheads.data.corpus_cache import content_key
from manyheads.errors import DataError, ManyheadsError, RecipeError
from manyheads.messages import Message, _
from manyheads.run.corpus import Corpus
from manyheads.run.preparation import read_prepared
from manyheads.run.recipe import Recipe
from manyheads.run.run_folder import RunFolder
from manyheads.run.trainer_setup import check_device, create_task, create_trainer, pick_own_device
from manyheads.run.warm_start import freeze
from manyheads.settings import to_table
from manyheads.training import ProcessGroup

_START = "start"
_WHAT = {
    "recipe": Message("another recipe"),
    "data": Message("other data"),
    "manyheads": Message("another version of manyheads"),
    "torch": Message("another version of PyTorch"),
}


def follow_run(recipe: Recipe, path: Path, group: ProcessGroup) -> None:
    """Take part in the run in the folder `path` as a process other than rank 0, until rank 0 ends it."""
    try:
        check_same_everywhere(recipe, group)
        shared = group.share()
        recipe = replace(recipe, train=replace(recipe.train, micro_batches=shared["micro_batches"]))
        torch.set_num_threads(shared["threads"])
        device = pick_own_device(recipe, group)
        check_device(recipe, device)
        data = _read(recipe, path)
        recipe = replace(recipe, model=replace(recipe.model, vocab_size=data.tokenizer.vocab_size))
        task = create_task(recipe, data)
        freeze(task.module, recipe.freeze)
        task.module.to(device)
        trainer = create_trainer(recipe, data, task, group, task)
        trainer.share()
        trainer.follow()
        group.finish()
    except BaseException as error:
        group.report_failure(error)
        group.abandon()
        raise


def _read(recipe: Recipe, path: Path) -> Any:
    try:
        return read_prepared(recipe, RunFolder(path))
    except (DataError, OSError) as error:
        raise DataError(
            _(
                "what process 0 prepared cannot be read on {host} ({error}). All machines need the run "
                "folder, {folder}, and the cache (MANYHEADS_CACHE) at the same paths, on a filesystem that they "
                "share.",
                host=socket.gethostname(),
                error=error,
                folder=path.absolute(),
            )
        ) from None


@contextmanager
def refuse_start(group: ProcessGroup) -> Iterator[None]:
    """Within, an error is also sent to rank 0, which waits for this process."""
    try:
        yield
    except ManyheadsError as error:
        group.exchange(_START, {"host": socket.gethostname(), "error": str(error)})
        raise


def check_same_everywhere(recipe: Recipe, group: ProcessGroup) -> None:
    """Compare recipe, data and versions of all processes; raise the same error on all of them if any differs."""
    if group.is_alone:
        return
    own: dict[str, Any] = {"host": socket.gethostname()}
    try:
        own |= _fingerprint(recipe)
    except ManyheadsError as error:
        own["error"] = str(error)
    messages = group.exchange(_START, own)
    for rank, message in enumerate(messages):
        if "error" in message:
            raise DataError(
                _(
                    "Process {rank} of {size} (on {host}): {error}",
                    rank=rank,
                    size=group.size,
                    host=message["host"],
                    error=message["error"],
                )
            )
    for rank, message in enumerate(messages):
        different = [
            str(_WHAT[key]) + _versions(key, message, messages[0]) for key in _WHAT if message[key] != messages[0][key]
        ]
        if different:
            raise RecipeError(
                _(
                    "Process {rank} of {size} (on {host}) has {different} than process 0. Start all processes "
                    "with the same recipe, data and versions.",
                    rank=rank,
                    size=group.size,
                    host=message["host"],
                    different=_(" and ").join(different),
                )
            )


def _fingerprint(recipe: Recipe) -> dict[str, str]:
    """Digests of what must not differ between processes; paths and devices may."""
    table = to_table(recipe)
    data = {key: value for key, value in table["data"].items() if key not in ("train", "valid", "test", "mix")}
    mix = [{**entry, "files": len(entry["files"])} for entry in table["data"].get("mix", ())]
    recipe_part = {**table, "data": data | {"mix": mix}, "device": "", "init_from": bool(recipe.init_from)}
    return {
        "recipe": content_key(recipe_part),
        "data": content_key(list(Corpus.of(recipe).digests().values())),
        "manyheads": version("manyheads"),
        "torch": torch.__version__,
    }


def _versions(key: str, message: Mapping[str, str], first: Mapping[str, str]) -> str:
    if key not in ("manyheads", "torch"):
        return ""
    return _(" ({version}, not {expected})", version=message[key], expected=first[key])
