import math
import zlib

import numpy as np
import pytest
import torch

from manyheads.errors import LensError
from manyheads.lens import Head, trace
from manyheads.lens.traces.head_maps import THUMBNAIL, decode_map, encode_map, head_maps

from lens.makers import KINDS, SHORT, TEXTS, task_of


@pytest.mark.parametrize("kind", KINDS)
def test_maps_are_those_of_the_trace(kind: str) -> None:
    task = task_of(kind)
    recorded = trace(task, TEXTS[kind], search=SHORT)
    maps = head_maps(task.model, recorded.model_input)
    for head in recorded.heads:
        weights, norms = recorded.weights(head).numpy(), recorded.norms(head).numpy()
        traced, measured = recorded[head.attention], maps.attentions[head.attention]
        # Half a step of √(weight / scale) is 1 / 510, so the error of a weight w is about √(w · scale) / 255.
        bound = np.sqrt(weights * weights.max()) / 255 + 1e-5
        assert (np.abs(maps.weights(head) - weights) <= bound).all()
        assert (np.abs(maps.norms(head) - norms) <= bound * measured.value_norms[head.number] + 1e-5).all()
        assert measured.key_means[head.number] == pytest.approx(weights.mean(0), abs=1e-5)
        entropy = -(weights * np.log2(np.maximum(weights, 1e-30))).sum(-1).mean()
        assert measured.entropies[head.number] == pytest.approx(entropy, abs=1e-4)
        if not head.attention.endswith("cross"):
            gaps = np.abs(np.subtract.outer(np.arange(len(traced.queries)), np.arange(len(traced.keys))))
            assert measured.distances[head.number] == pytest.approx((weights * gaps).sum(-1).mean(), rel=1e-4)


def test_bytes_keep_the_mass_of_long_rows() -> None:
    torch.manual_seed(0)
    weights = torch.randn(4, 512, 512).softmax(-1)
    steps, scales = encode_map(weights)
    sums = np.stack([decode_map(one, float(scale)).sum(-1) for one, scale in zip(steps, scales, strict=True)])
    assert np.abs(sums - 1).mean() < 0.002


@pytest.mark.parametrize("is_short", [True, False])
@pytest.mark.parametrize("kind", ["weights", "norms"])
def test_deflated_bytes_hold_the_map(kind: str, is_short: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyheads.lens.traces.head_maps._MAX_EXACT", 10_000 if is_short else 0)
    task = task_of("classify")
    model_input = task.model_input(TEXTS["classify"])
    recorded, maps = trace(task, TEXTS["classify"]), head_maps(task.model, model_input)
    head, shape = Head("encoder.0.self", 1), (len(model_input.source), len(model_input.source))
    content, scale = maps.deflated(head, kind)
    expected = (recorded.weights(head) if kind == "weights" else recorded.norms(head)).numpy()
    if is_short:
        values = np.frombuffer(zlib.decompress(content), dtype="<f4").reshape(shape)
        assert scale == 1.0
        assert values == pytest.approx(expected, abs=1e-6)
    else:
        values = decode_map(np.frombuffer(zlib.decompress(content), dtype=np.uint8).reshape(shape), scale)
        assert values == pytest.approx(expected, abs=float(expected.max()) / 100)


@pytest.mark.parametrize(("n_queries", "n_keys"), [(1, 1), (5, 40), (100, 33), (512, 512)])
def test_thumbnails_show_the_largest_weight_of_each_block(n_queries: int, n_keys: int) -> None:
    from manyheads.lens.traces.head_maps import _attention_maps

    weights = torch.zeros(2, n_queries, n_keys)
    weights[:, :, 0] = 0.75
    weights[0, n_queries - 1, n_keys - 1] = 0.25 if n_keys > 1 else 0.75
    maps = _attention_maps(weights, torch.ones(2, n_keys), is_cross=n_queries != n_keys)
    assert maps.thumbnails.shape == (2, min(n_queries, THUMBNAIL), min(n_keys, THUMBNAIL))
    assert abs(int(maps.thumbnails[0, 0, 0]) - 255 * math.sqrt(0.75)) <= 1
    if n_keys > 1:
        assert abs(int(maps.thumbnails[0, -1, -1]) - 255 * math.sqrt(0.25)) <= 2
        assert maps.thumbnails[1, -1, -1] == 0


def test_unknown_heads_and_kinds_are_refused() -> None:
    task = task_of("classify")
    maps = head_maps(task.model, task.model_input(TEXTS["classify"]))
    with pytest.raises(LensError, match=r"There is no head decoder\.0\.cross/0"):
        maps.weights(Head("decoder.0.cross", 0))
    with pytest.raises(LensError, match="has heads 0 to"):
        maps.weights(Head("encoder.0.self", 99))
    with pytest.raises(LensError, match="weights or norms"):
        maps.deflated(Head("encoder.0.self", 0), "scores")


def test_nan_is_refused() -> None:
    with pytest.raises(LensError, match="NaN"):
        encode_map(torch.full((1, 2, 2), math.nan))
