"""`manyheads bench`: measurements are positive, and estimates follow from them."""

import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from cli.conftest import Run


def test_machine_as_json(manyheads: Run) -> None:
    done = manyheads("bench", "--quick", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    payload = json.loads(done.stdout)
    assert payload["machine"]["n_threads"] == 1
    assert payload["matmul"]["gflop_per_second"] > 0
    assert payload["matmul"]["slowdown"] >= 1
    (training,) = payload["training"]
    assert training["model"] == "tiny"
    assert training["tokens_per_second"] > 0
    assert 0 < training["utilization"] < 2
    for step in training["steps"]:
        assert step["n_tokens"] <= training["batch_tokens"]
    check_decoding(payload["decoding"])
    engines = {row["engine"] for row in payload["decoding"]} | set(payload["missing"])
    assert engines >= {"torch", "native", "native int8"}

    (corpus,) = payload["estimates"]["training"]
    tokens = corpus["n_pairs"] * corpus["n_epochs"] * payload["sentences"]["mean_lengths"][1]
    assert corpus["seconds"] == pytest.approx(tokens / training["tokens_per_second"])
    check_translating(payload)


def check_decoding(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        assert row["latency_ms"] > 0
        assert row["n_sentences"] > 0
        assert row["latency_ms"] == pytest.approx(1000 * median(row["latency_seconds"]))
        assert row["sentences_per_second"] == pytest.approx(
            median(row["n_sentences"] / one for one in row["batch_seconds"])
        )
    methods = [row["method"] for row in rows if row["is_default"]]
    assert sorted(methods) == sorted(set(methods))  # one engine is the default of each


def check_translating(payload: dict[str, Any]) -> None:
    speeds = {(row["engine"], row["method"]): row for row in payload["decoding"] if row["is_default"]}
    assert payload["estimates"]["translating"]
    for row in payload["estimates"]["translating"]:
        speed = speeds.pop((row["engine"], row["method"]))
        assert row["seconds"] == pytest.approx(row["n_lines"] / speed["sentences_per_second"])
        assert row["latency_ms"] == speed["latency_ms"]
    assert not speeds


def test_bundle_with_a_file_of_lines(manyheads: Run, bundle_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "letters.en").write_text("The dog sleeps.\n\nWho is it?\n" * 4, "utf-8")
    done = manyheads("bench", bundle_folder, "--lines", "letters.en", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    payload = json.loads(done.stdout)
    assert "training" not in payload
    assert {row["n_sentences"] for row in payload["decoding"]} == {8}  # blank lines are skipped
    assert {row["method"] for row in payload["decoding"]} == {"beam 2", "greedy"}
    check_decoding(payload["decoding"])
    check_translating(payload)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", ("torch", "← default", "What to expect", "A file of 10,000 lines")),
        ("zh", ("torch", "← 默认", "预计耗时", "10,000 行的文件")),
    ],
)
def test_bundle_on_its_own_validation_set(
    manyheads: Run, bundle_folder: Path, language: str, expected: tuple[str, ...]
) -> None:
    done = manyheads("bench", bundle_folder, "--lang", language)
    assert (done.returncode, done.stderr) == (0, "")
    for text in expected:
        assert text in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nowhere"], 1, "Error: nowhere: there is no such folder."),
        (["--lines", "a.en"], 2, "--lines needs a bundle"),
        (["BUNDLE", "--quick"], 2, "--quick measures the machine"),
        (["BUNDLE", "--lines", "empty.en"], 1, "empty.en is empty. Give a file with text."),
    ],
)
def test_bad_input(
    manyheads: Run, bundle_folder: Path, tmp_path: Path, words: list[str], code: int, message: str
) -> None:
    (tmp_path / "empty.en").write_text("", "utf-8")
    done = manyheads("bench", *(bundle_folder if word == "BUNDLE" else word for word in words))
    assert done.returncode == code
    assert message in done.stderr
    assert code == 2 or len(done.stderr.splitlines()) == 1
