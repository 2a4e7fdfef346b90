"""The negative log-likelihood of every token of documents, in sliding windows of the context."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from manyheads.model import Transformer, evaluating
from manyheads.tasks.language.language_training import hidden_of, make_rows, plan_rows

_TOKENS_AT_ONCE = 4096
_LOGITS_AT_ONCE = 1024  # rows


def sliding_windows(length: int, context: int, stride: int) -> list[tuple[int, int, int]]:
    """Windows (start, first, end) over `length` tokens: tokens from `first` on are predicted from those since `start`.

    Every window but the first moves by `stride`, so that every token after the first window has
    at least context − stride tokens before it.
    """
    windows = [(0, 0, min(context, length))] if length else []
    while windows and windows[-1][2] < length:
        first = windows[-1][2]
        end = min(first + stride, length)
        windows.append((end - context, first, end))
    return windows


def token_nll(model: Transformer, documents: Sequence[Sequence[int]], stride: int) -> list[NDArray[np.float64]]:
    """−ln p of each token of each document, in windows of the model's `max_length` that move by `stride`."""
    context = model.settings.max_length
    windows = [
        (number, *window)
        for number, ids in enumerate(documents)
        for window in sliding_windows(len(ids), context, stride)
    ]
    of_documents = [np.zeros(len(ids)) for ids in documents]
    for (number, _, first, end), nats in zip(windows, window_nll(model, documents, windows), strict=True):
        of_documents[number][first:end] = nats
    return of_documents


def window_nll(
    model: Transformer, documents: Sequence[Sequence[int]], windows: Sequence[tuple[int, int, int, int]]
) -> list[NDArray[np.float64]]:
    """−ln p of the tokens from `first` on in each window (document, start, first, end)."""
    if not windows:
        return []
    arrays = [np.asarray(ids, dtype=np.int64) for ids in documents]
    table = np.array(windows, dtype=np.int64)
    # `plan_rows` takes (document, start, end); here the index of the window replaces the document.
    numbered = np.stack([np.arange(len(table)), table[:, 1], table[:, 3]], axis=1)
    of_windows: list[NDArray[np.float64]] = [np.empty(0)] * len(table)
    with evaluating(model):
        for plan in plan_rows(
            numbered,
            model.settings.max_length,
            _TOKENS_AT_ONCE,
            seed=0,
            epoch=0,
            one_per_row=model.settings.mixes_positions,
        ):
            batch = make_rows(plan, lambda index: arrays[table[index, 0]], model.device)
            nats = _nats(model, *hidden_of(model, batch))
            for index, size in zip(plan[:, 1].tolist(), (plan[:, 3] - plan[:, 2]).tolist(), strict=True):
                of_windows[index] = nats[table[index, 2] - table[index, 1] : size]
                nats = nats[size:]
    return of_windows


def _nats(model: Transformer, hidden: torch.Tensor, written: torch.Tensor) -> NDArray[np.float64]:
    parts = []
    for vectors, ids in zip(hidden.split(_LOGITS_AT_ONCE), written.split(_LOGITS_AT_ONCE), strict=True):
        logits = model.output.logits(vectors).float()
        parts.append(logits.logsumexp(-1) - logits.gather(1, ids[:, None]).squeeze(1))
    return np.asarray(torch.cat(parts).cpu().double().numpy())
