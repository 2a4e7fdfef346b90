"""`Work`: what a client asks of a bundle; `ServedBundle`: what a client may know about one."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class ServedBundle:
    """A bundle that is being served."""

    name: str
    task: str  # "seq2seq", "classify", "tag", "language" or "masked"
    version: str  # the first digits of the SHA-256 of its manifest
    created: int  # Unix time at which the manifest was written
    answer_form: str = "text"  # what an answer is: text, continuation, labels, spans or masks
    purpose: str = ""  # of a seq2seq bundle: "translation", "summary", …
    languages: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    n_parameters: int = 0
    max_tokens: int = 0  # that the model can read at once
    decode: Mapping[str, Any] = field(default_factory=dict)  # its decoding settings
    scores: Mapping[str, Any] = field(default_factory=dict)  # by test set
    examples: tuple[str, ...] = ()  # texts to try, if it was trained on the built-in corpus; never a user's own data


_BYTES = 3  # of UTF-8 in a token, about: a Chinese character, or most of a short English word
_CONSTRAINED = 4  # times as many hypotheses with a glossary or terms to keep


@dataclass(frozen=True)
class Work:
    """Texts for one bundle, and how to answer them."""

    bundle: str
    texts: tuple[str, ...]
    decode: Mapping[str, Any] = field(default_factory=dict)  # changes of its decoding settings
    align: bool = False
    threshold: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)  # of translations: glossary, keep, prefix, format

    @cached_property
    def how(self) -> str:
        """Everything but the texts, as JSON: texts with the same `how` can be answered in one batch."""
        table = {
            "bundle": self.bundle,
            "decode": self.decode,
            "align": self.align,
            "threshold": self.threshold,
            "options": self.options,
        }
        return json.dumps(table, ensure_ascii=False, sort_keys=True)

    def cost(self, text: str, bundle: ServedBundle) -> float:
        """About how many tokens the bundle reads and writes for a text, times the hypotheses of its search."""
        n_tokens = 1 + len(text.encode("utf-8", "surrogatepass")) / _BYTES
        decode = {**bundle.decode, **self.decode}
        if bundle.task == "language":
            n_tokens += _number(decode.get("max_new_tokens"))
        if bundle.task not in ("seq2seq", "language"):
            return n_tokens
        hypotheses = {"beam": "beam", "sample": "n_best"}.get(str(decode.get("method", "beam")), "")
        width = _number(decode.get(hypotheses))
        is_constrained = bool(self.options.get("glossary") or self.options.get("keep"))
        return n_tokens * width * (_CONSTRAINED if is_constrained else 1)


def _number(value: object) -> int:
    """A setting of a client, which a worker checks later."""
    return max(1, value) if isinstance(value, int) else 1
