import math
import tomllib

import pytest

from manyheads.errors import RecipeError
from manyheads.settings import build, to_table, to_toml
from manyheads.training import TrainSettings

FAULTS: dict[str, dict[str, float]] = {
    "train.steps = 0 must be at least 1 and at most 1,000,000,000.": {"steps": 0},
    "train.patience = 0 must be at least 1 and at most 1,000,000,000.": {"patience": 0},
    "train.learning_rate = 0.0 must be greater than 0 and finite.": {"learning_rate": 0.0},
    "train.learning_rate = inf must be greater than 0 and finite.": {"learning_rate": math.inf},
    "train.clip_norm = 0.0 must be greater than 0. Use inf for no clipping.": {"clip_norm": 0.0},
    "train.clip_norm = nan must be greater than 0. Use inf for no clipping.": {"clip_norm": math.nan},
    "train.weight_decay = -1.0 must be at least 0 and finite.": {"weight_decay": -1.0},
    "train.ema_decay = 0.0 must be greater than 0 and less than 1. 0.999 is typical.": {"ema_decay": 0.0},
    "train.ema_decay = 1.0 must be greater than 0 and less than 1. 0.999 is typical.": {"ema_decay": 1.0},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_reported(fault: str) -> None:
    with pytest.raises(RecipeError) as caught:
        TrainSettings(**FAULTS[fault])  # type: ignore[arg-type]
    assert caught.value.faults == (fault,)


def test_faults_are_reported_together() -> None:
    with pytest.raises(RecipeError) as caught:
        TrainSettings(steps=0, clip_norm=-1.0)
    assert caught.value.faults == (
        "train.steps = 0 must be at least 1 and at most 1,000,000,000.",
        "train.clip_norm = -1.0 must be greater than 0. Use inf for no clipping.",
    )


@pytest.mark.parametrize(
    "changes", [{}, {"learning_rate": 0.001, "patience": 3, "ema_decay": 0.9, "validation_metric": "chrF"}]
)
def test_unset_settings_are_absent_from_toml(changes: dict[str, object]) -> None:
    settings = TrainSettings(clip_norm=math.inf, **changes)  # type: ignore[arg-type]
    table = to_table(settings)
    optional = {"learning_rate", "patience", "ema_decay", "validation_metric"}
    assert {name: value for name, value in table.items() if name in optional} == changes
    assert build(TrainSettings, tomllib.loads(to_toml(table)), "train.") == settings
