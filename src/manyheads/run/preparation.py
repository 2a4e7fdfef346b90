"""Prepare a run: clean the text, train the tokenizer, encode the text to ids.

The tokenizer is stored in the run folder. Text and ids are stored in a cache that runs share; they are created again if
the cache is gone, for instance after the run folder was copied to another machine.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from manyheads.bounded_files import read_json_object
from manyheads.bundle import load
from manyheads.cores import count_cores
from manyheads.data import Encoded, Texts
from manyheads.data.cleaning import KEPT
from manyheads.data.corpus_cache import Cache, content_key
from manyheads.data.parallel_encoding import choose_processes
from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.metrics import display_name
from manyheads.run.corpus import COUNTS, Corpus
from manyheads.run.events import Stage
from manyheads.run.recipe import Recipe
from manyheads.run.run_folder import FORMAT, RunFolder
from manyheads.settings import to_table
from manyheads.storage import atomic_write
from manyheads.text.reading.readers import Row
from manyheads.text.tokens.tokenizer import Tokenizer

_IDS_FORMAT = 4  # of cached ids; increase it when the same text gives other ids


@dataclass(frozen=True)
class PreparedData:
    """The encoded training data of a run."""

    tokenizer: Tokenizer
    encoded: Encoded
    counts: Mapping[str, int]  # rows by reason for dropping them; "kept" for the others
    boundaries: Sequence[int]  # the first row of each corpus of a mix, and the end of the last
    warnings: Sequence[str]  # damaged cache entries, which were created again


def prepare(recipe: Recipe, folder: RunFolder, cache: Cache | None = None) -> Generator[Stage, None, PreparedData]:
    """Create what training needs, or load it from the run folder and the cache, by default the one that runs share."""
    cache = cache or Cache.beside(folder.path)
    name, texts_warnings = yield from _prepare_text(recipe, folder, cache)
    texts = Texts.open(cache.folder / name)
    metadata = _read_counts(cache.folder / name)
    counts = sum((Counter(count) for count in metadata["counts"]), Counter[str]())
    if not len(texts):
        raise DataError(_("There is nothing to train on: {counts}.", counts=_list_counts(counts)))
    yield from _prepare_tokenizer(recipe, folder, texts)
    tokenizer = Tokenizer.from_file(folder.tokenizer_file)
    name = _ids_name(recipe, tokenizer, name)

    def write_ids(temporary: Path) -> None:
        encode = partial(_encode, recipe, tokenizer)
        max_length = recipe.task_class.max_row_length(recipe.model, recipe.task)
        if max_length is not None:
            max_length -= max(tokenizer.n_framing - 1, len(tokenizer.opens), len(tokenizer.leads))
        n_processes = choose_processes(texts, count_cores())
        written = Encoded.write(temporary, texts, encode, max_length, n_processes=n_processes)
        (temporary / COUNTS).write_text(json.dumps({"counts": written}), encoding="utf-8")

    warnings = texts_warnings + (yield from _get_or_create(cache, name, _("tokenizing the text"), write_ids))
    del counts[KEPT]
    counts.update(_read_counts(cache.folder / name)["counts"])
    encoded = Encoded.open(cache.folder / name, texts)
    if not len(encoded):
        raise DataError(_("There is nothing to train on: {counts}.", counts=_list_counts(counts)))
    return PreparedData(tokenizer, encoded, counts, encoded.find_rows(metadata["boundaries"]), warnings)


def read_prepared(recipe: Recipe, folder: RunFolder, cache: Cache | None = None) -> PreparedData:
    """Read what `prepare` has created, as another process of the run does; write nothing."""
    cache = cache or Cache.beside(folder.path)
    known = folder.read_data()
    if known is None:
        raise DataError(_("{file} is missing or damaged", file=folder.data_file))
    texts = Texts.open(cache.folder / known["text"])
    tokenizer = Tokenizer.from_file(folder.tokenizer_file)
    encoded = Encoded.open(cache.folder / _ids_name(recipe, tokenizer, known["text"]), texts)
    boundaries = _read_counts(cache.folder / known["text"])["boundaries"]
    return PreparedData(tokenizer, encoded, {}, encoded.find_rows(boundaries), [])


def _ids_name(recipe: Recipe, tokenizer: Tokenizer, text_name: str) -> str:
    """Return the name of the cache entry with the ids of a text."""
    digest = hashlib.sha256(tokenizer.to_bytes()).hexdigest()
    return f"ids-{content_key([_IDS_FORMAT, text_name, digest, recipe.model.max_length, to_table(recipe.task)])}"


def _prepare_text(recipe: Recipe, folder: RunFolder, cache: Cache) -> Generator[Stage, None, tuple[str, list[str]]]:
    """Clean the text into the cache; return the name of the entry, and a warning if a damaged one was replaced."""
    corpus = Corpus.of(recipe)
    digests = corpus.digests()
    name = f"text-{corpus.key(digests)}"
    _check_same_text(folder, name, digests)

    def write_text(temporary: Path) -> None:
        corpus.write(temporary)
        if corpus.digests() != digests:
            raise DataError(_("The training files changed while they were being read. Run the same command again."))

    warnings = yield from _get_or_create(cache, name, _("cleaning the text"), write_text)
    counts = _read_counts(cache.folder / name)["counts"]
    data = {"format": FORMAT, "text": name, "files": digests, "counts": counts}
    atomic_write(folder.data_file, json.dumps(data).encode())
    return name, warnings


def _prepare_tokenizer(recipe: Recipe, folder: RunFolder, texts: Texts) -> Generator[Stage, None, None]:
    """Train the tokenizer, or copy it from `init_from`, unless the folder has one."""
    if folder.tokenizer_file.exists():
        return
    if recipe.init_from:
        tokenizer = load(recipe.init_from).task.tokenizer
    else:
        size = f"{recipe.tokenizer.vocab_size:,}"
        yield Stage(_("training a tokenizer of at most {size} tokens", size=size))
        tokenizer = Tokenizer.train(recipe.task_class.lines(texts), recipe.tokenizer, recipe.seed)
    atomic_write(folder.tokenizer_file, tokenizer.to_bytes())


def _encode(recipe: Recipe, tokenizer: Tokenizer, rows: Sequence[Row]) -> Sequence[Sequence[Sequence[int]]]:
    return recipe.task_class.encode_rows(rows, tokenizer, recipe.task)


def delete_prepared_data(folder: RunFolder) -> None:
    """Delete the tokenizer and the record of the training data."""
    folder.data_file.unlink(missing_ok=True)
    folder.tokenizer_file.unlink(missing_ok=True)


def _check_same_text(folder: RunFolder, name: str, digests: Mapping[str, str]) -> None:
    """Refuse to resume a run whose text changed; before the first checkpoint, delete the tokenizer of the old text."""
    known = folder.read_data()
    if known is not None and known["text"] == name:
        return
    if not folder.is_started:
        delete_prepared_data(folder)
        return
    if known is None:
        raise DataError(
            _(
                "{file} is missing or damaged, so the text this run was started with is unknown. Restore it, "
                "or train into another folder with -o.",
                file=folder.data_file,
            )
        )
    changed = [file for file, digest in digests.items() if known["files"].get(file) != digest]
    if changed:
        raise DataError(
            _(
                "{files} changed since this run started. Train into another folder with -o.",
                files=", ".join(changed),
            )
        )
    raise DataError(
        _(
            "{path}: another version of manyheads cleaned the text of this run, and this version would clean it "
            "differently. Resume with that version, or train into another folder with -o.",
            path=folder.path,
        )
    )


def _get_or_create(
    cache: Cache, name: str, description: str, write: Callable[[Path], None]
) -> Generator[Stage, None, list[str]]:
    """Create a cache entry unless it exists; return a warning if a damaged one was replaced."""
    problem = cache.problem(name)
    if problem is None:
        return []
    yield Stage(description)
    with cache.create(name) as temporary:
        write(temporary)
    return [problem] if problem else []


def _read_counts(entry: Path) -> dict[str, Any]:
    return read_json_object(entry / COUNTS, DataError)


def _list_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {display_name(reason)}" for reason, count in counts.items())
