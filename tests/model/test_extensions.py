"""What imported models have beyond 2017: both paths agree, caches are exact, and heads can be removed."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from manyheads.decode.native.model_packing import refuse
from manyheads.errors import EngineError, RecipeError
from manyheads.model import ModelSettings, Tap, Transformer, gated
from manyheads.model.positions import BucketedPositions, RotaryPositions

from model.makers import shaken

PARTS: dict[str, dict[str, Any]] = {
    "norm of the embedding": {"embedding_norm": True},
    "no bias of the feed-forward network": {"feed_forward_bias": False, "activation": "geglu-tanh"},
    "norms of queries and keys": {"query_key_norm": True, "positions": "rotary", "n_key_heads": 2},
    "rotary base and scaling": {"positions": "rotary", "rotary_base": 100.0, "rotary_scaling": (1.0, 0.25)},
    "ranges of distances": {"distance_buckets": 6, "max_distance": 9, "positions": "none", "scores": "dot"},
    "output bias": {"output_bias": True},
    "output transform": {"output_transform": True, "activation": "gelu-tanh", "output_bias": True},
    "silu": {"activation": "silu"},
}


def make(part: str, **changes: Any) -> Transformer:
    sizes: dict[str, Any] = {
        "vocab_size": 20, "width": 16, "n_heads": 4, "n_encoder_layers": 2, "n_decoder_layers": 2,
        "feed_forward_width": 12, "max_length": 30, "dropout": 0.0,
    }  # fmt: skip
    torch.manual_seed(1)
    model = Transformer(ModelSettings(**{**sizes, **PARTS[part], **changes})).eval()
    shaken(model)
    return model


def ids(n_rows: int, length: int) -> Tensor:
    return torch.randint(4, 20, (n_rows, length), generator=torch.Generator().manual_seed(length))


@pytest.mark.parametrize("part", PARTS)
@torch.no_grad()
def test_explicit_and_fused_paths_and_caches_agree(part: str) -> None:
    model, source, target = make(part), ids(2, 7), ids(2, 12)
    whole = model(source, target)
    torch.testing.assert_close(model(source, target, tap=Tap()), whole, atol=1e-5, rtol=1e-5)
    state = model.start(source)
    steps = [model.output.logits(model.decode(target[:, i : i + 1], state)) for i in range(target.size(1))]
    torch.testing.assert_close(torch.cat(steps, 1), whole, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("part", PARTS)
def test_the_factors_of_the_output_give_the_logits(part: str) -> None:
    model = make(part)
    hidden = torch.randn(3, 5, 16, generator=torch.Generator().manual_seed(2))
    vectors, matrix = model.output.factors(hidden)
    torch.testing.assert_close(vectors @ matrix.T, model.output.logits(hidden))


@pytest.mark.parametrize("part", ["norms of queries and keys", "ranges of distances", "output transform"])
@torch.no_grad()
def test_removed_heads_are_gated_heads(part: str) -> None:
    from manyheads.compress.head_removal import remove_heads
    from manyheads.lens import ablation_gates, find_heads
    from manyheads.tasks import Masked, MaskedSettings

    from lens.makers import task_of

    model = make(part, shape="encoder")
    task = Masked(model, task_of("masked").tokenizer, MaskedSettings())
    off = find_heads(model, ["encoder.0.self/1", "encoder.1.self/0", "encoder.1.self/3"])
    smaller = remove_heads(task, off)
    with gated(model, ablation_gates(model, off)):
        expected = model(ids(2, 9))
    torch.testing.assert_close(smaller.model(ids(2, 9)), expected, atol=1e-5, rtol=1e-5)


def test_ranges_of_distances() -> None:
    positions = torch.arange(40)[None]
    both = BucketedPositions(2, 8, 16, is_causal=False)
    buckets = both._bucket(positions[:, None, :] - positions[:, :, None])[0]
    assert buckets[20, 20:24].tolist() == [0, 5, 6, 6]  # after the query: 4 and more
    assert buckets[20, 17:20].tolist() == [2, 2, 1]
    assert buckets[20, 0] == 3 and buckets[0, 39] == 7  # far away
    causal = BucketedPositions(2, 8, 16, is_causal=True)
    own = causal._bucket(positions[:, None, :] - positions[:, :, None])[0]
    assert own[20, 17:24].tolist() == [3, 2, 1, 0, 0, 0, 0]
    assert own[39, 0] == 7


def test_rotary_angles_with_another_base_and_scaling() -> None:
    x = torch.zeros(1, 1, 1, 4)
    x[..., 0::2] = 1.0
    rotated = RotaryPositions(4, 100.0, (1.0, 0.5)).rotate(x, torch.tensor([[3]]))[0, 0, 0]
    assert rotated[1].item() == pytest.approx(math.sin(3.0))
    assert rotated[3].item() == pytest.approx(math.sin(3.0 / 10.0 * 0.5))


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"rotary_scaling": (1.0,)}, r"^model\.rotary_scaling has 1 factors, one for each pair of features"),
        ({"distance_buckets": 4, "positions": "alibi"}, r"^model\.distance_buckets = 4 needs positions outside"),
        ({"output_transform": True, "activation": "swiglu"}, r"^model\.output_transform has no gate"),
    ],
)
def test_parts_that_do_not_fit_together(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(RecipeError, match=fault):
        ModelSettings(vocab_size=20, width=16, n_heads=4, **changes)


@pytest.mark.parametrize("part", [part for part in PARTS if part not in ("output bias", "silu")])
def test_the_native_engine_names_what_it_lacks(part: str) -> None:
    with pytest.raises(EngineError, match=r"^The native engine does not support model\."):
        refuse(make(part).settings)
