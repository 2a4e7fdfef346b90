"""`manyheads heads`: importance and pruning."""

import json
from pathlib import Path

from manyheads import load

from cli.conftest import Run

FEW = ("--sample", "3")


def test_pruning_writes_an_ordinary_bundle_and_its_curve(manyheads: Run, bundle_folder: Path) -> None:
    done = manyheads("heads", bundle_folder, "--prune", "0.4", "--method", "gradient", "-o", "small", *FEW)
    assert done.returncode == 0, done.stderr
    small = bundle_folder.parent / "small"
    assert "5 heads removed · 已移除 5 个头 (n = 3)" in done.stdout
    assert "manyheads evaluate small" in done.stdout
    model = load(small).task.model
    assert sum(attention.heads.n_heads for attention in model.attentions()) == 7
    payload = json.loads((small.parent / "small.curve.json").read_text("utf-8"))
    assert payload["by"] == "gradient"
    assert len(payload["order"]) == 5
    assert payload["points"][-1]["n_heads"] == 7
    assert (small.parent / "small.curve.svg").read_text("utf-8").startswith("<svg")

    again = manyheads("heads", bundle_folder, "--prune", "0.4", "-o", "small", *FEW)
    assert again.returncode == 1
    assert again.stderr == "Error: small is there already. Choose another folder with -o, or add --overwrite.\n"
    (bundle_folder.parent / "mine").mkdir()
    done = manyheads("heads", bundle_folder, "--prune", "0.4", "-o", "mine", "--overwrite", *FEW)
    assert done.stderr == "Error: mine is there already and is no bundle. Choose another folder with -o.\n"


def test_importance_of_every_head_and_attention(manyheads: Run, bundle_folder: Path) -> None:
    done = manyheads("heads", bundle_folder, "--importance", "--json", "--sample", "3")
    assert done.returncode == 0, done.stderr
    payload = json.loads(done.stdout)
    assert payload["sample"] == 3
    assert len(payload["gradient"]) == 12
    assert len(payload["ablation"]) == 12 + 3
    assert set(payload["sum_of_single"]) == {"encoder.0.self", "decoder.0.self", "decoder.0.cross"}
    shown = manyheads("heads", bundle_folder, "--importance", "--sample", "2").stdout
    assert "decoder.0.cross/3" in shown
    assert "ρ = " in shown


def test_wrong_wishes_are_one_line(manyheads: Run, bundle_folder: Path) -> None:
    assert "exclude one another" in manyheads("heads", bundle_folder, "--importance", "--prune", "0.4").stderr
    done = manyheads("heads", bundle_folder, "--prune", "1")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: 1 is no share of the heads.")
    assert "is the bundle itself" in manyheads("heads", bundle_folder, "--prune", "0.4", "-o", bundle_folder).stderr


def test_a_rate_without_tuning_is_refused(manyheads: Run, bundle_folder: Path) -> None:
    done = manyheads("heads", bundle_folder, "--prune", "0.5", "--learning-rate", "0.01")
    assert done.returncode == 2
    assert "--learning-rate is for --fine-tune" in done.stderr
    fast = manyheads("heads", bundle_folder, "--prune", "0.5", "--fine-tune", 5, "--learning-rate", 2)
    assert fast.returncode == 1
    assert "A learning rate of 2 is none. Give one like 0.0005." in fast.stderr
