"""`manyheads quantize`, and the engines of `manyheads predict`."""

import json
from pathlib import Path

import pytest

from cli.conftest import Run
from needs import needs_compiler


@needs_compiler
def test_quantized_bundle_is_smaller_and_predicts(manyheads: Run, bundle_folder: Path) -> None:
    done = manyheads("quantize", bundle_folder, "--sample", 20, "--json")
    assert done.returncode == 0, done.stderr
    payload = json.loads(done.stdout)
    assert payload["bytes"][1] < payload["bytes"][0]
    assert payload["engine"] == "native int8"
    assert payload["trade_off"]["change"]["n_texts"] == 20
    small = bundle_folder.with_name("bundle-int8")
    answer = manyheads("predict", small, stdin="The dog sleeps.\n")
    assert (answer.returncode, answer.stdout.count("\n"), answer.stderr) == (0, 1, "")
    again = manyheads("quantize", bundle_folder)
    assert again.returncode == 1
    assert "bundle-int8 already exists. Choose another folder with -o, or add --overwrite." in again.stderr


@pytest.mark.parametrize("command", [("quantize",), ("shortlist",), ("heads", "show")])
def test_a_sample_that_python_cannot_count_is_refused(manyheads: Run, command: tuple[str, ...]) -> None:
    option = "--valid-sample" if command == ("shortlist",) else "--sample"
    done = manyheads(*command, "no-bundle", option, 10**30)
    assert done.returncode == 2
    assert f"Invalid value for '{option}'" in done.stderr
    assert "1,000,000,000" in done.stderr.replace("=1000000000", "=1,000,000,000")


def test_input_bundle_is_not_overwritten(manyheads: Run, bundle_folder: Path) -> None:
    done = manyheads("quantize", bundle_folder, "-o", bundle_folder)
    assert done.returncode == 1
    assert "is the input bundle" in done.stderr


@needs_compiler
def test_every_engine_predicts_the_same(manyheads: Run, bundle_folder: Path) -> None:
    text = "The dog sleeps.\nTwo cats are here.\n"
    answers = {}
    for engine in ("auto", "native", "torch"):
        done = manyheads("predict", bundle_folder, "--greedy", "--engine", engine, stdin=text)
        assert (done.returncode, done.stderr) == (0, "")
        answers[engine] = done.stdout
    assert len(set(answers.values())) == 1
    assert answers["auto"].count("\n") == 2


@needs_compiler
def test_fallback_to_torch_is_reported(manyheads: Run, bundle_folder: Path) -> None:
    done = manyheads("predict", bundle_folder, "--sample", "--engine", "native", stdin="The dog sleeps.\n")
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    assert done.stderr == "Warning: Engine: torch. The native engine does not support sampling.\n"


def test_unknown_engine_is_refused(manyheads: Run, bundle_folder: Path) -> None:
    done = manyheads("predict", bundle_folder, "--engine", "natve", stdin="The dog sleeps.\n")
    assert done.returncode == 1
    assert 'engine = "natve" is not an engine. Did you mean native?' in done.stderr


@needs_compiler
def test_shortlist_is_written_and_used(manyheads: Run, bundle_folder: Path, tmp_path: Path) -> None:
    few = ("--train-sample", 50, "--valid-sample", 10, "--words", 3, "--frequent", 5)
    done = manyheads("shortlist", bundle_folder, *few, "--json")
    assert done.returncode == 0, done.stderr
    payload = json.loads(done.stdout)
    assert Path(payload["bundle"]) == tmp_path / "bundle-shortlist"
    assert payload["n_pairs"] == 50
    assert payload["single"]["change"]["n_texts"] == payload["batch"]["change"]["n_texts"] == 10
    assert 5 < payload["mean_tokens"] < payload["vocab_size"]
    text = "The red cat sees Tom.\n"
    whole = manyheads("predict", bundle_folder, stdin=text).stdout
    listed = manyheads("predict", tmp_path / "bundle-shortlist", stdin=text).stdout
    assert manyheads("predict", tmp_path / "bundle-shortlist", "--no-shortlist", stdin=text).stdout == whole != listed
