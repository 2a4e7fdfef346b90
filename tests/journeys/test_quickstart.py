"""The first five minutes, as a newcomer lives them."""

import json
from pathlib import Path

import pytest

from cli.conftest import Run, manyheads  # noqa: F401


def test_quickstart_can_be_run_run_again_and_continued(manyheads: Run, tmp_path: Path) -> None:  # noqa: F811
    first = manyheads("quickstart", "--steps", 4, "--direction", "de-en")
    assert (first.returncode, first.stderr) == (0, "")
    bundle = tmp_path / "runs" / "quickstart-de-en" / "bundle"
    for told in (
        "Deutsch → English",
        "sentence pairs",
        "held-out test",
        "unseen combinations",
        "Try next",
        str(bundle.relative_to(tmp_path)),
    ):
        assert told in first.stdout
    before = (bundle / "MANIFEST.sha256").read_bytes()

    again = manyheads("quickstart", "--direction", "de-en")
    assert again.returncode == 0
    assert "The model is there already" in again.stdout
    assert "--fresh" in again.stdout
    assert "BLEU" in again.stdout
    assert (bundle / "MANIFEST.sha256").read_bytes() == before

    other = manyheads("quickstart", "-o", "runs/quickstart-de-en")
    assert other.returncode == 1
    assert "holds a run of another recipe (data.builtin was de-en, now en-zh" in other.stderr

    longer = manyheads("quickstart", "--direction", "de-en", "--steps", 6)
    assert "from step 4" in longer.stdout
    assert "step 6 of 6" in longer.stdout

    assert (bundle / "MANIFEST.sha256").read_bytes() != before
    assert manyheads("predict", bundle, stdin="Zwei Katzen schlafen.\n").stdout.count("\n") == 1


@pytest.mark.slow
def test_quickstart_trains_a_translator(manyheads: Run, tmp_path: Path) -> None:  # noqa: F811
    """The promise of the README: a held-out BLEU of at least 95. (How long it takes is not tested: machines differ.)"""
    done = manyheads("quickstart", n_threads=2)
    assert done.returncode == 0
    bundle = tmp_path / "runs" / "quickstart" / "bundle"
    scores = json.loads((bundle / "bundle.json").read_text("utf-8"))["scores"]
    assert scores["test"][0]["name"] == "BLEU"
    assert scores["test"][0]["value"] >= 95
    assert scores["compositional"][0]["value"] >= 80
    # The sentence that quickstart and the README advise to try.
    assert manyheads("predict", bundle, stdin="Two cats are sleeping.\n").stdout == "两只猫正在睡觉。\n"
