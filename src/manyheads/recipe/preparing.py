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
from manyheads.data.cache import Cache, key_of
from manyheads.data.cleaning import KEPT
from manyheads.errors import DataError
from manyheads.recipe.corpus import FACTS, Corpus
from manyheads.recipe.events import Stage
from manyheads.recipe.settings import Recipe
from manyheads.settings import to_table
from manyheads.storage import write_whole
from manyheads.text.readers import Row
from manyheads.text.tokenizer import Tokenizer

DATA = "data.json"  # in the run's folder: which text the run is about
TOKENIZER = "tokenizer.model"
_FORMAT = 2  # of stored ids


@dataclass(frozen=True)
class Ingredients:
    """The data of a run, ready to train on."""

    tokenizer: Tokenizer
    encoded: Encoded
    counts: Mapping[str, int]  # "kept", and why other rows were not
    boundaries: Sequence[int]  # where each corpus of a mix begins among the rows, and where the last ends
    complaints: Sequence[str]  # what was wrong with the cache and had to be made anew


def prepare(recipe: Recipe, folder: Path, *, is_begun: bool) -> Generator[Stage, None, Ingredients]:
    """Make, or find, everything that training into this folder needs."""
    cache = Cache.beside(folder)
    corpus = Corpus(recipe.data, recipe.seed, recipe.clean, recipe.task)
    digests = corpus.digests()
    name = f"text-{corpus.key(digests)}"
    _check_text(folder, name, digests, is_begun=is_begun)

    def write_text(aside: Path) -> None:
        corpus.write(aside)
        if corpus.digests() != digests:
            raise DataError("The training files changed while they were read. Run the same command again.")

    complaints = yield from _find_or_make(cache, name, "cleaning the text", write_text)
    texts = Texts.open(cache.folder / name)
    facts = json.loads((cache.folder / name / FACTS).read_text(encoding="utf-8"))
    counts = sum((Counter(count) for count in facts["counts"]), Counter[str]())
    if not len(texts):
        raise DataError(f"There is nothing to train on: {_counted(counts)}.")
    write_whole(folder / DATA, json.dumps({"text": name, "files": digests, "counts": facts["counts"]}).encode())

    if recipe.init_from and not (folder / TOKENIZER).exists():
        write_whole(folder / TOKENIZER, load(recipe.init_from).task.tokenizer.to_bytes())
    if not (folder / TOKENIZER).exists():
        yield Stage(f"learning {recipe.tokenizer.vocabulary:,} pieces from the text")
        lines = recipe.kind.lines(texts)
        write_whole(folder / TOKENIZER, Tokenizer.learn(lines, recipe.tokenizer, recipe.seed).to_bytes())
    tokenizer = Tokenizer.from_file(folder / TOKENIZER)

    model = hashlib.sha256(tokenizer.to_bytes()).hexdigest()
    name = f"ids-{key_of([_FORMAT, name, model, recipe.model.max_length, to_table(recipe.task)])}"

    def write_ids(aside: Path) -> None:
        encode = partial(_encode, recipe, tokenizer)
        written = Encoded.write(aside, texts, encode, recipe.kind.longest(recipe.model, recipe.task))
        (aside / FACTS).write_text(json.dumps({"counts": written}), encoding="utf-8")

    complaints += yield from _find_or_make(cache, name, "cutting the text into pieces", write_ids)
    del counts[KEPT]
    counts.update(json.loads((cache.folder / name / FACTS).read_text(encoding="utf-8"))["counts"])
    encoded = Encoded.open(cache.folder / name, texts)
    if not len(encoded):
        raise DataError(f"There is nothing to train on: {_counted(counts)}.")
    return Ingredients(tokenizer, encoded, counts, encoded.places(facts["boundaries"]), complaints)


def _encode(recipe: Recipe, tokenizer: Tokenizer, rows: Sequence[Row]) -> Sequence[Sequence[Sequence[int]]]:
    return recipe.kind.encode_rows(rows, tokenizer, recipe.task)


def forget(folder: Path) -> None:
    """Remove what a run's folder keeps of its data."""
    (folder / DATA).unlink(missing_ok=True)
    (folder / TOKENIZER).unlink(missing_ok=True)


def _check_text(folder: Path, name: str, digests: Mapping[str, str], *, is_begun: bool) -> None:
    """Refuse text that changed under a run that is begun; before that, forget what was made of the old."""
    known = _known_text(folder / DATA)
    if known is not None and known["text"] == name:
        return
    if not is_begun:
        forget(folder)
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


def _find_or_make(
    cache: Cache, name: str, what: str, make: Callable[[Path], None]
) -> Generator[Stage, None, list[str]]:
    """Have an entry in the cache; the complaint about a damaged one, if there was one."""
    complaint = cache.complaint(name)
    if complaint is None:
        return []
    yield Stage(what)
    with cache.making(name) as aside:
        make(aside)
    return [complaint] if complaint else []


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in counts.items())
