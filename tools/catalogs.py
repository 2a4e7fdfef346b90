"""The message catalogs: `update` collects the messages of the source, `compile` writes the .mo files.

    .venv/bin/python tools/catalogs.py update      after a message was added or changed; new ones have an empty msgstr
    .venv/bin/python tools/catalogs.py compile     what `make` and the build of a wheel do

Needs Babel. A new language is one file: src/manyheads/locale/LANGUAGE/LC_MESSAGES/manyheads.po with a header.
"""

import json
import sys
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

SOURCE = Path(__file__).parents[1] / "src" / "manyheads"
KEYWORDS: dict[str, tuple[int, ...] | None] = {"_": None, "_n": (1, 2), "Message": None, "PluralMessage": (1, 2)}
METHODS = [("**.py", "python"), ("**.j2", "jinja2.ext:babel_extract")]


def catalogs() -> list[Path]:
    """The catalogs in the source."""
    return sorted(SOURCE.glob("locale/*/LC_MESSAGES/manyheads.po"))


def compile_all() -> None:
    """Write manyheads.mo beside each manyheads.po."""
    for path in catalogs():
        with path.open("rb") as file:
            catalog = read_po(file)
        with path.with_suffix(".mo").open("wb") as file:
            write_mo(file, catalog)


def collect() -> Catalog:
    """The messages of the source and of the pages, and the messages of click that a user can see."""
    found = Catalog(fuzzy=False)
    for folder, keywords in ((SOURCE, KEYWORDS), (_click(), {"_": None, "gettext": None, "ngettext": (1, 2)})):
        for name, line, message, comments, context in extract_from_dir(folder, METHODS, keywords=keywords):
            if folder == SOURCE:
                found.add(message, locations=[(name, line)], auto_comments=comments, context=context)
            else:
                found.add(message, context=context, auto_comments=["click"])
    for path in sorted(SOURCE.glob("serve/static/*/*_messages.json")):
        for line, text in enumerate(json.loads(path.read_text("utf-8")).values(), start=2):
            message, context = (text["text"], text["context"]) if isinstance(text, dict) else (text, None)
            found.add(message, locations=[(str(path.relative_to(SOURCE)), line)], context=context)
    return found


def update() -> None:
    """Bring every catalog up to date; messages that are gone are removed."""
    template = collect()
    for path in catalogs():
        with path.open("rb") as file:
            catalog = read_po(file)
        created = catalog.creation_date  # kept: a new date would be the one line in which all branches differ
        catalog.update(template, no_fuzzy_matching=True)
        catalog.creation_date = created
        catalog.obsolete.clear()
        with path.open("wb") as file:
            write_po(file, catalog, omit_header=False, no_location=True, sort_output=True, width=120)


def _click() -> Path:
    import click

    return Path(click.__file__).parent


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["update"]:
            update()
            compile_all()
        case ["compile"]:
            compile_all()
        case _:
            sys.exit(__doc__)
