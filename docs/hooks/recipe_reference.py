"""The recipe reference: every key of every section, with its values, default and meaning, from the dataclasses.

A field's meaning is the comment beside it, or above it, in the source.
"""

import ast
import dataclasses
import inspect
import io
import tokenize
import types
import typing
from collections.abc import Collection
from typing import Annotated, Any, Literal, get_args, get_origin

from manyheads.model import PRESETS
from manyheads.run import Recipe
from manyheads.settings import toml_value
from manyheads.tasks import TASKS

_TYPES = {int: "whole number", float: "number", bool: "true or false", str: "text"}


def recipe_keys() -> str:
    """Return the tables of all keys."""
    lines: list[str] = []
    hints = typing.get_type_hints(Recipe)
    top = [field for field in dataclasses.fields(Recipe) if not _sections(hints[field.name], field.name)]
    lines += _table("Top level", Recipe, [field.name for field in top])
    for field in dataclasses.fields(Recipe):
        for title, name, kind in _sections(hints[field.name], field.name):
            lines += _table(title, kind, [one.name for one in dataclasses.fields(kind)])
            if name == "model":
                lines += _presets()
    return "\n".join(lines) + "\n"


def described(kind: type) -> dict[str, str]:
    """Return the meaning of each field of a settings class."""
    source = inspect.getsource(kind)
    tree = ast.parse(source).body[0]
    assert isinstance(tree, ast.ClassDef)
    comments: dict[int, str] = {}
    own_line: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            comments[token.start[0]] = token.string.lstrip("# ").strip()
            if not token.line[: token.start[1]].strip():
                own_line.add(token.start[0])
    found = {}
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.end_lineno is not None:
            texts = [comments[n] for n in range(node.lineno, node.end_lineno + 1) if n in comments]
            above = node.lineno - 1
            while not texts and above in own_line:
                texts.insert(0, comments[above])
                above -= 1
            found[node.target.id] = " ".join(texts)
    for base in kind.__mro__[1:]:
        if dataclasses.is_dataclass(base):
            found = described(base) | found
    return found


def settings_classes() -> list[type]:
    """Return every settings class that a recipe is made of."""
    hints = typing.get_type_hints(Recipe)
    return [Recipe, *(kind for name in hints for _, _, kind in _sections(hints[name], name))]


def _sections(hint: Any, name: str) -> list[tuple[str, str, type]]:
    """Return (title, section, class) of each settings class that a field of the recipe may hold."""
    if name == "task":
        return [(f'[task], kind = "{kind}"', "task", task.settings_type) for kind, task in TASKS.items()]
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        inner = typing.get_type_hints(hint)
        found = [(f"[{name}]", name, hint)]
        for field in dataclasses.fields(hint):
            for option in get_args(inner[field.name]):
                if dataclasses.is_dataclass(option) and isinstance(option, type):
                    found.append((f"[[{name}.{field.name}]]", f"{name}.{field.name}", option))
        return found
    return []


def _table(title: str, kind: type, names: list[str]) -> list[str]:
    hints, meanings = typing.get_type_hints(kind, include_extras=True), described(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    lines = ["", f"## {title}", "", (inspect.getdoc(kind) or "").replace("\n", " "), ""]
    lines += ["| key | values | default | meaning |", "| --- | --- | --- | --- |"]
    for name in names:
        cells = (
            f"`{name}`",
            _values(hints[name], fields[name].metadata.get("choices")),
            _default(fields[name]),
            meanings.get(name, ""),
        )
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return lines


def _values(hint: Any, choices: Collection[str] | None = None) -> str:
    if choices is not None:
        return ", ".join(f"`{toml_value(choice)}`" for choice in choices)
    origin = get_origin(hint)
    if origin is Annotated:
        inner, allowed = get_args(hint)
        return f"{_values(inner)}, {allowed}"
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_values(option) for option in get_args(hint) if option is not types.NoneType)
    if origin is Literal:
        return ", ".join(f"`{toml_value(option)}`" for option in get_args(hint))
    if origin is tuple:
        return f"list of {_values(get_args(hint)[0])}"
    if dataclasses.is_dataclass(hint):
        return "table"
    return _TYPES.get(hint, "table")


def _default(field: "dataclasses.Field[Any]") -> str:
    value = field.default
    if value is dataclasses.MISSING:
        if field.default_factory is dataclasses.MISSING:
            return "*required*"
        value = field.default_factory()
    if value is None:
        return "not set"
    return "" if value == {} else f"`{toml_value(value)}`"


def _presets() -> list[str]:
    keys = sorted({key for preset in PRESETS.values() for key in preset})
    lines = ["", "### Presets", "", '`preset = "tiny"` sets these keys; any of them can be changed beside it.', ""]
    lines += ["| preset | " + " | ".join(f"`{key}`" for key in keys) + " |", "| --- |" + " --- |" * len(keys)]
    lines += [
        f"| `{name}` | " + " | ".join(str(preset.get(key, "")) for key in keys) + " |"
        for name, preset in PRESETS.items()
    ]
    return lines
