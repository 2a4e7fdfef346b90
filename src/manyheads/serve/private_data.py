"""`load_served`: a bundle as a server loads it. This module alone decides which data a server may read and show.

A recipe names the files of the training, validation and test rows, which are the owner's own. Unless the owner shares
them (`manyheads serve --share-examples`), a served bundle forgets these names while it is loaded: nothing that is asked
of it later can read the files, whatever the recipe names. The built-in corpus is nobody's own and stays.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from manyheads.bundle import Bundle, load


def load_served(path: Path, *, share_examples: bool = False, engine: str = "auto") -> Bundle:
    """Load a bundle; unless its examples are shared, it reads nothing outside its folder afterwards."""
    bundle = load(path, engine=engine)
    return bundle if share_examples else replace(bundle, recipe=without_files(bundle.recipe))


def without_files(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a recipe that describes rows of the built-in corpus; nothing if it uses files.

    It lists what is kept, so that a setting of a later version that names a file is not.
    """
    data = recipe.get("data")
    builtin = data.get("builtin") if isinstance(data, Mapping) else None
    if not builtin:
        return {}
    return {"data": {"builtin": builtin}} | {name: recipe[name] for name in ("task", "seed") if name in recipe}


def without_path(error: Exception, path: Path, name: str) -> str:
    """Return the message of an error that occurred while a bundle was loaded; it has the bundle's name for its path."""
    return (str(error) or type(error).__name__).replace(str(path), name)
