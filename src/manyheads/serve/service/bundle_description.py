"""`BundleDescription`: what a client may know about a bundle that is served."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class BundleDescription:
    """A bundle that is being served."""

    name: str
    task: str  # its name in a recipe
    version: str  # the first digits of the SHA-256 of its manifest
    created: int  # Unix time at which the manifest was written
    answer_form: str = "text"  # what an answer is: text, continuation, labels, spans, masks or vector
    purpose: str = ""  # of a seq2seq bundle: "translation", "summary", …
    languages: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    n_parameters: int = 0
    max_tokens: int = 0  # that the model can read at once
    decode: Mapping[str, Any] = field(default_factory=dict)  # its decoding settings
    scores: Mapping[str, Any] = field(default_factory=dict)  # by test set
    examples: tuple[str, ...] = ()  # texts to try, if it was trained on the built-in corpus; never a user's own data

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> "BundleDescription":
        """Return the description that a worker sent as JSON."""
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in table.items()
        }
        return cls(**fields)
