"""Checks of bundles: damaged weights and collapsed outputs."""

from pathlib import Path

import pytest
import torch
from torch import nn

from manyheads.bundle import Bundle
from manyheads.doctor.model_checks import (
    check_bundle,
    check_dead_rows,
    check_finite_weights,
    sample_rows,
)
from manyheads.model.weights import weights_of
from manyheads.settings import to_table
from manyheads.tasks.tag.tag_training import NgramTagger
from manyheads.tasks.task_doctor import check_outputs, is_repetitive


def test_untrained_bundle_is_intact_but_collapsed(untrained: Bundle, tmp_path: Path) -> None:
    untrained.save(tmp_path / "b")
    found = {finding.check: finding for finding in check_bundle(tmp_path / "b")}
    assert [found[name].verdict for name in ("manifest", "finite weights", "dead rows")] == ["good"] * 3
    assert "sentences" in found["output collapse"].message
    (tmp_path / "b" / "weights.safetensors").write_bytes(b"x")
    assert [finding.verdict for finding in check_bundle(tmp_path / "b")] == ["bad"]


def test_nan_weights_and_dead_rows(untrained: Bundle) -> None:
    weights = {name: value.clone() for name, value in weights_of(untrained.task.model).items()}
    assert check_finite_weights(weights).verdict == "good"
    assert check_dead_rows(weights).verdict == "good"
    name = next(name for name, value in weights.items() if value.dim() == 2 and len(value) > 4)
    weights[name][:4] = 0.0
    weights[name][4:] = 0.0
    assert check_dead_rows(weights).verdict in ("warning", "bad")
    weights[name][0, 0] = torch.nan
    finding = check_finite_weights(weights)
    assert finding.verdict == "bad"
    assert finding.examples[0].startswith(f"{name}: 1 of ")


def test_tables_of_ngrams_are_sparse_but_not_dead() -> None:
    module = nn.ModuleDict({"tagger": NgramTagger(5, 2, 0.0)})
    weights = weights_of(module)
    assert check_dead_rows(weights).verdict == "bad"
    assert check_dead_rows(weights, {"tagger.evidence"}).verdict == "good"


def test_sources_come_from_the_test_set_or_the_built_in_corpus(untrained: Bundle) -> None:
    table = dict(untrained.recipe)
    assert len(sample_rows(table)) > 20
    gone = {"data": {"train": ["/nowhere/a.en", "/nowhere/a.zh"]}, "model": {"preset": "tiny"}}
    assert len(sample_rows({**gone, "task": {"source_language": "en", "target_language": "zh"}})) > 20
    assert sample_rows({**gone, "task": {"source_language": "sw", "target_language": "zh"}}) == []
    assert sample_rows({"model": 3}) == []
    assert to_table(untrained.decode)  # the fixture's settings are complete


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (["Same."] * 10, "10 have the same"),
        ([f"go on {n} and on and on and on and on" for n in range(10)], "10 are repetitive"),
        ([f"Source {n}." for n in range(10)], "10 are copied"),
        ([""] * 10, "10 are empty"),
    ],
)
def test_collapse(outputs: list[str], message: str) -> None:
    finding = check_outputs("output collapse", [f"Source {n}." for n in range(10)], outputs)
    assert finding.verdict == "bad"
    assert message in finding.message
    assert finding.examples


def test_varied_outputs_are_good() -> None:
    finding = check_outputs("output collapse", [f"Source {n}." for n in range(10)], [f"Ziel {n}." for n in range(10)])
    assert finding.verdict == "good"


def test_repeats() -> None:
    assert is_repetitive("今天早上今天早上今天早上今天早上")
    assert is_repetitive("a man a man a man a man")
    assert not is_repetitive("哈哈哈")
    assert not is_repetitive("Two cats and two dogs and two birds are here.")
