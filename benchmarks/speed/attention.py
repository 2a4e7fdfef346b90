"""Time and memory of attention by sequence length, fused and explicit; memory of a training step.

    make bench-attention                                  everything, into benchmarks/speed/ (ten minutes)
    make bench-attention ARGS="--longest 2048"

Forward: one sequence, 8 heads of width 64, one thread. The fused path is `MultiHeadAttention` without a tap. The
explicit path stores all attention weights; it is skipped where they would need more than 4 GB. Extra memory is the peak
memory of the process minus its memory before. "attention" takes queries, keys and values; "module" also computes the
projections and the mask. Views: bidirectional (an encoder), causal (a language model), and causal with a padding mask
(the decoder of a seq2seq model).

Training: one forward and backward pass of a small model (2 layers, or 2 + 2, width 128, vocab_size 6,000) on one
sequence, with the loss computed in chunks (`projected_loss`) and from all logits (`smoothed_cross_entropy`).
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import draw
import torch
from children import in_child, measure, refuse_other_systems
from draw_attention import attention_tables
from frame import HERE, stamp, store

from manyheads.model import (
    DecoderState,
    ModelSettings,
    MultiHeadAttention,
    Transformer,
    projected_loss,
    smoothed_cross_entropy,
)
from manyheads.model.blocks import make_self_attention
from manyheads.model.masks import View, count_positions

RESULT = HERE / "attention.json"
N_HEADS, HEAD_WIDTH = 8, 64
MOST_BYTES = 4e9
LENGTHS = [2**power for power in range(7, 15)]
VOCAB_SIZE = 6_000


def make_view(name: str, n: int) -> View:
    is_real = torch.ones(1, n, dtype=torch.bool)
    match name:
        case "bidirectional":
            return View.bidirectional(is_real)
        case "causal":
            return View.packed(torch.ones(1, n, dtype=torch.long))
        case _:
            return View.causal(is_real, count_positions(is_real), n)


def make_attention() -> MultiHeadAttention:
    settings = ModelSettings(vocab_size=2, width=N_HEADS * HEAD_WIDTH, n_heads=N_HEADS)
    attention = make_self_attention("encoder.0.self", settings)
    assert isinstance(attention, MultiHeadAttention)
    return attention.eval()


@torch.no_grad()
def forward(path: str, what: str, view: str, n: int) -> dict[str, Any]:
    """Measure one point of the forward pass; runs in a child process."""
    attention = make_attention()
    if path == "explicit":
        attention._attend_fused = lambda form, q, k, v, view, bias: attention._attend_explicit(
            q, k, v, view, bias, None
        )
    if what == "module":
        x = torch.randn(1, n, N_HEADS * HEAD_WIDTH)
        return measure(lambda: attention(x, x, make_view(view, n)), seconds=1.0)
    q, k, v = torch.randn(3, 1, N_HEADS, n, HEAD_WIDTH)
    mask = make_view(view, n)
    return measure(lambda: attention._attend_fused(attention.scores, q, k, v, mask, None), seconds=1.0)


def train(kind: str, loss: str, n: int) -> dict[str, Any]:
    """Measure one point of training: forward and backward pass with gradients; runs in a child process."""
    settings = ModelSettings.preset(
        "tiny",
        vocab_size=VOCAB_SIZE,
        n_encoder_layers=2,
        n_decoder_layers=2,
        max_length=n,
        shape="decoder" if kind == "language" else "encoder-decoder",
    )
    model = Transformer(settings)
    ids = torch.randint(4, VOCAB_SIZE, (1, n))

    def step() -> None:
        model.zero_grad(set_to_none=True)
        if kind == "language":
            is_real = ids != 0
            state = DecoderState(None, None, is_real[:, :0], [])
            hidden = model.decode(ids, state, is_real=is_real, view=View.packed(torch.ones_like(ids)))
        else:
            hidden = model.hidden(ids, ids, source_is_real=ids != 0, target_is_real=ids != 0)
        if loss == "chunks":
            projected_loss(hidden, model.output.weight, ids[0], 0.1).backward()
        else:
            smoothed_cross_entropy(model.output.logits(hidden)[0], ids[0], 0.1).backward()

    return measure(step, seconds=0.5)


def forward_points(longest: int) -> Iterator[dict[str, Any]]:
    for n in (n for n in LENGTHS if n <= longest):
        for path in ("fused", "explicit"):
            # Scores, masked scores and weights are in memory at the same time.
            if path == "explicit" and 3 * N_HEADS * n * n * 4 > MOST_BYTES:
                continue
            for view in ("bidirectional", "causal", "padded causal"):
                for what in ("attention", "module"):
                    point = {"path": path, "what": what, "view": view, "n": n}
                    yield _measure_and_print(
                        point, lambda path=path, what=what, view=view, n=n: forward(path, what, view, n)
                    )


def training_points(longest: int) -> Iterator[dict[str, Any]]:
    for kind in ("translation", "language"):
        for loss in ("chunks", "whole"):
            before = 0
            for n in (n for n in LENGTHS if n <= longest):
                # Memory grows at most quadratically.
                if 4 * before > MOST_BYTES:
                    break
                point = _measure_and_print(
                    {"kind": kind, "loss": loss, "n": n}, lambda kind=kind, loss=loss, n=n: train(kind, loss, n)
                )
                before = point["extra_bytes"]
                yield point


def _measure_and_print(point: dict[str, Any], work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    found = point | in_child(work)
    name = " ".join(str(value) for value in point.values())
    print(f"{name}: {found['extra_bytes'] / 1e6:,.1f} MB, {min(found['cpu']):.3f} s", file=sys.stderr, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--longest", type=int, default=16_384, help="maximum length of the forward pass")
    parser.add_argument("--longest-training", type=int, default=8_192)
    parser.add_argument("--keep-nothing", action="store_true", help="print the tables, but write no files")
    given = parser.parse_args()
    refuse_other_systems()
    os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
    torch.set_num_threads(1)
    for path in ("fused", "explicit"):  # warm-up, which child processes inherit
        forward(path, "module", "bidirectional", 16)
    train("translation", "chunks", 16)
    records = {
        "forward": {**stamp(), "points": list(forward_points(given.longest))},
        "training": {**stamp(), "points": list(training_points(min(given.longest, given.longest_training)))},
    }
    print(attention_tables(records))
    if not given.keep_nothing:
        for name, record in records.items():
            store(RESULT, name, record)
        draw.main()


if __name__ == "__main__":
    main()
