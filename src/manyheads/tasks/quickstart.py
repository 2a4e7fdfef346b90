"""`Quickstart`: a task's part of `manyheads quickstart`: its recipe, its demo and the commands to try next."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from manyheads.messages import Message

Predict = Callable[[Sequence[str]], Sequence[Any]]  # texts → predictions


@dataclass(frozen=True)
class Demo:
    """Answers of a freshly trained model, to read."""

    title: Message
    lines: Sequence[tuple[str, str]]  # text to emphasize, rest of the line


@dataclass(frozen=True, kw_only=True)
class Quickstart:
    """How to train and try a small model of a task on the built-in corpus in about two minutes on two cores."""

    name: str  # value of --task
    title: Message
    recipe: Mapping[str, Any]  # tables that differ from the common ones
    steps: int
    examples: Mapping[str, Sequence[str]]  # by language: texts within the model's vocabulary; the first is to be tried
    own_data: Message  # arguments of `manyheads init` for the reader's own data
    n_languages: int = 1  # 2: the corpus has a direction, such as en-zh
    takes_prompt: bool = False  # the model continues a prompt instead of reading lines
    demo: Callable[[Predict, str], Demo] | None = None  # by the predictions of the model and its language

    @property
    def default_corpus(self) -> str:
        """The built-in corpus that is used unless another is chosen."""
        return "en" if self.n_languages == 1 else "en-zh"

    def make_recipe(self, corpus: str, steps: int | None = None) -> dict[str, Any]:
        """Return the tables of the recipe for a built-in corpus, such as "zh" or "de-en"."""
        table = deepcopy(dict(self.recipe))
        table["data"] = {"builtin_rows": 30_000, **table.get("data", {}), "builtin": corpus}
        if corpus == "zh":
            # Chinese is written without spaces: BPE tokens would span several words and not recombine.
            table["tokenizer"] = {"kind": "character", "vocab_size": 1000}
        table["train"] |= {
            "steps": self.steps if steps is None else steps,
            "schedule": "cosine",
            "save_every": 50,
            "average_snapshots": 3,
        }
        # No dropout: rows are hardly ever repeated, so there is nothing to overfit.
        table["model"] |= {"preset": "tiny", "norm_placement": "pre", "dropout": 0.0, "max_length": 256}
        return table
