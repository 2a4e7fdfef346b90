"""`manyheads heads`: its subcommands, importance and pruning."""

import json
from pathlib import Path

from manyheads import corpora, load

from cli.conftest import Run

FEW = ("--sample", "3")


def test_prune_writes_an_ordinary_bundle_and_its_curve(manyheads: Run, bundle_folder: Path) -> None:
    options = ("--share", "0.4", "--method", "gradient", "-o", "small", *FEW)
    done = manyheads("heads", "prune", bundle_folder, *options, "--lang", "en")
    assert done.returncode == 0, done.stderr
    small = bundle_folder.parent / "small"
    assert "5 heads removed (n = 3)" in done.stdout
    assert "manyheads evaluate small" in done.stdout
    model = load(small).task.model
    assert sum(attention.heads.n_heads for attention in model.attentions()) == 7
    payload = json.loads((small.parent / "small.curve.json").read_text("utf-8"))
    assert payload["method"] == "gradient"
    assert payload["n_choosing"] == payload["n_measuring"] == 3
    assert len(payload["order"]) == 5
    assert payload["points"][-1]["n_heads"] == 7
    assert (small.parent / "small.curve.svg").read_text("utf-8").startswith("<svg")

    again = manyheads("heads", "prune", bundle_folder, *options)
    assert again.returncode == 1
    assert again.stderr == "Error: small already exists. Choose another folder with -o, or add --overwrite.\n"
    (bundle_folder.parent / "mine").mkdir()
    done = manyheads("heads", "prune", bundle_folder, "--share", "0.4", "-o", "mine", "--overwrite", *FEW)
    assert done.stderr == "Error: mine already exists and is not a bundle. Choose another folder with -o.\n"
    chinese = manyheads("heads", "prune", bundle_folder, *options, "--overwrite", "--lang", "zh")
    assert "已移除 5 个头（n = 3）" in chinese.stdout
    assert "heads removed" not in chinese.stdout


def test_prune_refuses_a_large_cost_and_writes_nothing(manyheads: Run, bundle_folder: Path, tmp_path: Path) -> None:
    sources = [source for source, _ in corpora.pairs("en", "zh", "valid", 8)]
    own = load(bundle_folder).predict(sources, method="greedy", max_new_tokens=5)  # BLEU 100 before pruning
    rows = tmp_path / "own.tsv"
    rows.write_text("".join(f"{source}\t{target}\n" for source, target in zip(sources, own, strict=True)), "utf-8")
    before = sorted(path.name for path in tmp_path.iterdir())
    options = ("--share", "0.9", "--method", "gradient", "--valid", rows, "--sample", "4")
    done = manyheads("heads", "prune", bundle_folder, *options)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("Error: Removing 11 heads would cost ")
    assert "To accept this cost, add --max-cost " in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_importance_of_every_head_and_attention(manyheads: Run, bundle_folder: Path) -> None:
    done = manyheads("heads", "importance", bundle_folder, "--json", "--sample", "3")
    assert done.returncode == 0, done.stderr
    payload = json.loads(done.stdout)
    assert payload["sample"] == 3
    assert len(payload["gradient"]) == 12
    assert len(payload["ablation"]) == 12 + 3
    assert set(payload["sum_of_single"]) == {"encoder.0.self", "decoder.0.self", "decoder.0.cross"}
    shown = manyheads("heads", "importance", bundle_folder, "--sample", "2").stdout
    assert "decoder.0.cross/3" in shown
    assert "ρ = " in shown


def test_invalid_shares_and_folders_are_one_line(manyheads: Run, bundle_folder: Path) -> None:
    done = manyheads("heads", "prune", bundle_folder, "--share", "1")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: The share 1 is not between 0 and 1.")
    done = manyheads("heads", "prune", bundle_folder, "--share", "0.4", "-o", bundle_folder)
    assert "is the input bundle" in done.stderr


def test_subcommands_and_options_are_checked(manyheads: Run, bundle_folder: Path) -> None:
    done = manyheads("heads", "importence", bundle_folder)
    assert done.returncode == 2
    assert "There is no command 'importence'. Did you mean importance?" in done.stderr
    assert "Missing option '--share'" in manyheads("heads", "prune", bundle_folder).stderr
    done = manyheads("heads", bundle_folder, "--importance", "--prune", "0.4")
    assert done.returncode == 2
    assert "No such option" in done.stderr
    for name in ("show", "importance", "prune", "timeline"):
        for language, title in (("en", "Example:"), ("zh", "例：")):
            text = manyheads("heads", name, "--help", "--lang", language).stdout
            assert title in text
            assert f"manyheads heads {name} " in text


def test_learning_rate_needs_fine_tuning(manyheads: Run, bundle_folder: Path) -> None:
    done = manyheads("heads", "prune", bundle_folder, "--share", "0.5", "--learning-rate", "0.01")
    assert done.returncode == 2
    assert "--learning-rate needs --fine-tune STEPS" in done.stderr
    options = ("--share", "0.5", "--fine-tune", 5, "--learning-rate", 2)
    done = manyheads("heads", "prune", bundle_folder, *options)
    assert done.returncode == 1
    assert "The learning rate 2 is not between 0 and 1. Use one like 0.0005." in done.stderr
