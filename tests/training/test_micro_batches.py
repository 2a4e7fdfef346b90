"""Micro-batches: bounds, the number chosen for several processes, and world sizes that do not divide it."""

import pytest
import torch

from manyheads.errors import RecipeError
from manyheads.training import TrainSettings
from manyheads.training.micro_batches import check_divisible, choose_micro_batches, part_bounds, split_plan

from training.doubling import make_trainer


@pytest.mark.parametrize(
    ("n_rows", "n_parts", "expected"),
    [
        (4, 2, [(0, 2), (2, 4)]),
        (5, 3, [(0, 1), (1, 3), (3, 5)]),
        (1, 3, [(0, 0), (0, 0), (0, 1)]),
    ],
)
def test_bounds(n_rows: int, n_parts: int, expected: list[tuple[int, int]]) -> None:
    assert part_bounds(n_rows, n_parts) == expected


def test_one_part_is_the_plan_itself() -> None:
    plan = object()
    assert split_plan(None, plan, 1) == [plan]
    assert split_plan(None, [7, 8], 4) == [None, [7], None, [8]]


@pytest.mark.parametrize(
    ("n_processes", "accumulation_steps", "chosen"),
    [(1, 1, None), (2, 1, 4), (3, 1, 12), (8, 1, 8), (2, 2, 2), (4, 8, 1), (3, 2, 6)],
)
def test_chosen_number_suits_the_processes_and_1_2_and_4(
    n_processes: int, accumulation_steps: int, chosen: int | None
) -> None:
    settings = TrainSettings(accumulation_steps=accumulation_steps)
    assert choose_micro_batches(settings, n_processes) == chosen
    if chosen is not None:
        assert all(accumulation_steps * chosen % number == 0 for number in (n_processes, 1, 2, 4))


def test_a_number_that_is_set_is_kept() -> None:
    assert choose_micro_batches(TrainSettings(micro_batches=6), 2) == 6


def test_world_size_that_does_not_divide() -> None:
    check_divisible(TrainSettings(micro_batches=6), 3, is_started=False)
    with pytest.raises(
        RecipeError, match=r"^4 processes cannot share the 6 micro-batches .* Use train\.micro_batches = 12"
    ):
        check_divisible(TrainSettings(micro_batches=6), 4, is_started=False)
    with pytest.raises(
        RecipeError, match=r"and train\.accumulation_steps = 2\)\. Use train\.micro_batches = 3, or leave"
    ):
        check_divisible(TrainSettings(micro_batches=1, accumulation_steps=2), 3, is_started=False)
    with pytest.raises(
        RecipeError, match="started with them: resume it with 1 or 2 or 3 or 6 processes, or train into"
    ):
        check_divisible(TrainSettings(micro_batches=6), 4, is_started=True)
    with pytest.raises(
        RecipeError, match=r"2 processes cannot share an update of 1 micro-batch.*resume it with 1 process,"
    ):
        check_divisible(TrainSettings(), 2, is_started=True)


def test_parts_give_the_gradient_of_the_whole_batch() -> None:
    whole, parts, many = (make_trainer(dropout=0.0, steps=3, micro_batches=number) for number in (None, 3, 7))
    for trainer in (whole, parts, many):
        events = list(trainer.run())
        assert [event.n_tokens for event in events] == [4, 4, 4]
    for name, value in whole.weights().items():
        torch.testing.assert_close(parts.weights()[name], value)
        torch.testing.assert_close(many.weights()[name], value)  # three of its parts are empty


def test_seeds_of_micro_batches_are_all_different() -> None:
    trainer = make_trainer(steps=5, micro_batches=2, accumulation_steps=2)
    list(trainer.run())
    made = trainer.training_task.made  # type: ignore[attr-defined]
    assert len(made) == 20 and len(set(made)) == 20
