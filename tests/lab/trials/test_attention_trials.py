from functools import partial

import pytest
import torch
from torch import nn

from manyheads.lab.lab_tasks import PAD, Lookup, Reorder, Text
from manyheads.lab.setup import Setup
from manyheads.lab.trial import Trained, count_parameters, untrained
from manyheads.lab.trials.attention_trials import (
    additivity_error,
    cache_bytes,
    head_differences,
    head_row_sums,
    input_dependence,
    jensen_shannon,
    pass_milliseconds,
    self_weight,
)
from manyheads.lab.trials.variants import with_output_projection, with_score_scale
from manyheads.model import Transformer

SMALL = {
    "width": 16,
    "n_encoder_layers": 2,
    "n_decoder_layers": 2,
    "feed_forward_width": 16,
    "n_heads": 4,
    "norm_placement": "pre",
    "max_length": 32,
}


def model_of(**changes: object) -> Trained:
    return untrained(Setup(model=SMALL, task=Lookup()).changed(changes), seed=1)


def uniform(model: nn.Module) -> nn.Module:
    return with_score_scale(model, power=50.0)


def test_each_head_sums_to_one_and_all_heads_to_their_number() -> None:
    assert head_row_sums(model_of()) == pytest.approx((1.0, 4.0), abs=1e-6)


def test_self_weight_of_uniform_attention_is_one_in_n_without_padding() -> None:
    trained = model_of(alter=uniform, task=Lookup(n_records=(2, 8)))
    source = trained.tapped()[0].source
    assert source is not None
    n_real = int((source != PAD).sum())
    assert n_real < source.numel()
    assert self_weight(trained) == pytest.approx(len(source) / n_real, abs=1e-6)


def test_tied_projections_attend_to_themselves_before_training() -> None:
    tied = {"model.projections": "tied", "model.head_width": 16}
    assert self_weight(model_of(**tied)) > 2 * self_weight(model_of(**{"model.head_width": 16}))


@pytest.mark.parametrize("kind", ["full", "block", "identity"])
def test_every_linear_output_projection_is_additive(kind: str) -> None:
    alter = None if kind == "full" else partial(with_output_projection, kind=kind)
    assert additivity_error(model_of(alter=alter)) < 1e-12


def test_a_nonlinear_output_projection_is_not_additive() -> None:
    trained = model_of()
    assert isinstance(trained.model, Transformer)
    attention = trained.model.attentions()[0]
    attention.output = nn.Sequential(attention.output, nn.ReLU())
    assert additivity_error(trained) > 0.1


def test_weights_depend_on_the_input_unless_they_are_a_fixed_table() -> None:
    assert input_dependence(model_of()) > 0.01
    assert input_dependence(model_of(**{"model.scores": "random-synthesizer"})) == 0.0


def test_shared_parameters_count_once() -> None:
    tied, untied = model_of(), model_of(**{"model.tie_output": False})
    assert count_parameters(untied.model) - count_parameters(tied.model) == Lookup().vocab_size * 16


def test_a_pass_takes_processor_time() -> None:
    assert pass_milliseconds(Setup(model=SMALL, task=Reorder("previous")), 1, n_passes=1) > 0.0


def test_divergence_is_zero_for_equal_rows_and_one_bit_for_disjoint_rows() -> None:
    first, second = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    assert jensen_shannon(first, first) == pytest.approx(0.0)
    assert jensen_shannon(first, second) == pytest.approx(1.0)


def test_uniform_heads_do_not_differ() -> None:
    found = head_differences(model_of(alter=uniform))
    apart = (torch.arange(9.0)[:, None] - torch.arange(9.0)).abs().mean()  # a query and eight records
    assert found.distances == (pytest.approx((float(apart),) * 4), pytest.approx((float(apart),) * 4))
    assert found.distance == pytest.approx(float(apart))
    assert found.distance_range == pytest.approx(0.0, abs=1e-5)
    assert found.entropy == pytest.approx(1.0)
    assert found.divergence == pytest.approx(0.0, abs=1e-6)


def test_entropy_is_relative_to_the_visible_keys() -> None:
    assert head_differences(model_of(alter=uniform, task=Text("causal", n_train=50))).entropy > 0.85


def test_random_heads_differ() -> None:
    found = head_differences(model_of())
    assert found.divergence > 0.01
    assert found.distance_range > 0.01
    assert found.entropy < 0.999


@pytest.mark.parametrize("n_key_heads", [4, 2, 1])
def test_computed_cache_is_the_size_of_the_real_one(n_key_heads: int) -> None:
    model = model_of(**{"task": Text("causal", n_train=50), "model.n_key_heads": n_key_heads}).model
    assert isinstance(model, Transformer)
    state = model.start(n_rows=1)
    model.decode(torch.tensor([[1, 4, 5]]), state)
    stored = state.caches[0][0].keys_values
    assert stored is not None
    assert cache_bytes(model) * 3 == sum(one.half().nbytes for one in stored)
