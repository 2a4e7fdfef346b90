"""`ServedAnswerer`: what answers the texts of one bundle in a worker process, and what clients may know about it."""

import hashlib
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from manyheads.answer.answerer import Answerer
from manyheads.bundle import Bundle
from manyheads.errors import BundleError, RecipeError
from manyheads.run.recipe import Recipe
from manyheads.serve.private_data import load_served
from manyheads.serve.service.bundle_description import BundleDescription
from manyheads.settings import to_table
from manyheads.storage import MANIFEST

_N_EXAMPLES = 3
_MAX_EXAMPLE = 160  # characters


@dataclass(frozen=True)
class ServedAnswerer(Answerer):
    """An `Answerer` with the description of its bundle."""

    description: BundleDescription

    @classmethod
    def open(cls, name: str, path: Path, *, share_examples: bool = False) -> "ServedAnswerer":
        """Load a bundle; the version is that of the files that were loaded, even if they are replaced meanwhile."""
        version = _version(path)
        bundle = load_served(path, share_examples=share_examples)
        if _version(path) != version:
            bundle, version = load_served(path, share_examples=share_examples), _version(path)
        return cls(bundle, _describe(bundle, name, version, path))


def _describe(bundle: Bundle, name: str, version: str, path: Path) -> BundleDescription:
    task, settings, model = bundle.task, bundle.task.settings, bundle.task.model
    return BundleDescription(
        name=name,
        task=bundle.kind,
        answer_form=bundle.task.answer_form,
        version=version,
        created=int((path / MANIFEST).stat().st_mtime),
        purpose=getattr(settings, "purpose", ""),
        languages=tuple(language for language in task.languages(settings) if language),
        labels=tuple(getattr(task, "labels", ())),
        n_parameters=model.n_parameters,
        max_tokens=model.settings.max_length,
        decode=to_table(bundle.decode),
        scores={name: [asdict(score) for score in scores] for name, scores in bundle.scores.items()},
        examples=tuple(_examples(bundle, path)),
    )


def _examples(bundle: Bundle, path: Path) -> list[str]:
    """Texts to try, if the bundle was trained on the built-in corpus; a user's own data is not shown to clients."""
    if not bundle.recipe.get("data", {}).get("builtin"):
        return []
    try:
        task, languages = bundle.task, Recipe.from_table(bundle.recipe).data.languages
    except RecipeError as error:  # it names a corpus that this version does not have
        raise BundleError(f"{path}: {error}") from None
    rows = islice(task.builtin(task.settings, languages, "test", _N_EXAMPLES, 1), _N_EXAMPLES)
    texts = [row[0][:_MAX_EXAMPLE].partition("\n")[0].strip() for row in rows]
    return [task.lens_examples.suggestion(task, text) for text in texts if text]


def _version(path: Path) -> str:
    try:
        return hashlib.sha256((path / MANIFEST).read_bytes()).hexdigest()[:12]
    except OSError:
        return ""  # `load` says what is wrong
