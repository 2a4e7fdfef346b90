"""`Pretrained`: the encoder that a recipe starts from, and what is proposed to fine-tune it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from manyheads.errors import BundleError
from manyheads.messages import Message, _
from manyheads.model import ModelSettings
from manyheads.tasks.proposal import Choice, Survey, layers_of_width, schedule_choices
from manyheads.text.tokens.tokenizer import Tokenizer

if TYPE_CHECKING:
    from manyheads.tasks.task import Task

# How much of the encoder is trained, as values of `preset`: the first that is fast enough is proposed.
WHOLE, UPPER, NOTHING = "", "upper half", "frozen"

FINE_TUNING_BUDGET = 20 * 60.0  # seconds, at most
_LENGTHS = (32, 64, 128, 256)
_N_TEXTS = 32  # of a batch
_LEARNING_RATE = 2e-4
_N_MEASURED = 2000  # texts whose tokens are counted


@dataclass(frozen=True)
class Pretrained:
    """An encoder with its tokenizer, in a bundle."""

    path: str  # of the bundle
    model: ModelSettings
    tokenizer: Tokenizer
    pooling: str  # how the vectors of its tokens become one
    max_length: int  # the most tokens that it reads at once, special tokens included

    @classmethod
    def of(cls, task: "Task", path: str) -> "Pretrained":
        """Describe the encoder of a bundle; BundleError if it has none."""
        model = task.model.settings
        if not model.has_encoder:
            raise BundleError(
                _(
                    "{path} has no encoder: it is a bundle of the task {kind}, which only writes. Give --from a bundle "
                    "or a folder with an encoder, such as BERT or MiniLM.",
                    path=path,
                    kind=task.settings.kind,
                )
            )
        pooling = getattr(task.settings, "pooling", "mean")
        most = getattr(task.settings, "max_tokens", None) or model.max_length
        return cls(path, model, task.tokenizer, pooling, min(most, model.max_length))

    def lengths(self, survey: Survey) -> list[int]:
        """The numbers of tokens of a sample of the texts, special tokens included."""
        texts = [row[0] for row in survey.sample[:_N_MEASURED]]
        return sorted(len(ids) + self.tokenizer.n_framing for ids in self.tokenizer.encode_batch(texts))

    def length_for(self, lengths: Sequence[int], share: float = 0.99) -> int:
        """The length to read at once: enough for this share of the texts, if the encoder can."""
        longest = lengths[int(share * (len(lengths) - 1))]
        return min(self.max_length, next((length for length in _LENGTHS if longest <= length), self.max_length))

    def size(self) -> str:
        """The size of the encoder, for the screen."""
        return layers_of_width(self.model.n_encoder_layers, self.model.width)

    def frozen_parts(self, preset: str) -> list[str]:
        """The parts of the model that are not trained."""
        if preset == NOTHING:
            return ["source_embedding", "encoder"]
        n_frozen = self.model.n_encoder_layers // 2 if preset == UPPER else 0
        return ["source_embedding", *(f"encoder.{layer}" for layer in range(n_frozen))]


def origin_choices(origin: Pretrained, preset: str) -> Iterable[Choice]:
    """The bundle to start from, and what of it stays as it is."""
    reasons = {
        WHOLE: "the vectors of the tokens stay as they are: the data has too few of them",
        UPPER: "the lower half stays as it is, to fit into the time",
        NOTHING: "the whole encoder stays as it is: only the output layer is fitted",
    }
    yield Choice("init_from", origin.path, "the pretrained encoder, with its tokenizer")
    yield Choice("freeze", origin.frozen_parts(preset), reasons[preset])


def fine_tuning_choices(lengths: Sequence[int], max_length: int, validation_reason: str) -> Iterable[Choice]:
    """Batches and learning rates for a pretrained encoder; `init` fills in the numbers of steps."""
    typical = min(max_length, lengths[int(0.7 * (len(lengths) - 1))])
    yield Choice("train.steps", 1)
    yield Choice(
        "train.batch_tokens", max(256, _N_TEXTS * typical), f"padded tokens: about {_N_TEXTS} texts in a batch"
    )
    for choice in schedule_choices(learning_rate=_LEARNING_RATE, validation_reason=validation_reason, ema_decay=0.99):
        reason = "peak value; low, so that the encoder keeps what it knows"
        yield Choice(choice.name, choice.value, reason) if choice.name == "train.learning_rate" else choice
    yield Choice("train.layer_decay", 0.85, "each layer learns more slowly than the one above it")
    yield Choice("train.head_learning_rate", 1e-3, "of the output layer, which is not pretrained")
    yield Choice("train.weight_decay", 0.01, "shrinks weights that do not contribute")
    if computes_bfloat16():
        yield Choice("train.precision", "bfloat16", "this processor computes it natively, faster than float32")


def computes_bfloat16() -> bool:
    """Whether this machine's CPU has instructions for bfloat16, which train wide models faster."""
    checks = [getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported")]
    return any(check is not None and check() for check in checks)


def epochs_for(n_rows: int, n_labels: int) -> float:
    """More epochs for fewer rows of each label: 4 for 130, 1.6 for 5,000."""
    return min(8.0, max(1.0, 4.0 * (130 * n_labels / max(1, n_rows)) ** 0.25))


def window_note(lengths: Sequence[int], max_length: int) -> list[Message]:
    """That long texts are read in windows, if there are any."""
    n_long = sum(length > max_length for length in lengths)
    if not n_long:
        return []
    share = f"{math.ceil(1000 * n_long / len(lengths)) / 10:.1f} %"
    return [
        Message(
            "{share} of the texts have more than {max_length} tokens; they are read in windows, none is cut.",
            share=share,
            max_length=max_length,
        )
    ]
