"""What is asked of a bundle: `AnswerOptions`, the same on the command line and over HTTP, and `AnswerRequest`.

This module does not import torch: the process of the HTTP service, which does not either, makes requests, and worker
processes answer them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from manyheads.language import Language, current


@dataclass(frozen=True)
class AnswerOptions:
    """How texts are answered. All values are JSON values, lists are tuples."""

    decode: Mapping[str, Any] = field(default_factory=dict)  # changes of the bundle's decoding settings
    threshold: float | None = None  # of labels and spans
    align: bool = False
    format: str = "text"  # or "html"
    glossary: Mapping[str, str] = field(default_factory=dict)
    keep: Sequence[str] = ()
    prefix: str = ""

    @property
    def has_requirements(self) -> bool:
        """Whether translations must contain, repeat or begin with something."""
        return bool(self.glossary or self.keep or self.prefix)

    def table(self) -> dict[str, Any]:
        """Return the options as JSON values."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> "AnswerOptions":
        """Return the options that `table` gave, even after they were JSON."""
        decode = {name: tuple(value) if isinstance(value, list) else value for name, value in table["decode"].items()}
        return cls(**{**table, "decode": decode, "keep": tuple(table["keep"])})


DEFAULT_OPTIONS = AnswerOptions()


@dataclass(frozen=True)
class AnswerRequest:
    """Texts for one bundle, and how to answer them."""

    bundle: str  # its name
    texts: tuple[str, ...]
    options: AnswerOptions = DEFAULT_OPTIONS
    language: Language = field(default_factory=current)  # of errors

    @cached_property
    def key(self) -> str:
        """Everything but the texts, as JSON: texts with the same key can be answered in one batch."""
        table = {"bundle": self.bundle, "language": self.language, "options": self.options.table()}
        return json.dumps(table, ensure_ascii=False, sort_keys=True)

    @classmethod
    def from_key(cls, key: str, texts: Sequence[str]) -> "AnswerRequest":
        """Return the request with this key and these texts."""
        table = json.loads(key)
        return cls(table["bundle"], tuple(texts), AnswerOptions.from_table(table["options"]), table["language"])
