"""TOML and JSON files of unknown origin, read with limits on their size, nesting, numbers and text.

A recipe may come from a colleague and a bundle from the internet. Within these limits no file takes long to read, fills
the memory, or exceeds the recursion of the code that uses it.
"""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyheads.errors import ManyheadsError
from manyheads.messages import Message, _

MAX_BYTES = 8_000_000  # a recipe that lists 100,000 files; tomllib reads one to several megabytes per second
_MAX_DEPTH = 32
_MAX_INTEGER = 2**63 - 1
_MAX_NAME = 80  # characters of a key in a message
_TOO_DEEP = Message("it is nested more than {most} levels deep", most=_MAX_DEPTH)
_TOO_MANY_DIGITS = Message("it contains an integer of more than 4,300 digits")
# tomllib takes quadratic time for a key of many parts.
_WORD = r"""(?:(?<![\w-])[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"{_WORD}(?:[ \t]*+\.[ \t]*+{_WORD}){{{_MAX_DEPTH}}}")


class BoundsError(ValueError):
    """Content that is not valid or exceeds a limit; the message does not name the file."""


class InvalidSyntaxError(BoundsError):
    """Content that is not TOML or not JSON."""


class EncodingError(BoundsError):
    """Content that is not UTF-8."""


def read_bounded(path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """Return the content of a file; raise BoundsError if it is larger than `max_bytes` and OSError if it is unreadable.

    No more than `max_bytes` are read, so that an endless file such as /dev/zero is refused at once.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(max_bytes + 1)
    except ValueError:  # Path.open raises it for NUL
        raise BoundsError(_("the path contains a NUL character")) from None
    if len(content) > max_bytes:
        raise BoundsError(_("the file has more than {max_bytes:,} bytes", max_bytes=max_bytes))
    return content


def parse_toml(content: bytes) -> dict[str, Any]:
    """Parse a TOML file; raise BoundsError with the reason if it is invalid or exceeds a limit."""
    text = _decode(content)
    if _LONG_KEY.search(text):
        raise BoundsError(str(_TOO_DEEP))
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidSyntaxError(_("not valid TOML: {reason}", reason=error)) from None
    except RecursionError:
        raise BoundsError(str(_TOO_DEEP)) from None
    except ValueError:  # Python does not convert more than 4,300 digits
        raise BoundsError(str(_TOO_MANY_DIGITS)) from None
    _check_values(table)
    return table


def parse_json(content: bytes | str) -> Any:
    """Parse JSON; raise BoundsError with the reason if it is invalid or exceeds a limit.

    A key that occurs twice in an object is refused: readers disagree on which of the two counts.
    """
    text = content if isinstance(content, str) else _decode(content)
    try:
        value = json.loads(text, object_pairs_hook=_make_object)
    except RecursionError:
        raise BoundsError(str(_TOO_DEEP)) from None
    except json.JSONDecodeError as error:
        raise InvalidSyntaxError(_("not valid JSON: {reason}", reason=error)) from None
    except BoundsError:
        raise
    except ValueError:
        raise BoundsError(str(_TOO_MANY_DIGITS)) from None
    _check_values(value)
    return value


def read_json_object(path: Path, error: type[ManyheadsError], max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Return the JSON object in a file of a bundle or a run; raise `error`, naming the file, if there is none."""
    try:
        if not path.is_file():  # a FIFO would block
            raise error(_("{path} is missing or is not a file.", path=path))
        value = parse_json(read_bounded(path, max_bytes))
    except OSError as reason:
        raise error(_("{path} cannot be read ({reason}).", path=path, reason=reason.strerror)) from None
    except BoundsError as reason:
        raise error(_("{path}: {reason}.", path=path, reason=reason)) from None
    if not isinstance(value, dict):
        raise error(_("{path}: expected a JSON object, not a {type}.", path=path, type=type(value).__name__))
    return value


def _decode(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")  # some Windows editors write a byte order mark
    except UnicodeDecodeError as error:
        raise EncodingError(_("byte {number} is not UTF-8", number=error.start)) from None


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        twice, _count = Counter(name for name, _value in pairs).most_common(1)[0]
        raise BoundsError(_("the key {key} occurs twice", key=json.dumps(twice[:_MAX_NAME])))
    return table


def _check_values(value: Any) -> None:
    """Raise BoundsError for too deep nesting, a huge integer or text that is not Unicode. It does not recurse."""
    level: list[tuple[str, Any]] = [("", value)]
    for _depth in range(_MAX_DEPTH + 1):
        inner: list[tuple[str, Any]] = []
        for name, item in level:
            if isinstance(item, Mapping):
                inner += [(_join(name, key), element) for key, element in item.items()]
                inner += [(name, key) for key in item]
            elif isinstance(item, list):
                inner += [(name, element) for element in item]
            elif isinstance(item, int) and abs(item) > _MAX_INTEGER:
                raise BoundsError(_("{name} is an integer of more than 64 bits", name=name or _("a value")))
            elif isinstance(item, str) and not item.isascii() and any("\ud800" <= c <= "\udfff" for c in item):
                raise BoundsError(
                    _("{name} contains half of a surrogate pair, which is not a character", name=name or _("a value"))
                )
        level = inner
    if level:
        raise BoundsError(str(_TOO_DEEP))


def _join(name: str, key: str) -> str:
    """The name of a nested value, such as model.width, for messages."""
    key = key if key.isidentifier() else json.dumps(key)
    return f"{name}.{key}"[-_MAX_NAME:] if name else key[:_MAX_NAME]
