"""Widen a translator to the base size of the paper (6 + 6 layers, width 512) so that it translates the same.

    python benchmarks/serve/base_size.py runs/quickstart/bundle /tmp/base-size

The quickstart's model is so small that HTTP costs a third of a translation. Services usually have larger models. Nobody
has to train one to measure a service: every hidden value is repeated, weights are divided by the number of repetitions,
and added layers add zero. The outputs are the same up to rounding, and the cost is that of the larger size.
"""

import math
import sys
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from manyheads.bundle import Bundle, load
from manyheads.model import ModelSettings, Transformer
from manyheads.settings import to_table

WIDTH, INNER, LAYERS = 512, 2048, 6


def widen_settings(settings: ModelSettings) -> ModelSettings:
    """Return the settings of the larger model; its heads are as wide as before."""
    known = {"positions": "rotary", "norm_placement": "pre", "activation": "relu", "tie_output": True}
    for name, value in known.items():
        if getattr(settings, name) != value:
            raise ValueError(f"model.{name} = {getattr(settings, name)!r}: only {value!r} can be widened.")
    return replace(
        settings,
        width=WIDTH,
        feed_forward_width=INNER,
        n_heads=settings.n_heads * WIDTH // settings.width,
        n_encoder_layers=LAYERS,
        n_decoder_layers=LAYERS,
    )


def repeat(weight: Tensor, rows: int, columns: int) -> Tensor:
    """Repeat the outputs and the inputs of a projection; the sum over the inputs stays the same."""
    return weight.repeat(rows, columns) / columns


def widen_weights(model: Transformer, larger: Transformer) -> None:
    """Fill the larger model."""
    small = dict(model.named_parameters())
    times, inner_times = WIDTH // model.settings.width, INNER // model.settings.feed_forward_width
    with torch.no_grad():
        for name, weight in larger.named_parameters():
            stack, _, rest = name.partition(".")
            number = rest.partition(".")[0]
            is_added = stack in ("encoder", "decoder") and name not in small
            old = small[name.replace(f"{stack}.{number}.", f"{stack}.0.", 1) if is_added else name]
            if name.endswith("token_embedding.weight"):
                weight.copy_(old.repeat(1, times) / math.sqrt(times))
            elif "feed_forward.inner.weight" in name:
                weight.copy_(repeat(old, inner_times, times))
            elif "feed_forward.inner.bias" in name:
                weight.copy_(old.repeat(inner_times))
            elif "feed_forward.outer.weight" in name:
                weight.copy_(repeat(old, times, inner_times))
            elif old.dim() == 2:
                weight.copy_(repeat(old, times, times))
            else:
                weight.copy_(old.repeat(times))
            if is_added and ("attention.output" in name or "feed_forward.outer" in name):
                weight.zero_()
            if name.startswith("decoder_norm"):  # the output is tied to the embedding, which was divided
                weight.div_(math.sqrt(times))


def widen(bundle: Bundle) -> Bundle:
    """Return the larger bundle."""
    model = bundle.task.model
    larger = Transformer(widen_settings(model.settings)).eval()
    widen_weights(model, larger)
    recipe = {**bundle.recipe, "model": to_table(larger.settings)}
    return replace(bundle, task=replace(bundle.task, model=larger), recipe=recipe)  # type: ignore[type-var]


def main() -> None:
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    bundle = load(source, engine="torch")
    larger = widen(bundle)
    larger.save(target)
    texts = ["Two cats are sleeping.", "She will study in the library next Friday."]
    print(f"{target}: {larger.task.model.n_parameters:,} parameters")
    print(bundle.predict(texts) == load(target).predict(texts), load(target).predict(texts))


if __name__ == "__main__":
    main()
