"""The lines on time and memory of `init` and `plan`: when idle, and beside the present load, in 80 columns."""

from dataclasses import replace

import click
import pytest
from click.testing import CliRunner

from manyheads.cli.init import _cost, _load_notes
from manyheads.cli.plan import _show_memory, _show_time
from manyheads.cli.root import cell_width
from manyheads.language import Language, using
from manyheads.model.flops import BatchShape
from manyheads.plan.run_plan import Trial, make_plan
from manyheads.proposals.cost_estimate import Machine
from manyheads.proposals.fitted_recipe import Plan

from proposals.test_fitted_recipe import ESTIMATE, plan_of

MACHINE = Machine(device="cpu", n_threads=2, n_cores=2, load=10.0)


def busy(n_busy: int, slowdown: float) -> Plan:
    plan = plan_of(29_000, budget=1600.0)
    return replace(plan, estimate=replace(plan.estimate, slowdown=slowdown, n_busy=n_busy))


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        (
            "en",
            "about 25 min on this machine when idle (2 threads); 1.0 GB of memory\n"
            "          beside its present load (10 busy processes) about 2 h 31",
        ),
        ("zh", "本机空闲时约需 25 分钟（2 线程）；内存 1.0 GB\n          按目前负载（10 个繁忙进程）约 2 小时 31 分"),
    ],
)
def test_init_names_the_idle_time_and_that_beside_the_present_load(language: Language, expected: str) -> None:
    with using(language):
        plan = busy(10, 6.0)
        assert _cost(plan, MACHINE) == expected
        assert len(_load_notes(plan)) == 1
        first, second = expected.split("\n")
        for line in (f"{'':10}{first}", second, *(f"{'':10}{note}" for note in _load_notes(plan))):
            assert cell_width(line) <= 80, line


def test_init_on_an_idle_machine_names_no_load() -> None:
    with using("en"):
        plan = busy(0, 1.0)
        assert _cost(plan, MACHINE) == "about 25 min on this machine when idle (2 threads); 1.0 GB of memory"
        assert not _load_notes(plan)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", ("when idle", "beside its present load (1 process)", "Python, PyTorch and text")),
        ("zh", ("空闲时", "按目前负载（1 个繁忙进程）", "Python、PyTorch 与文本")),
    ],
)
def test_plan_shows_the_same_in_80_columns(language: Language, expected: tuple[str, ...]) -> None:
    recipe = plan_of(29_000).recipe
    estimate = replace(ESTIMATE, slowdown=1.5, n_busy=1, batches=(BatchShape.of_rows(50, 20, 20),))
    made = make_plan(recipe, trial=Trial(estimate, recipe.train.batch_tokens))

    @click.command()
    def show() -> None:
        _show_memory(made)
        _show_time(made)

    with using(language):
        output = CliRunner().invoke(show).output
    for text in expected:
        assert text in output
    assert all(cell_width(line) <= 80 for line in output.splitlines())
