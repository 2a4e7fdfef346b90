"""What the output of a text depends on besides the text: padding, its neighbors in the batch, the future; and depth.

Changes are relative: ‖a − b‖ / ‖b‖ of the last layer's output.
"""

import copy
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Generator, Tensor, nn

from manyheads.lab.lab_tasks import MASK, PAD, LabBatch, Reorder
from manyheads.lab.setup import Setup
from manyheads.lab.trial import counted_logits, make_model, train_model
from manyheads.model.evaluation import evaluating

_N_PADDING = 8
_CAUSAL_LENGTH = 12

_N_ROWS = 64
_TINY = 1e-30  # the gradient of a deep stack without residual connections can underflow; a logarithm needs more than 0


def norm_kind(setup: Setup, seed: int) -> dict[str, float]:
    """Accuracy, and what changes the outputs of the trained model."""
    trained = train_model(setup, seed)
    batch = next(trained.test_batches(setup.n_rows))
    padded = next(replace(trained, setup=replace(setup, test_task=None)).test_batches(setup.n_rows))
    return {
        **trained.outcome(),
        "padding": padding_change(trained.model, padded),
        "training_padding": padding_change(trained.model, padded, is_training=True),
        "neighbors": neighbor_change(trained.model, batch),
        "drift": statistics_change(trained.model, batch),
        "future": future_change(setup, seed),
    }


def padding_change(model: nn.Module, batch: LabBatch, *, is_training: bool = False) -> float:
    """The change of a batch's outputs when padding is appended to every row."""
    assert batch.source is not None
    is_real = batch.source != PAD
    padded = torch.nn.functional.pad(batch.source, (0, _N_PADDING), value=PAD)
    before = _encoded(model, batch.source, is_training)
    after = _encoded(model, padded, is_training)[:, : batch.source.size(1)]
    return relative_change(after[is_real], before[is_real])


def neighbor_change(model: nn.Module, batch: LabBatch) -> float:
    """The change of each row's output when the other rows share its batch; padding stays the same."""
    assert batch.source is not None
    is_real = batch.source != PAD
    alone = torch.cat([_encoded(model, row[None], False) for row in batch.source])
    together = _encoded(model, batch.source, False)
    return relative_change(together[is_real], alone[is_real])


def statistics_change(model: nn.Module, batch: LabBatch) -> float:
    """The change of a batch's outputs between training, where a batch norm uses the batch, and inference."""
    assert batch.source is not None
    is_real = batch.source != PAD
    return relative_change(_encoded(model, batch.source, True)[is_real], _encoded(model, batch.source, False)[is_real])


def future_change(setup: Setup, seed: int, n_rows: int = 32) -> float:
    """The change of earlier outputs of an untrained causal model in training when the last token of a row changes."""
    causal = replace(setup, task=Reorder(n_symbols=setup.task.vocab_size - MASK - 1, shape="decoder"))
    model: Any = make_model(causal.changed({"model.n_decoder_layers": setup.model["n_encoder_layers"]}), seed)
    ids = torch.randint(1, setup.task.vocab_size, (n_rows, _CAUSAL_LENGTH), generator=Generator().manual_seed(seed))
    changed = ids.clone()
    changed[0, -1] = 1 + ids[0, -1] % (setup.task.vocab_size - 1)
    with torch.no_grad():
        before, after = (model.hidden(target=target)[0, :-1] for target in (ids, changed))
    return relative_change(after, before)


def relative_change(after: Float[Tensor, "*B W"], before: Float[Tensor, "*B W"]) -> float:
    """‖after − before‖ / ‖before‖ over all values."""
    return float((after.double() - before.double()).norm() / before.double().norm())


def _encoded(model: nn.Module, source: Tensor, is_training: bool) -> Float[Tensor, "B S W"]:
    is_real: Bool[Tensor, "B S"] = source != PAD
    copied: Any = copy.deepcopy(model)  # in training mode, a batch norm updates its running statistics
    if is_training:
        with torch.no_grad():
            return copied.train().encode(source, is_real)
    with evaluating(copied):
        return copied.encode(source, is_real)


def residual_path(setup: Setup, seed: int) -> dict[str, float]:
    """Accuracy, and the gradient and the similarity of tokens before training."""
    return {
        **train_model(setup, seed).outcome(),
        "gradient": gradient_ratio(setup, seed),
        "similarity": token_similarity(setup, seed),
    }


def gradient_ratio(setup: Setup, seed: int) -> float:
    """The gradient norm of the first encoder block's weights divided by that of the last block's."""
    model: Any = make_model(setup, seed)
    batch = setup.task.batch(_N_ROWS, Generator().manual_seed(9_000_000 + seed))
    F.cross_entropy(counted_logits(model, batch), batch.expected[batch.is_counted]).backward()
    return max(_gradient_norm(model.encoder[0]), _TINY) / max(_gradient_norm(model.encoder[-1]), _TINY)


@torch.no_grad()
def token_similarity(setup: Setup, seed: int) -> float:
    """The mean cosine between the outputs of different positions of a row, after the last encoder block."""
    model: Any = make_model(setup, seed)
    batch = setup.task.batch(_N_ROWS, Generator().manual_seed(9_000_000 + seed))
    outputs: list[Tensor] = []
    model.encoder[-1].register_forward_hook(lambda _block, _inputs, output: outputs.append(output))
    counted_logits(model, batch)
    directions = F.normalize(outputs[0].double(), dim=-1)
    cosines = directions @ directions.mT
    n_tokens = cosines.size(-1)
    return float((cosines.sum((1, 2)) - n_tokens).mean() / (n_tokens * (n_tokens - 1)))


def _gradient_norm(block: nn.Module) -> float:
    gradients = [parameter.grad for parameter in block.parameters()]
    return float(sum(float(grad.double().square().sum()) for grad in gradients if grad is not None)) ** 0.5
