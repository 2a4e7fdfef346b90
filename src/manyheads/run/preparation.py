"""From a recipe's files to what training needs: cleaned text, a tokenizer and ids.

The tokenizer belongs to the run. The text and the ids stand in a cache that runs share; where it is gone, or the
run's folder was copied to another machine, they are made again from the files.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from manyheads.bundle import load
from manyheads.data import Encoded, Texts
from manyheads.data.cleaning import KEPT
from manyheads.data.corpus_cache import Cache, content_key
from manyheads.errors import DataError
from manyheads.run.corpus import COUNTS, Corpus
from manyheads.run.events import Stage
from manyheads.run.recipe import Recipe
from manyheads.settings import to_table
from manyheads.storage import atomic_write
from manyheads.text.readers import Row
from manyheads.text.tokenizer import Tokenizer

DATA = "data.json"  # in the run's folder: which text the run is about
TOKENIZER = "tokenizer.model"
_FORMAT = 3  # of stored ids


@dataclass(frozen=True)
class PreparedData:
    """The data of a run, ready to train on."""

    tokenizer: Tokenizer
    encoded: Encoded
    counts: Mapping[str, int]  # "kept", and why other rows were not
    boundaries: Sequence[int]  # where each corpus of a mix begins among the rows, and where the last ends
    warnings: Sequence[str]  # what was wrong with the cache and had to be made anew


def prepare(recipe: Recipe, folder: Path, *, is_started: bool) -> Generator[Stage, None, PreparedData]:
    """Make, or find, everything that training into this folder needs."""
    cache = Cache.beside(folder)
    corpus = Corpus(recipe.data, recipe.seed, recipe.clean, recipe.task)
    digests = corpus.digests()
    name = f"text-{corpus.key(digests)}"
    _check_text(folder, name, digests, is_started=is_started)

    def write_text(aside: Path) -> None:
        corpus.write(aside)
        if corpus.digests() != digests:
            raise DataError("The training files changed while they were read. Run the same command again.")

    warnings = yield from _get_or_create(cache, name, "cleaning the text", write_text)
    texts = Texts.open(cache.folder / name)
    metadata = json.loads((cache.folder / name / COUNTS).read_text(encoding="utf-8"))
    counts = sum((Counter(count) for count in metadata["counts"]), Counter[str]())
    if not len(texts):
        raise DataError(f"There is nothing to train on: {_list_counts(counts)}.")
    atomic_write(folder / DATA, json.dumps({"text": name, "files": digests, "counts": metadata["counts"]}).encode())

    if recipe.init_from and not (folder / TOKENIZER).exists():
        atomic_write(folder / TOKENIZER, load(recipe.init_from).task.tokenizer.to_bytes())
    if not (folder / TOKENIZER).exists():
        yield Stage(f"learning {recipe.tokenizer.vocab_size:,} tokens from the text")
        lines = recipe.task_class.lines(texts)
        atomic_write(folder / TOKENIZER, Tokenizer.train(lines, recipe.tokenizer, recipe.seed).to_bytes())
    tokenizer = Tokenizer.from_file(folder / TOKENIZER)

    model = hashlib.sha256(tokenizer.to_bytes()).hexdigest()
    name = f"ids-{content_key([_FORMAT, name, model, recipe.model.max_length, to_table(recipe.task)])}"

    def write_ids(aside: Path) -> None:
        encode = partial(_encode, recipe, tokenizer)
        written = Encoded.write(aside, texts, encode, recipe.task_class.max_row_length(recipe.model, recipe.task))
        (aside / COUNTS).write_text(json.dumps({"counts": written}), encoding="utf-8")

    warnings += yield from _get_or_create(cache, name, "cutting the text into tokens", write_ids)
    del counts[KEPT]
    counts.update(json.loads((cache.folder / name / COUNTS).read_text(encoding="utf-8"))["counts"])
    encoded = Encoded.open(cache.folder / name, texts)
    if not len(encoded):
        raise DataError(f"There is nothing to train on: {_list_counts(counts)}.")
    return PreparedData(tokenizer, encoded, counts, encoded.find_rows(metadata["boundaries"]), warnings)


def _encode(recipe: Recipe, tokenizer: Tokenizer, rows: Sequence[Row]) -> Sequence[Sequence[Sequence[int]]]:
    return recipe.task_class.encode_rows(rows, tokenizer, recipe.task)


def delete_prepared_data(folder: Path) -> None:
    """Remove what a run's folder keeps of its data."""
    (folder / DATA).unlink(missing_ok=True)
    (folder / TOKENIZER).unlink(missing_ok=True)


def _check_text(folder: Path, name: str, digests: Mapping[str, str], *, is_started: bool) -> None:
    """Refuse text that changed under a run that is begun; before that, forget what was made of the old."""
    known = _known_text(folder / DATA)
    if known is not None and known["text"] == name:
        return
    if not is_started:
        delete_prepared_data(folder)
        return
    if known is None:
        raise DataError(
            f"{folder / DATA} is missing or damaged, so it is not known on which text this run began. "
            "Put it back, or train into another folder with -o."
        )
    changed = [file for file, digest in digests.items() if known["files"].get(file) != digest]
    if changed:
        raise DataError(f"{', '.join(changed)} changed since this run began. Train into another folder with -o.")
    raise DataError(
        f"{folder}: another version of manyheads cleaned the text of this run, and this one would not get the same. "
        "Go on with that version, or train into another folder with -o."
    )


def _known_text(path: Path) -> dict[str, Any] | None:
    """What the run's folder says of its text, if it can be read."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    is_whole = isinstance(known, dict) and isinstance(known.get("text"), str) and isinstance(known.get("files"), dict)
    return known if is_whole else None


def _get_or_create(
    cache: Cache, name: str, what: str, make: Callable[[Path], None]
) -> Generator[Stage, None, list[str]]:
    """Have an entry in the cache; the warning about a damaged one, if there was one."""
    warning = cache.problem(name)
    if warning is None:
        return []
    yield Stage(what)
    with cache.create(name) as aside:
        make(aside)
    return [warning] if warning else []


def _list_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in counts.items())
