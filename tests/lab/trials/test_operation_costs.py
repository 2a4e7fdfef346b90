import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from manyheads.lab.trials.operation_costs import (
    FEED_FORWARD_WIDTH,
    N_HEADS,
    OPERATIONS,
    WIDTH,
    LargestTensor,
    _time,
    count_flops,
    make_cost_model,
    measure_operation,
)


@pytest.mark.parametrize("operation", ["explicit", "feed-forward"])
def test_computed_operations_are_those_that_pytorch_counts(operation: str) -> None:
    run = OPERATIONS[operation](make_cost_model(1), 12, 1).run
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        run()
    assert counter.get_total_flops() == count_flops(operation, 12)


def test_generation_without_cache_computes_every_prefix_again() -> None:
    layer = 8 * WIDTH**2 + 4 * WIDTH * FEED_FORWARD_WIDTH
    assert count_flops("cached", 3) == 3 * layer + 4 * WIDTH * (1 + 2 + 3)
    assert count_flops("uncached", 3) == 6 * layer + 4 * WIDTH * (1 + 4 + 9)


def test_only_explicit_attention_stores_the_matrix_of_weights() -> None:
    n = 300
    assert measure_operation("explicit", n, 1)["megabytes"] == pytest.approx(N_HEADS * n**2 * 4 / 1e6)
    assert measure_operation("fused", n, 1)["megabytes"] < n**2 * 4 / 1e6


def test_the_time_of_a_run_is_the_mean_of_as_many_as_fill_the_least_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("manyheads.lab.trials.operation_costs.time.process_time", lambda: clock[0])

    def run(seconds: float) -> None:
        clock[0] += seconds

    for seconds in (1e-3, 30.0):
        assert _time(lambda: run(seconds)) == pytest.approx(seconds)  # noqa: B023


def test_the_largest_tensor_counts_intermediate_results() -> None:
    with LargestTensor() as largest:
        _ = torch.zeros(10, 1) @ torch.zeros(1, 10) @ torch.zeros(10, 1)
    assert largest.n_bytes == 400
