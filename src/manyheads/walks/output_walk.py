"""The output softmax and the loss with every number: logits, probabilities, smoothed targets, cross-entropy."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from manyheads.model.losses import smoothed_cross_entropy
from manyheads.walks.attention_walk import Floats, doubles
from manyheads.walks.norm_walk import NormWalk

_MAX_VOCABULARY = 30  # up to this many tokens, all are listed
_N_LISTED = 8  # of more, the most probable

# V vocab_size, W width, S listed tokens.


@dataclass(frozen=True)
class OutputWalk:
    """The next token at one position of the decoder: a logit is the dot product of the hidden vector and a word's."""

    position: int
    reads: str  # the token at this position
    writes: str | None  # the token that follows; None if it is not known
    final_norm: NormWalk | None  # of a pre-norm model, before the logits
    hidden: Floats  # W: the output of the last layer
    is_tied: bool  # whether the word vectors are those of the embedding
    ids: tuple[int, ...]  # the listed tokens: all of a small vocabulary, else the most probable and the written one
    names: tuple[str, ...]  # of the listed tokens
    vectors: Floats  # S × W: the word vectors of the listed tokens
    logits: Floats  # V
    exponentials: Floats  # V: e^(logit − the largest)
    exponential_sum: float
    probabilities: Floats  # V


@dataclass(frozen=True)
class LossWalk:
    """Label smoothing of one target: 1 − ε for the right token, ε / (V − 1) for every other; loss = −Σ target ln p."""

    smoothing: float  # ε
    target: int  # the id of the right token
    right: float  # the target probability of the right token
    wrong: float  # and of every other token
    targets: Floats  # V
    log_probabilities: Floats  # V
    loss: float
    loss_unsmoothed: float  # −ln p of the right token
    smallest_loss: float  # −Σ target ln target: the loss cannot be smaller


def walk_output(
    hidden: Tensor,
    matrix: Tensor,
    *,
    position: int,
    reads: str,
    writes: str | None,
    target: int | None,
    name_of: Callable[[int], str],
    is_tied: bool,
    final_norm: NormWalk | None,
) -> OutputWalk:
    """Return every number of the output softmax for the hidden vector of one position."""
    logits = matrix @ hidden
    exponentials, probabilities = (logits - logits.max()).exp(), logits.softmax(-1)
    if len(logits) <= _MAX_VOCABULARY:
        ids = list(range(len(logits)))
    else:
        ids = probabilities.topk(_N_LISTED).indices.tolist()
        ids += [] if target is None or target in ids else [target]
    return OutputWalk(
        position=position,
        reads=reads,
        writes=writes,
        final_norm=final_norm,
        hidden=doubles(hidden),
        is_tied=is_tied,
        ids=tuple(ids),
        names=tuple(map(name_of, ids)),
        vectors=doubles(matrix[ids]),
        logits=doubles(logits),
        exponentials=doubles(exponentials),
        exponential_sum=float(exponentials.sum()),
        probabilities=doubles(probabilities),
    )


def walk_loss(logits: Floats, target: int, smoothing: float) -> LossWalk:
    """Return the smoothed target of one position and its cross-entropy."""
    n_classes = len(logits)
    wrong = smoothing / (n_classes - 1)
    targets = np.full(n_classes, wrong)
    targets[target] = 1.0 - smoothing
    row, right = torch.from_numpy(logits)[None], torch.tensor([target])
    counted = targets[targets > 0]  # 0 ln 0 is 0
    return LossWalk(
        smoothing=smoothing,
        target=target,
        right=1.0 - smoothing,
        wrong=wrong,
        targets=targets,
        log_probabilities=row.log_softmax(-1)[0].numpy(),
        loss=float(smoothed_cross_entropy(row, right, smoothing)),
        loss_unsmoothed=float(smoothed_cross_entropy(row, right, 0.0)),
        smallest_loss=float(-(counted * np.log(counted)).sum()),
    )
