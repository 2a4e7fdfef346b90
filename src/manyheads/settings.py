"""Strict settings: frozen dataclasses read from TOML tables and written back.

A settings class is a frozen dataclass beside the code it configures; its `__post_init__` checks values and calls
`raise_faults`. `build` turns nested tables into such classes: an unknown key fails with a suggestion, a wrong type with
the allowed one, and all faults of a file are reported together. The range of a number is part of its annotation, as in
`beam: Annotated[int, Range(1, 256)]`, and is checked together with the type.
"""

import dataclasses
import difflib
import itertools
import json
import math
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import tomlkit

from manyheads.bounded_files import BoundsError, EncodingError, InvalidSyntaxError, parse_toml, read_bounded
from manyheads.errors import RecipeError
from manyheads.messages import Message, _

T = TypeVar("T")

_MAX_FAULTS = 10  # listed in one error
_MAX_SHOWN = 80  # characters of a value or a key in an error
_TYPE_NAMES = {
    int: Message("a whole number"),
    float: Message("a number"),
    bool: Message("true or false"),
    str: Message("text in quotes"),
}


@dataclass(frozen=True)
class Range:
    """The values that a number may have, as part of its annotation; `hint` completes the error for another value.

    A bound that is None does not apply. NaN is in no range.
    """

    at_least: float | None = None
    at_most: float | None = None
    greater_than: float | None = None
    less_than: float | None = None
    is_finite: bool = True
    hint: Message | str = ""

    def __contains__(self, value: float) -> bool:
        return (
            not (isinstance(value, float) and (math.isnan(value) or (self.is_finite and math.isinf(value))))
            and (self.at_least is None or value >= self.at_least)
            and (self.at_most is None or value <= self.at_most)
            and (self.greater_than is None or value > self.greater_than)
            and (self.less_than is None or value < self.less_than)
        )

    def __str__(self) -> str:
        """What a value must be, such as "at least 1 and at most 256"."""
        parts = []
        if self.at_least is not None:
            parts.append(_("at least {bound:,}", bound=self.at_least))
        if self.greater_than is not None:
            parts.append(_("greater than {bound:,}", bound=self.greater_than))
        if self.at_most is not None:
            parts.append(_("at most {bound:,}", bound=self.at_most))
        if self.less_than is not None:
            parts.append(_("less than {bound:,}", bound=self.less_than))
        if len(parts) < 2 and self.is_finite:
            parts.append(_("finite"))
        return _("{lower} and {upper}", lower=parts[0], upper=parts[1]) if len(parts) > 1 else "".join(parts)


Count = Annotated[int, Range(1, 1_000_000_000)]  # of something that there is at least one of
Rate = Annotated[float, Range(0, less_than=1)]  # of dropout and the like: a fraction that leaves something
Seed = Annotated[int, Range(0, 2**31 - 1)]


def raise_faults(faults: Iterable[str]) -> None:
    """Raise one RecipeError that lists all faults, if there are any; of very many, the first ones."""
    all_faults = tuple(faults)
    if len(all_faults) > _MAX_FAULTS:
        all_faults = (*all_faults[:_MAX_FAULTS], _("… and more."))
    if all_faults:
        raise RecipeError(*all_faults)


def few(items: Iterable[T], faults: Sequence[str]) -> Iterator[T]:
    """Yield items to check until there are more faults than an error lists: a hostile file may have millions."""
    return itertools.takewhile(lambda _item: len(faults) <= _MAX_FAULTS, items)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a hint to append to an error: the closest known word, or all of them if none is close."""
    choices = sorted(known)
    close = difflib.get_close_matches(word, choices, n=1, cutoff=0.6)
    if close:
        return _("Did you mean {name}?", name=close[0])
    return _("Known: {names}.", names=", ".join(choices))


def build(kind: type[T], table: Mapping[str, object], section: str = "", types: Mapping[str, type] | None = None) -> T:
    """Build settings of class `kind` from a TOML table; `section` prefixes the names in error messages.

    `types` replaces the annotated types of fields, for settings that are registered by name.
    """
    faults: list[str] = []
    settings = _build(kind, table, section, faults, types)
    raise_faults(faults)
    assert settings is not None  # it is None only if there are faults
    return settings


def _build(
    kind: type[T],
    table: Mapping[str, object],
    section: str,
    faults: list[str],
    types: Mapping[str, type] | None = None,
) -> T | None:
    n_faults_before = len(faults)
    hints = _type_hints(kind) | dict(types or {})  # type: ignore[arg-type]  # mypy: a type is not Hashable
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    values: dict[str, object] = {}
    hint = ""
    for key, value in few(table.items(), faults):
        if key not in fields:
            previous, hint = hint, did_you_mean(key, fields)  # a list of all settings is not repeated
            fault = _("{name} is not a setting.", name=f"{section}{_quote_key(key)}")
            faults.append(fault if hint == previous else _("{fault} {hint}", fault=fault, hint=hint))
        elif types is None and _is_plainly_right(kind, key, value):
            values[key] = value
        else:
            values[key] = _convert(hints[key], value, f"{section}{key}", faults)
    for name, field in fields.items():
        if name not in values and name not in table and _is_required(field):
            faults.append(_("{name} is missing.", name=f"{section}{name}"))
    if len(faults) > n_faults_before:
        return None
    try:
        return kind(**values)
    except RecipeError as error:
        faults.extend(error.faults)
        return None


def type_faults(settings: Any, section: str = "") -> list[str]:
    """Return a fault for each value that does not match its annotation, which Python does not check."""
    faults: list[str] = []
    hints = _type_hints(type(settings))  # type: ignore[arg-type]
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if not _is_plainly_right(type(settings), field.name, value):
            _convert(hints[field.name], value, f"{section}{field.name}", faults)
    return faults


def _is_plainly_right(kind: type, name: str, value: object) -> bool:
    """Whether `_convert` would return a value as it is; False if it has to look. Decoding builds settings often."""
    types, allowed = _plain_types(kind)[name]
    return type(value) in types and (allowed is None or value is None or value in allowed)  # type: ignore[operator]


@cache
def _plain_types(kind: type) -> dict[str, tuple[tuple[type, ...], Range | None]]:
    """For each field the exact types whose values need no conversion, and the range of a number."""
    return {name: _plain_type(hint) for name, hint in _type_hints(kind).items()}


def _plain_type(hint: Any) -> tuple[tuple[type, ...], Range | None]:
    if get_origin(hint) is Annotated:
        inner, allowed = get_args(hint)
        return _plain_type(inner)[0], allowed
    if get_origin(hint) in (Union, types.UnionType):
        options = [option for option in get_args(hint) if option is not types.NoneType]
        if len(options) == 1 and len(get_args(hint)) == 2:
            plain, allowed = _plain_type(options[0])
            return (*plain, types.NoneType), allowed
        return (), None
    return ((hint,), None) if hint in (int, float, str, bool) else ((), None)


@cache
def _type_hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind, include_extras=True)


def _is_required(field: "dataclasses.Field[Any]") -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _convert(kind: Any, value: object, name: str, faults: list[str]) -> object:
    """Convert a value to the type of its field; append a fault if that is not possible."""
    origin = get_origin(kind)
    if origin is Annotated:
        return _convert_number(kind, value, name, faults)
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        options = [option for option in get_args(kind) if option is not types.NoneType]
        return _convert(options[0] if len(options) == 1 else _select_class(options, value), value, name, faults)
    if origin is Literal:
        if isinstance(value, str | int) and value in get_args(kind):
            return value
        allowed = ", ".join(toml_value(option) for option in get_args(kind))
        faults.append(_("{name} = {value} is not one of {allowed}.", name=name, value=shown(value), allowed=allowed))
    elif origin is Mapping:
        if isinstance(value, Mapping):
            kind = get_args(kind)[1]
            items = value.items()
            return {key: _convert(kind, item, f"{name}.{_quote_key(key)}", faults) for key, item in few(items, faults)}
        faults.append(_("{name} = {value} should be a table: write [{name}].", name=name, value=shown(value)))
    elif origin is tuple:
        if isinstance(value, list | tuple):
            return tuple(_convert(get_args(kind)[0], item, name, faults) for item in few(value, faults))
        faults.append(_("{name} = {value} should be a list.", name=name, value=shown(value)))
    elif isinstance(kind, type) and dataclasses.is_dataclass(kind):
        if isinstance(value, Mapping):
            return _build(kind, value, f"{name}.", faults)
        if isinstance(value, kind):
            return value
        faults.append(_("{name} = {value} should be a table: write [{name}].", name=name, value=shown(value)))
    elif kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value) if abs(value) < 2**63 else math.inf if value > 0 else -math.inf
    elif isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    else:
        faults.append(
            _("{name} = {value} should be {expected}.", name=name, value=shown(value), expected=_TYPE_NAMES[kind])
        )
    return None


def _convert_number(kind: Any, value: object, name: str, faults: list[str]) -> object:
    """Convert a number whose annotation has a range; append a fault if it is of another type or out of range."""
    inner, allowed = get_args(kind)
    n_faults_before = len(faults)
    number = _convert(inner, value, name, faults)
    if len(faults) == n_faults_before and number not in allowed:
        fault = _("{name} = {value} must be {allowed}.", name=name, value=shown(number), allowed=allowed)
        faults.append(_("{fault} {hint}", fault=fault, hint=allowed.hint) if allowed.hint else fault)
    return number


def _select_class(options: Sequence[type], value: object) -> type:
    """Return the class that the table's `kind` names; without a known kind the first, which then reports the fault."""
    for option in options:
        if isinstance(value, option):
            return option
        if isinstance(value, Mapping) and value.get("kind") == _kind_of(option):
            return option
    return options[0]


def _kind_of(option: type) -> object:
    return next((field.default for field in dataclasses.fields(option) if field.name == "kind"), None)


def shown(value: object) -> str:
    """Return a value in TOML syntax for an error; a long one is shortened."""
    try:
        return _shorten(toml_value(value))
    except (ValueError, RecursionError):  # Python does not print more than 4,300 digits
        return _("({type} too large to print)", type=type(value).__name__)


def _shorten(text: str) -> str:
    """Return a text with its middle left out if it is too long for an error."""
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 20]} … {text[-17:]}"


def toml_value(value: object) -> str:
    """Return a value in TOML syntax on one line."""
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_quote_key(key)} = {toml_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, float):
        return repr(float(value))  # JSON has no inf or nan
    # TOML writes basic strings, integers and booleans as JSON does, except for one character.
    return json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")


def _quote_key(key: str) -> str:
    return _shorten(tomlkit.key(key).as_string())


def to_table(settings: Any) -> dict[str, Any]:
    """Return settings as nested tables of plain values, without those that are None: TOML has no null."""
    table: dict[str, Any] = {}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            table[field.name] = to_table(value)
        elif isinstance(value, tuple):
            table[field.name] = [to_table(item) if dataclasses.is_dataclass(item) else item for item in value]
        elif isinstance(value, Mapping):
            table |= {field.name: {key: list(item) for key, item in value.items()}} if value else {}
        elif value is not None:
            table[field.name] = value
    return table


def to_toml(table: Mapping[str, Any]) -> str:
    """Return nested tables as TOML text."""
    return tomlkit.dumps(table)


def read_toml(path: Path) -> dict[str, Any]:
    """Read the tables of a TOML file; raise a RecipeError if it is missing, invalid or too large."""
    try:
        return parse_toml(read_bounded(path))
    except FileNotFoundError:
        raise RecipeError(_("{path}: there is no such file.", path=path)) from None
    except IsADirectoryError:
        raise RecipeError(_("{path} is a folder; a recipe is a TOML file.", path=path)) from None
    except OSError as error:
        raise RecipeError(_("{path} cannot be read ({reason}).", path=path, reason=error.strerror)) from None
    except BoundsError as error:
        fault = _("{path}: {reason}.", path=path, reason=error)
        if isinstance(error, EncodingError):
            fault = _("{fault} Save the file as UTF-8.", fault=fault)
        raise RecipeError(fault) from None


def override(table: Mapping[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """Return a copy of `table` with `section.key=value` assignments from the command line applied."""
    result = _copy(table)
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        *sections, key = parts = name.strip().split(".")
        if not equals or not all(parts):
            raise RecipeError(
                _(
                    "{assignment} is not an override. Write key=value, for example train.steps=500.",
                    assignment=_shorten(repr(assignment)),
                )
            )
        inner = result
        for section in sections:
            inner = inner.setdefault(section, {})
            if not isinstance(inner, dict):
                raise RecipeError(
                    _(
                        "{assignment}: {section} is a value, not a section.",
                        assignment=_shorten(repr(assignment)),
                        section=_quote_key(section),
                    )
                )
        inner[key] = _parse(text.strip(), name.strip())
    return result


def _copy(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _copy(value) if isinstance(value, Mapping) else value for key, value in table.items()}


def _parse(text: str, name: str) -> object:
    """Parse a TOML value; a bare word is a string, because a shell removes quotes."""
    try:
        table = parse_toml(f"value = {text}".encode(errors="surrogateescape"))
    except InvalidSyntaxError:
        return text
    except BoundsError as error:
        raise RecipeError(
            _("{name} = {value}: {reason}.", name=_shorten(name), value=_shorten(text), reason=error)
        ) from None
    return table["value"] if len(table) == 1 else text  # a string of several lines may parse as several settings
