import pytest
import torch
from torch import Tensor

from manyheads.decode import DecodeSettings
from manyheads.lens import find_heads, gated
from manyheads.lens.gating import ablation_gates
from manyheads.model import ModelSettings, Transformer

from model.makers import describe, largest_difference, product_of, random_ids, shaken, small

SETTINGS = [
    *product_of(scores=["scaled-dot", "additive"], projections=["separate", "tied", "none"], n_key_heads=[0, 1]),
    small(attention_bias=True, value_width=3),
    small(positions="alibi"),
]
GATES = {
    "encoder.0.self": torch.tensor([0.0, 1.5]),
    "decoder.1.self": torch.tensor([0.5, 0.0]),
    "decoder.0.cross": torch.zeros(2),
}


def model_of(settings: ModelSettings) -> Transformer:
    torch.manual_seed(0)
    return shaken(Transformer(settings))


def run(model: Transformer, gates: dict[str, Tensor] | None = None) -> Tensor:
    is_real = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    return model(random_ids(2, 5), random_ids(2, 4, seed=1), source_is_real=is_real, gates=gates)


@pytest.mark.parametrize("settings", SETTINGS, ids=describe)
def test_it_is_the_models_own_gates(settings: ModelSettings) -> None:
    model = model_of(settings)
    with gated(model, GATES):
        out = run(model)
    assert largest_difference(out, run(model, GATES)) < 1e-6
    assert largest_difference(out, run(model)) > 1e-3


def test_afterwards_the_model_is_as_it_was_even_after_an_error() -> None:
    model = model_of(small())
    before = run(model)
    with pytest.raises(KeyError), gated(model, GATES):
        raise KeyError
    assert torch.equal(run(model), before)


@pytest.mark.parametrize("bias", [False, True])
def test_a_silenced_head_is_one_whose_columns_of_the_output_matrix_are_zero(bias: bool) -> None:
    model = model_of(small(attention_bias=bias))
    with gated(model, ablation_gates(model, find_heads(model, ["decoder.0.cross/1"]))):
        out = run(model)
    with torch.no_grad():
        model.decoder[0].cross_attention.output.weight[:, 4:] = 0.0
    assert largest_difference(out, run(model)) < 1e-6


def test_a_gate_for_each_row_is_that_rows_alone() -> None:
    model = model_of(small())
    both = [dict.fromkeys(GATES, torch.tensor(gate)) for gate in ([1.0, 0.0], [0.3, 1.0])]
    rows = {name: torch.stack([both[0][name], both[1][name]]) for name in GATES}
    with gated(model, rows):
        out = run(model)
    for row, gates in enumerate(both):
        assert largest_difference(out[row], run(model, gates)[row]) < 1e-6


def test_gates_made_for_each_pass_carry_a_gradient() -> None:
    model = model_of(small())
    gate = torch.ones(2, 2, requires_grad=True)
    with gated(model, {"encoder.0.self": lambda n_rows: gate[:n_rows]}):
        run(model).sum().backward()
    assert gate.grad is not None
    assert (gate.grad != 0).all()


def test_decoding_works_with_heads_silenced(untrained) -> None:
    task = untrained.task
    heads = find_heads(task.model, ["decoder.0.cross"])
    settings = DecodeSettings(method="beam", beam=3)
    with gated(task.model, ablation_gates(task.model, heads)):
        found = [one.answer for one in task.predict(["the cat sleeps", "a dog"], settings)]
    assert found[0] == found[1]  # nothing of the source is seen any more


def test_gates_that_do_not_fit_are_refused() -> None:
    model = model_of(small())
    with pytest.raises(ValueError, match=r"no attention encoder\.0\.slf to gate\. Did you mean encoder\.0\.self\?"):
        gated(model, {"encoder.0.slf": torch.ones(2)}).__enter__()
    with pytest.raises(ValueError, match=r"encoder\.0\.self needs 2 gates, one a head, not \[3\]\."):
        gated(model, {"encoder.0.self": torch.ones(3)}).__enter__()
