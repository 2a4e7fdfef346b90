"""`Access`: API keys and rate limits."""

import hmac
import os
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from manyheads.errors import ServeError
from manyheads.messages import _
from manyheads.serve.service.problems import ProblemError

KEYS_VARIABLE = "MANYHEADS_API_KEYS"
_MIN_LENGTH = 16  # characters of a key
_MAX_CLIENTS = 10_000  # whose rate is remembered
_COST_OF_ONE = 4000  # that a request counts as one with: 1,000 tokens with a beam of 4

current_client: ContextVar[str] = ContextVar("current_client", default="")  # whose request is being answered


def read_keys(path: Path | None, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the names of the API keys by key: from a file, or from MANYHEADS_API_KEYS, or none.

    A file has a key on each line, with a name before it (`reporting: 4f…`) or without, and neither has a
    colon in it. A # at the beginning of a line or after a space begins a comment. In the variable, commas take the
    place of line breaks.
    """
    if path is None:
        return _parse(environment.get(KEYS_VARIABLE, "").split(","), KEYS_VARIABLE)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else _("it is not UTF-8")
        raise ServeError(_("The keys in {path} cannot be read: {reason}.", path=path, reason=reason)) from None
    keys = _parse(lines, str(path))
    if not keys:
        example = f"reporting: {'x' * 32}"
        raise ServeError(
            _("{path} has no API key. Write one on each line, such as: {example}", path=path, example=example)
        )
    return keys


def _parse(lines: list[str], where: str) -> dict[str, str]:
    keys: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        content = re.split(r"(?:^|\s)#", line, maxsplit=1)[0].strip()
        if not content:
            continue
        name, separator, key = content.partition(":")
        is_name_a_key = len(name) >= _MIN_LENGTH and key[:1].strip() != ""  # a key with a colon looks like name:key
        name, key = (name.strip(), key.strip()) if separator else (f"key{number}", content)
        if ":" in key or "#" in key or is_name_a_key:  # a part of it would be taken for the whole key
            raise ServeError(
                _(
                    "{where}, line {number}: a key has no : or #. Write a name as name: key, and a comment as # "
                    "with a space before it.",
                    where=where,
                    number=number,
                )
            )
        if len(key) < _MIN_LENGTH or not key.isascii() or not key.isprintable() or " " in key:
            raise ServeError(
                _(
                    "{where}, line {number}: a key must have at least {min_length} printable ASCII characters. "
                    "Make one with: python3 -c 'import secrets; print(secrets.token_urlsafe(32))'",
                    where=where,
                    number=number,
                    min_length=_MIN_LENGTH,
                )
            )
        keys[key] = name
    return keys


@dataclass
class _Bucket:
    """A token bucket: it holds `capacity` requests and fills up at the allowed rate. A large one leaves a debt."""

    level: float
    updated: float


class Access:
    """Who may use the service, and how often."""

    def __init__(
        self, keys: Mapping[str, str], rate: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._keys = [(key.encode(), name) for key, name in keys.items()]
        self.rate, self._clock = rate, clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    @property
    def needs_key(self) -> bool:
        """Whether requests need a key."""
        return bool(self._keys)

    def name_of(self, key: str | None) -> str:
        """Return the name of a key; every key is compared in constant time. Without keys, everybody may."""
        if not self._keys:
            return ""
        name = self.find(key)
        if name is None:
            if key:
                text = _("This API key is not valid. Send it as: Authorization: Bearer KEY")
            else:
                text = _("This server needs an API key. Send it as: Authorization: Bearer KEY")
            raise ProblemError(401, text, {"WWW-Authenticate": "Bearer"})
        return name

    def find(self, key: str | None) -> str | None:
        """Return the name of a key; None if it is not valid."""
        given = (key or "").encode("utf-8", "replace")
        found = [name for known, name in self._keys if hmac.compare_digest(known, given)]
        return found[0] if found else None

    def count(self, client: str) -> None:
        """Count a request of a client; raise a ProblemError with status 429 if there were too many."""
        if self.rate is None:
            return
        now, capacity = self._clock(), max(1.0, self.rate)  # a minute's worth may come at once
        bucket = self._buckets.pop(client, None) or _Bucket(capacity, now)
        bucket.level = min(capacity, bucket.level + (now - bucket.updated) * self.rate / 60)
        bucket.updated = now
        self._buckets[client] = bucket
        if len(self._buckets) > _MAX_CLIENTS:
            self._buckets.popitem(last=False)
        if bucket.level < 1:
            wait = max(1, round((1 - bucket.level) * 60 / self.rate))
            raise ProblemError(
                429,
                _(
                    "Too many requests: {rate:g} a minute are allowed. Try again in {wait} s.",
                    rate=self.rate,
                    wait=wait,
                ),
                {"Retry-After": str(wait)},
            )
        bucket.level -= 1

    def charge(self, client: str, cost: float) -> None:
        """Count a request that has been counted once as more if its cost is higher; it is paid for afterwards."""
        if client in self._buckets:
            self._buckets[client].level -= max(0.0, cost / _COST_OF_ONE - 1)
