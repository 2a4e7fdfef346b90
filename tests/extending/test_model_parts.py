"""Adding a norm or a score form from outside the package: one file and one line of registration each."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

from manyheads.model import ModelSettings, Tap, Transformer
from manyheads.model.blocks import make_cross_attention
from manyheads.model.norms import NORMS
from manyheads.model.score_forms import SCORE_FORMS
from manyheads.settings import build, to_table
from manyheads.training import Trainer, TrainSettings

from model.makers import small
from training.copying import Copying

_NORM = """
import torch
from manyheads.model.norms import NORMS, Norm


class MaxNorm(Norm):
    def forward(self, x, is_real):
        return self.weight * x / (x.abs().amax(dim=-1, keepdim=True) + self.epsilon)


NORMS["max"] = MaxNorm
"""

_SCORE_FORM = """
import torch
from manyheads.model.score_forms import SCORE_FORMS, ScoreForm


class NegativeDistance(ScoreForm):
    def __init__(self, heads, max_length):
        super().__init__(heads, max_length)
        self.weight = torch.nn.Parameter(torch.ones(heads.n_heads, 1, 1))

    def forward(self, q, k, view):
        return -self.weight * torch.cdist(q, k)


SCORE_FORMS["distance"] = NegativeDistance
"""


@pytest.fixture(autouse=True)
def restore_registries() -> Iterator[None]:
    norms, score_forms = dict(NORMS), dict(SCORE_FORMS)
    yield
    for registry, before in ((NORMS, norms), (SCORE_FORMS, score_forms)):
        registry.clear()
        registry.update(before)


def import_file(path: Path, source: str) -> ModuleType:
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def train_a_few_steps(settings: ModelSettings) -> tuple[Transformer, list[float]]:
    torch.manual_seed(0)
    model = Transformer(settings)
    train = TrainSettings(steps=60, warmup=5, learning_rate=0.02)
    trainer = Trainer(model, Copying(model), train, width=settings.width, seed=1)
    return model, [step.loss for step in trainer.run()]


def test_a_norm_from_outside_the_package(tmp_path: Path) -> None:
    kind = import_file(tmp_path / "max_norm.py", _NORM).MaxNorm
    settings = small(norm="max", norm_placement="pre")
    assert build(ModelSettings, to_table(settings), "model.") == settings
    model, losses = train_a_few_steps(settings)
    assert sum(isinstance(module, kind) for module in model.modules()) == 2 * 2 + 2 * 3 + 2
    assert losses[-1] < 0.8 * losses[0]


def test_a_score_form_from_outside_the_package(tmp_path: Path) -> None:
    kind = import_file(tmp_path / "negative_distance.py", _SCORE_FORM).NegativeDistance
    settings = small(scores="distance")
    assert build(ModelSettings, to_table(settings), "model.") == settings
    assert type(make_cross_attention("decoder.0.cross", settings).scores) is kind
    model, losses = train_a_few_steps(settings)
    assert all(type(attention.scores) is kind for attention in model.attentions())
    assert losses[-1] < 0.8 * losses[0]
    tap = Tap()
    ids = torch.tensor([[3, 4, 5]])
    model.eval()(ids, ids, tap=tap)
    assert (tap["encoder.0.self.scores"] <= 0).all()
