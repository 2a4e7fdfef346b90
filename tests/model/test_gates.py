import pytest
import torch
from torch import Tensor

from manyheads.model import ModelSettings, Tap, Transformer, gated

from model.makers import describe, largest_difference, product_of, random_ids, shaken, small

SETTINGS = [
    *product_of(scores=["scaled-dot", "additive"], projections=["separate", "tied"], n_key_heads=[2, 1]),
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


def run(model: Transformer, tap: Tap | None = None) -> Tensor:
    is_real = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    return model(random_ids(2, 5), random_ids(2, 4, seed=1), source_is_real=is_real, tap=tap)


def scale_output_columns(model: Transformer, gates: dict[str, Tensor]) -> None:
    """Multiply the columns of W^O that read each head by its gate: the reference."""
    for attention in model.attentions():
        if attention.name in gates:
            columns = attention.output.weight.data.unflatten(1, (attention.heads.n_heads, -1))
            columns *= gates[attention.name][:, None]


@pytest.mark.parametrize("tap", [None, Tap()], ids=["fused", "explicit"])
@pytest.mark.parametrize("settings", SETTINGS, ids=describe)
def test_gates_equal_scaled_columns_of_the_output_matrix(settings: ModelSettings, tap: Tap | None) -> None:
    model = model_of(settings)
    with gated(model, GATES):
        output = run(model, tap)
    assert largest_difference(output, run(model, tap)) > 1e-3
    scale_output_columns(model, GATES)
    assert largest_difference(output, run(model, tap)) < 1e-5


def test_gates_scale_heads_of_a_model_without_projections() -> None:
    model = model_of(small(projections="none", n_encoder_layers=1))
    tap = Tap()
    with gated(model, {"encoder.0.self": torch.tensor([0.0, 1.5])}):
        run(model, tap)
    heads = tap["encoder.0.self.heads"] * torch.tensor([0.0, 1.5])[:, None, None]
    assert torch.equal(tap["encoder.0.self.output"], heads.transpose(1, 2).flatten(2))


def test_gates_of_one_change_nothing_and_gates_of_zero_do() -> None:
    model = model_of(small())
    plain = run(model)
    for attention in model.attentions():
        with gated(model, {attention.name: torch.ones(2)}):
            assert torch.equal(run(model), plain)
        for ablated in range(2):
            with gated(model, {attention.name: torch.ones(2).index_fill(0, torch.tensor(ablated), 0.0)}):
                assert largest_difference(run(model), plain) > 1e-4


def test_the_model_is_restored_after_the_block_even_after_an_error() -> None:
    model = model_of(small())
    before = run(model)
    with pytest.raises(KeyError), gated(model, GATES):
        assert model.is_gated
        raise KeyError
    assert not model.is_gated
    assert torch.equal(run(model), before)


def test_inner_gates_replace_outer_gates_of_the_same_attention() -> None:
    model = model_of(small())
    with gated(model, {"encoder.0.self": torch.zeros(2)}):
        outer = run(model)
        with gated(model, {"encoder.0.self": torch.ones(2)}):
            inner = run(model)
        assert torch.equal(run(model), outer)
    assert torch.equal(inner, run(model))
    assert not torch.equal(inner, outer)


def test_a_gate_per_row_applies_to_that_row_alone() -> None:
    model = model_of(small())
    both = [dict.fromkeys(GATES, torch.tensor(gate)) for gate in ([1.0, 0.0], [0.3, 1.0])]
    with gated(model, {name: torch.stack([both[0][name], both[1][name]]) for name in GATES}):
        output = run(model)
    for row, gates in enumerate(both):
        with gated(model, gates):
            assert largest_difference(output[row], run(model)[row]) < 1e-6


@pytest.mark.parametrize(
    "gate", [torch.tensor([0.0, 1.0]), torch.tensor([[0.0, 0.5], [1.0, 0.0]])], ids=["all", "rows"]
)
def test_a_replacement_stands_in_for_what_the_gate_takes_away(gate: Tensor) -> None:
    model, tap, values = model_of(small()), Tap(), torch.randn(2, 1, 4, generator=torch.Generator().manual_seed(1))
    seen = []

    def replacement(heads: Tensor) -> Tensor:
        seen.append(heads)
        return values.expand(2, heads.size(2), 4)

    with gated(model, {"decoder.1.cross": gate}, {"decoder.1.cross": replacement}):
        run(model, tap)
    heads, share = tap["decoder.1.cross.heads"], gate[..., None, None]
    assert heads.shape[-1] == 4
    assert torch.equal(seen[0], heads)
    output = model.decoder[1].cross_attention.output((share * heads + (1 - share) * values).transpose(1, 2).flatten(2))
    assert largest_difference(tap["decoder.1.cross.output"], output) < 1e-6
    assert model.decoder[1].cross_attention.replacement is None


def test_a_replacement_by_the_heads_themselves_changes_nothing() -> None:
    model = model_of(small())
    plain = run(model)
    with gated(model, GATES, {name: lambda heads: heads for name in GATES if name != "encoder.0.self"}):
        with gated(model, {"encoder.0.self": torch.ones(2)}):
            assert largest_difference(run(model), plain) < 1e-5
        assert largest_difference(run(model), plain) > 1e-3


def test_gates_receive_gradients() -> None:
    model, gate = model_of(small()), torch.ones(2, requires_grad=True)
    with gated(model, {"decoder.1.cross": gate}):
        run(model).sum().backward()
    assert gate.grad is not None
    assert (gate.grad != 0).all()


def test_a_gate_factory_is_called_with_the_number_of_rows() -> None:
    model, gate = model_of(small()), torch.ones(2, 2, requires_grad=True)
    with gated(model, {"encoder.0.self": lambda n_rows: gate[:n_rows]}):
        run(model).sum().backward()
    assert gate.grad is not None
    assert (gate.grad != 0).all()


@pytest.mark.parametrize(
    ("name", "n_gates", "fault"),
    [
        ("decoder.1.corss", 2, "There is no attention decoder.1.corss to gate. Did you mean decoder.1.cross?"),
        ("decoder.1.cross", 1, "decoder.1.cross has 2 heads and needs one gate per head, not a tensor of [1]."),
        ("encoder.0.self", 3, "encoder.0.self has 2 heads and needs one gate per head, not a tensor of [3]."),
    ],
)
def test_gates_that_do_not_fit_are_refused(name: str, n_gates: int, fault: str) -> None:
    model = model_of(small())
    with pytest.raises(ValueError) as caught, gated(model, {name: torch.ones(n_gates)}):
        pass
    assert str(caught.value) == fault
    assert not model.is_gated


def test_a_factory_whose_gates_do_not_fit_is_refused_in_the_forward_pass() -> None:
    model = model_of(small())
    with (
        pytest.raises(ValueError, match=r"encoder\.0\.self has 2 heads and needs one gate per head"),
        gated(model, {"encoder.0.self": lambda n_rows: torch.ones(n_rows, 1)}),
    ):
        run(model)
