"""`LensModel`: a model that the lens page shows: its bundle, its name, its snapshots, and a lock.

Gates are set on the module of a model, so only one request at a time may use a model. Work in the background uses a
copy of its own, which leaves the page responsive.
"""

import copy
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from manyheads.bundle import Bundle, load
from manyheads.decode import DecodeSettings
from manyheads.errors import LensError, ManyheadsError
from manyheads.lens.aligner import Aligner, choose_aligner
from manyheads.lens.traces.examples import sample_examples
from manyheads.messages import _
from manyheads.model.weights import load_weights
from manyheads.serve.private_data import load_served
from manyheads.tasks import Task
from manyheads.training import Checkpoints

MAX_CHARACTERS = 20_000  # of a text
MAX_TOKENS = 4096
_N_EXAMPLES = 8
_MAX_EXAMPLE = 160  # characters of a suggested text


@dataclass
class LensModel:
    """A loaded bundle and what belongs to it."""

    id: str  # "a", or "b" for the second of two
    path: Path
    bundle: Bundle
    valid: Sequence[Path] = ()  # files with rows to observe heads on, instead of the recipe's validation set
    texts: Sequence[str] = ()  # that the page suggests first
    served_as: str = ""  # its name on a server
    is_private: bool = False  # whether nothing outside its folder may be read or shown: see `private_data`
    lock: threading.RLock = field(default_factory=threading.RLock)
    _at_step: tuple[int, Task] | None = None  # the snapshot that was used last

    @classmethod
    def open(cls, path: Path, id: str = "a", valid: Sequence[Path] = (), texts: Sequence[str] = ()) -> "LensModel":
        """Load a bundle."""
        return cls(id, path.resolve(), load(path, engine="torch"), valid, texts)

    @classmethod
    def open_served(cls, path: Path, name: str, *, share_examples: bool) -> "LensModel":
        """Load a bundle for the visitors of a server."""
        bundle = load_served(path, share_examples=share_examples, engine="torch")
        return cls("a", path, bundle, served_as=name, is_private=not share_examples)

    @property
    def name(self) -> str:
        """The name on a server, or that of the run's folder, or of the bundle's folder if it stands alone."""
        return self.served_as or (self.path.parent.name if self.path.name == "bundle" else self.path.name)

    @property
    def has_rows(self) -> bool:
        """Whether there may be rows to observe heads on; a private bundle has those of the built-in corpus only."""
        return not self.is_private or bool(self.bundle.recipe)

    @property
    def is_deleted(self) -> bool:
        """Whether the folder was deleted after the bundle had been loaded."""
        return not self.path.is_dir()

    @cached_property
    def copy(self) -> Bundle:
        """A second copy of the bundle, for work in the background. Only one thread uses it."""
        return _copied(self.bundle)

    @cached_property
    def measured(self) -> "LensModel":
        """A third copy, for measurements of every head that take long: the page can be used meanwhile."""
        return replace(self, bundle=_copied(self.bundle), lock=threading.RLock(), _at_step=None)

    @cached_property
    def steps(self) -> Sequence[int]:
        """The steps of the run's snapshots, if there are several; they are outside the folder of the bundle."""
        folder = self.path.parent
        if self.is_private or self.path.name != "bundle" or not (folder / "snapshots").is_dir():
            return ()
        steps = Checkpoints(folder, 1).snapshot_steps()
        return tuple(steps) if len(steps) > 1 else ()

    def task_at(self, step: int | None) -> Task:
        """Return the task, or the task with the weights of one snapshot. Hold the lock."""
        if step is None:
            return self.bundle.task
        if step not in self.steps:
            raise LensError(
                _(
                    "There is no snapshot of step {step}. Choose one of {steps}.",
                    step=step,
                    steps=", ".join(map(str, self.steps)),
                )
            )
        if self._at_step is None or self._at_step[0] != step:
            task = _copied(self.bundle).task
            load_weights(task.module, Checkpoints(self.path.parent, 1).snapshot(step), f"the snapshot of step {step}")
            self._at_step = (step, task)
        return self._at_step[1]

    @property
    def decode(self) -> DecodeSettings:
        """How the page's answers are generated: as `predict` does, one hypothesis."""
        return replace(self.bundle.decode, n_best=1)

    @cached_property
    def aligner(self) -> Aligner | None:
        """The heads that align words, of a model with cross-attention whose validation data can be read."""
        if not self.bundle.task.model.settings.has_cross_attention:
            return None
        try:
            return choose_aligner(self.bundle, str(self.path))
        except (ManyheadsError, OSError):
            return None

    @property
    def max_tokens(self) -> int:
        """The most tokens of a text."""
        return min(MAX_TOKENS, self.bundle.task.model.settings.max_length)

    @cached_property
    def examples(self) -> Sequence[str]:
        """Short texts to try, made of the bundle's own validation data; none if it cannot be read."""
        try:
            sampled = sample_examples(self.bundle, 10 * _N_EXAMPLES)
        except (ManyheadsError, OSError):
            return ()
        texts = (example.texts[0].text.strip() for example in sampled)
        short = [text if len(text) <= _MAX_EXAMPLE else text[:_MAX_EXAMPLE].rsplit(" ", 1)[0] for text in texts]
        task = self.bundle.task
        suggested = [task.lens_examples.suggestion(task, text) for text in short if text]
        return list(dict.fromkeys(suggested))[:_N_EXAMPLES]

    def describe(self, *, is_live: bool = True) -> dict[str, Any]:
        """Return what the page shows of the model, as JSON."""
        task = self.bundle.task
        model = task.model
        return {
            "id": self.id,
            "name": self.name,
            "task": self.bundle.kind,
            "answer_form": task.answer_form,
            "shape": task.shape,
            "n_parameters": model.n_parameters,
            "width": model.settings.width,
            "languages": list(task.languages(task.settings)),
            "attentions": [
                {
                    **attention_place(attention.name),
                    "n_heads": attention.heads.n_heads,
                    "head_width": attention.heads.head_width,
                    "value_width": attention.heads.value_width,
                }
                for attention in model.attentions()
            ],
            "scores": [
                {"set": name, "name": score.name, "value": score.value, "low": score.low, "high": score.high}
                for name, scores in self.bundle.scores.items()
                for score in scores
            ],
            "max_tokens": self.max_tokens,
            "max_characters": MAX_CHARACTERS,
            "examples": list(dict.fromkeys([*self.texts, *self.examples]))[:_N_EXAMPLES],
            "steps": list(self.steps) if is_live else [],
            "is_private": self.is_private,
            "takes_answer": model.settings.has_decoder,
            "is_live": is_live,
        }


def _copied(bundle: Bundle) -> Bundle:
    """Return a bundle with a model of its own; its folder may be gone."""
    return replace(bundle, task=copy.deepcopy(bundle.task))


def attention_place(name: str) -> dict[str, Any]:
    """Return where an attention is: its name, its kind (encoder, decoder or cross) and its layer."""
    stack, layer, use = name.split(".")
    return {"name": name, "kind": "cross" if use == "cross" else stack, "layer": int(layer)}
