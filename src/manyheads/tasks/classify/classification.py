"""`Classification`: the labels of a text, and how the lens shows them with other gates.

Heads act on the Transformer's logits only. Probabilities and logits of `ClassifyProbe` are those of the answer: mixed
with the linear classifier of n-grams, if there is one, and calibrated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.decode import DecodeSettings
from manyheads.messages import Message, _
from manyheads.model import evaluating
from manyheads.tasks.classify.out_of_scope import THRESHOLD
from manyheads.tasks.lens_output import Alternatives, LabelChoice, LensOutput, find_name, refuse_position
from manyheads.tasks.model_inputs import ModelInput

if TYPE_CHECKING:
    from manyheads.tasks.classify.classify_task import Classify

UNSURE = "?"  # written if no label is predicted


@dataclass(frozen=True)
class Classification:
    """The labels of one text."""

    labels: tuple[str, ...]  # one, or any number if multi_label; none if below the threshold
    probability: float | None  # of the label; if multi_label, of exactly this set of labels; None for a blank text
    probabilities: Mapping[str, float]  # of every label, the likeliest first; empty for a blank text
    separator: str = "|"
    # How much of the decision the linear classifier of n-grams made, from 0 to 1; the rest is the Transformer's.
    ngram_share: float | None = None
    out_of_scope: float | None = None  # 0 to 1; above ½ the text is unlike those it was trained on; None: not known

    @property
    def answer(self) -> str:
        """The label, or several joined by the separator."""
        return self.separator.join(self.labels)

    @property
    def is_out_of_scope(self) -> bool:
        """Whether the text is unlike all training texts, so that probably no label fits."""
        return self.out_of_scope is not None and self.out_of_scope > THRESHOLD

    @property
    def is_unsure(self) -> bool:
        """Whether a text has no label, since none is above the threshold."""
        return self.probability is not None and not self.labels

    def line(self) -> str:
        """Label and probability, separated by a tab; empty for a blank text."""
        if self.probability is None:
            return ""
        return f"{self.answer or UNSURE}\t{self.probability:.4f}"

    def cells(self) -> dict[str, str | float | None]:
        """Label and probability; no label if it is below the threshold."""
        return {"label": self.answer, "probability": self.probability}


_OUT_OF_SCOPE = Message("This text is unlike the texts that the model was trained on: perhaps no label fits.")


@dataclass(frozen=True)
class ClassifyProbe:
    """The labels that a classifier chose for one text."""

    task: "Classify"
    text: str
    ids: Sequence[int]  # with BOS
    prediction: Classification

    @classmethod
    def of(cls, task: "Classify", model_input: ModelInput) -> "ClassifyProbe":
        """Classify the text of an input."""
        (prediction,) = task.predict([model_input.text], DecodeSettings())
        return cls(task, model_input.text, [token.id for token in model_input.source], prediction)

    def output(self) -> LensOutput:
        """The labels with their probabilities."""
        found = self.prediction
        return LensOutput(
            task="classify",
            answer=found.answer,
            labels=tuple(LabelChoice(name, probability) for name, probability in found.probabilities.items()),
            ngram_share=found.ngram_share,
            log_probability=float(self.log_probabilities(1)[0]),
            notes=(_OUT_OF_SCOPE,) if found.is_out_of_scope else (),
        )

    def log_probabilities(self, n_rows: int) -> Float[Tensor, " N"]:
        """The log-probability of the likeliest label in each copy; if multi_label, of exactly the chosen labels."""
        calibration, multi_label = self.task.calibration, self.task.settings.multi_label
        found = calibration.probabilities(self._mixed(n_rows), multi_label=multi_label)
        if not multi_label:
            return found[:, self._best].log()
        is_chosen = torch.tensor([label in self.prediction.labels for label in self.task.labels])
        return torch.where(is_chosen, found, 1.0 - found).log().sum(1)

    def alternatives(self, position: int, instead: int | str) -> Alternatives:
        """The likeliest label and another one; the position is −1."""
        if position != -1:
            raise refuse_position(position, _("−1, for the label of the text"))
        other = find_name(instead, self.task.labels, "label")
        return Alternatives(self.task.labels[self._best], self.task.labels[other], (self._best, other))

    def logits(self, position: int, n_rows: int) -> Float[Tensor, "N C"]:
        """The mixed logits of every label in each copy, divided by the temperature."""
        return self._mixed(n_rows) / self.task.calibration.temperature

    @property
    def _best(self) -> int:
        return self.task.labels.index(next(iter(self.prediction.probabilities)))

    def _mixed(self, n_rows: int) -> Float[Tensor, "N C"]:
        """The mixed logits of each copy."""
        with evaluating(self.task.module):
            ids = torch.tensor([self.ids], device=self.task.model.device).expand(n_rows, -1)
            transformer = self.task.module(ids).float().cpu()
            return self.task.mix([self.text] * n_rows, transformer).double()
