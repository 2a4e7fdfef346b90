"""`manyheads heads`: its subcommands, importance and pruning."""

import json
import shlex
from pathlib import Path

from click import Context

from manyheads import corpora, load
from manyheads.bundle import Bundle
from manyheads.cli.root import commands
from manyheads.lens import heads_of
from manyheads.lens.visible_ablation import find_visible_ablation

from cli.conftest import Run
from lens.test_visible_ablation import with_idle_heads, with_visible_heads

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
    done = manyheads("heads", "importance", bundle_folder, "--json", "--by", "gradient", "--by", "score", *FEW)
    assert done.returncode == 0, done.stderr
    payload = json.loads(done.stdout)
    assert (payload["sample"], payload["unit"]) == (3, "nats")
    assert {way: len(heads) for way, heads in payload["lost_probability"].items()} == {
        "zero": 12,
        "mean": 12,
        "resample": 12,
    }
    assert len(payload["gradient"]) == 12
    assert len(payload["score"]) == 12 + 3
    assert set(payload["sum_of_single"]) == {"encoder.0.self", "decoder.0.self", "decoder.0.cross"}
    assert {name: one["n_heads"] for name, one in payload["agreement"].items()} == dict.fromkeys(
        ("mean", "resample", "gradient", "score"), 12
    )


def test_importance_is_log_probability_unless_asked_otherwise(manyheads: Run, bundle_folder: Path) -> None:
    done = manyheads("heads", "importance", bundle_folder, *FEW, "--lang", "en")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "Log-probability lost without the head, in nats per answer (n = 3)"
    assert lines[1].split() == ["head", "zero", "95", "%", "mean", "resample"]
    rows = [line.split(maxsplit=2) for line in lines[2:14]]
    assert sorted(row[0] for row in rows) == sorted(map(str, heads_of(load(bundle_folder).task.model)))
    values = [float(row[1]) for row in rows]
    assert values == sorted(values, reverse=True)
    assert "gradient" not in done.stdout and "BLEU" not in done.stdout
    for row in rows:  # the ends of an interval are told apart
        low, high = row[2].partition("[")[2].partition("]")[0].split(", ")
        assert low != high
    assert "[+0.00, +0.00]" not in done.stdout
    chinese = manyheads("heads", "importance", bundle_folder, *FEW, "--lang", "zh").stdout
    assert "每个答案" in chinese and "head" not in chinese
    wrong = manyheads("heads", "importance", bundle_folder, "--by", "magic")
    assert wrong.returncode == 2
    assert "'magic' is not one of 'gradient', 'score'" in wrong.stderr


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


def test_example_of_a_head_with_the_commands_that_show_it(manyheads: Run, untrained: Bundle, tmp_path: Path) -> None:
    with_visible_heads(untrained).save(tmp_path / "bundle")
    found = find_visible_ablation(load(tmp_path / "bundle"))
    assert found is not None
    payload = json.loads(manyheads("heads", "example", "bundle", "--json").stdout)
    assert payload.pop("head") == str(found.head)
    assert payload == {name: getattr(found, name) for name in ("text", "answer", "without", "before", "after")}

    done = manyheads("heads", "example", "bundle", "--lang", "en")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line[17:] for line in done.stdout.splitlines()]
    assert lines[0].startswith(f"switch off {found.head}, and ")
    assert lines[1:4] == [f"  {text}" for text in (found.text, found.answer, found.without)]
    command, *words = shlex.split(lines[4].removesuffix("\\") + lines[5])
    assert (command, words.pop(0)) == ("manyheads", "lens")
    parameters = commands.commands["lens"].make_context("lens", words, parent=Context(commands)).params
    assert (parameters["texts"], parameters["off"]) == ((found.text,), (str(found.head),))
    shown: dict[str, object] = {}
    code = "\n".join(["import manyheads", *lines[6:8], f"answers = {lines[8]}"])
    exec(code.replace('load("bundle")', f"load({str(tmp_path / 'bundle')!r})"), shown)
    assert shown["answers"] == [found.without]
    chinese = manyheads("heads", "example", "bundle", "--lang", "zh").stdout
    assert f"关掉 {found.head}，" in chinese
    assert "switch off" not in chinese


def test_no_example_offers_the_importance(manyheads: Run, untrained: Bundle, tmp_path: Path) -> None:
    with_idle_heads(untrained).save(tmp_path / "bundle")
    done = manyheads("heads", "example", "bundle", "--lang", "en")
    assert done.returncode == 0
    assert "no single head changes an answer" in done.stdout
    assert "manyheads heads importance bundle" in done.stdout
    assert manyheads("heads", "example", "bundle", "--json").stdout == "null\n"
