"""Settings of the tag task."""

from dataclasses import dataclass
from typing import Annotated, Literal

from manyheads.metrics import IntentRule
from manyheads.settings import Range, Rate, raise_faults, type_faults
from manyheads.tasks.model_inputs import Pooling
from manyheads.tasks.task import TaskSettings


@dataclass(frozen=True, kw_only=True)
class TagSettings(TaskSettings):
    """How tags are decoded and trained, and whether each text also has an intent."""

    kind: Literal["tag"] = "tag"  # predict the labeled spans of a text
    # How tags encode spans. IO and words are labels without letters; with words, each word is a span of its own.
    scheme: Literal["auto", "IOB1", "IOB2", "BIOES", "BMES", "IO", "words"] = "auto"
    decoder: Literal["constrained", "crf"] = "crf"  # crf: learned transitions; constrained: only valid ones
    head_dropout: Rate = 0.2  # dropout before the output layer
    # Also fit a linear CRF of words, their parts and their neighbors. Its score is shown beside the model's, and the
    # answer is a mixture of both, weighted on the validation rows.
    baseline: bool = True
    # Also score n-grams of up to this many words beside the Transformer; 0: none.
    ngrams: Annotated[int, Range(0, 5)] = 0
    ngram_dropout: Rate = 0.3  # dropout of n-grams
    # Share of training spans replaced by another span of the same label.
    swapping: Annotated[float, Range(0, 1)] = 0.0
    smoothing: Rate = 0.0  # ε of label smoothing; with "crf" only for intents
    # R-Drop's α: weight of the agreement of two passes with different dropout, such as 1; 0: one pass.
    consistency: Annotated[float, Range(0)] = 0.0

    intents: bool = False  # rows have an intent besides their tags
    pooling: Pooling = "mean-max"  # how token vectors become the vector of the text, for the intent
    intent_weight: Annotated[float, Range(0)] = 0.3  # weight of the intent loss beside the tag loss
    intent_rule: IntentRule = "strict"  # strict: "a#b" must be predicted as a whole; else "a" is correct, too
    separator: str = "#"  # between the parts of an intent such as "a#b"

    def __post_init__(self) -> None:
        raise_faults(type_faults(self, "task."))

    @property
    def loss_terms(self) -> dict[str, float]:
        """What the loss contains beside the cross-entropy, or the CRF's log-likelihood, of the tags."""
        is_smoothed = self.intents or self.decoder == "constrained"
        smoothing, intents = self.smoothing if is_smoothed else 0.0, self.intent_weight if self.intents else 0.0
        terms = {"label smoothing": smoothing, "R-Drop": self.consistency, "intent loss": intents}
        return {name: weight for name, weight in terms.items() if weight}
