import pytest
import torch

from manyheads.decode import DecodeSettings
from manyheads.errors import LensError
from manyheads.lens import Head, find_heads, heads_of
from manyheads.lens.heads import ablation_gates
from manyheads.model import Transformer, gated

from model.makers import largest_difference, random_ids, shaken, small


def test_head_name_round_trip() -> None:
    head = Head("decoder.3.cross", 0)
    assert str(head) == "decoder.3.cross/0"
    assert Head.parse(" decoder.3.cross/0 ") == head


@pytest.mark.parametrize(
    "text", ["", "3", "encoder.0.self", "encoder.0.self/", "encoder.0.self/-1", "encoder/0/self/2"]
)
def test_invalid_head_name_is_refused(text: str) -> None:
    with pytest.raises(LensError, match=r"is not a head\. Write attention/number, like encoder\.0\.self/2\."):
        Head.parse(text)


def test_heads_of_a_model_are_unique() -> None:
    names = [str(head) for head in heads_of(Transformer(small()))]
    assert len(names) == len(set(names)) == 2 * (2 + 2 * 2)
    assert names[:2] == ["encoder.0.self/0", "encoder.0.self/1"]
    assert "decoder.1.cross/1" in names


def test_find_heads_removes_duplicates_and_expands_attentions() -> None:
    heads = find_heads(Transformer(small()), ["decoder.0.cross", "encoder.1.self/1", Head("encoder.1.self", 1)])
    assert list(map(str, heads)) == ["encoder.1.self/1", "decoder.0.cross/0", "decoder.0.cross/1"]


def test_unknown_head_is_refused_with_a_suggestion() -> None:
    model = Transformer(small())
    with pytest.raises(LensError, match=r"There is no head encoder\.0\.self/2: encoder\.0\.self has heads 0 to 1\."):
        find_heads(model, ["encoder.0.self/2"])
    with pytest.raises(LensError, match=r"no head decoder\.1\.crosss/0\. Did you mean decoder\.1\.cross/0\?"):
        find_heads(model, ["decoder.1.crosss/0"])


@pytest.mark.parametrize("bias", [False, True])
def test_ablated_head_equals_zeroed_columns_of_the_output_matrix(bias: bool) -> None:
    torch.manual_seed(0)
    model = shaken(Transformer(small(attention_bias=bias)))
    source, target = random_ids(2, 5), random_ids(2, 4, seed=1)
    with gated(model, ablation_gates(model, find_heads(model, ["decoder.0.cross/1"]))):
        ablated = model(source, target)
    with torch.no_grad():
        model.decoder[0].cross_attention.output.weight[:, 4:] = 0.0
    assert largest_difference(ablated, model(source, target)) < 1e-6


def test_decoding_uses_the_gates(untrained) -> None:
    task = untrained.task
    settings = DecodeSettings(method="beam", beam=3)
    with gated(task.model, ablation_gates(task.model, find_heads(task.model, ["decoder.0.cross"]))):
        predictions = [one.answer for one in task.predict(["the cat sleeps", "a dog"], settings)]
    assert predictions[0] == predictions[1]  # without cross-attention the source has no influence
