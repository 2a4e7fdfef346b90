"""`manyheads shortlist`: a new bundle, what it was measured to cost, and a way to leave the list out."""

import json
from pathlib import Path

import pytest

from manyheads.decode.native import building
from manyheads.errors import EngineError

from cli.conftest import Run


def test_a_bundle_with_a_shortlist_is_written_and_used(manyheads: Run, bundle_folder: Path, tmp_path: Path) -> None:
    try:
        building.find_compiler()
    except EngineError as error:
        pytest.skip(str(error))
    few = ("--sample", 50, "--measure", 10, "--words", 3, "--frequent", 5)
    done = manyheads("shortlist", bundle_folder, *few, "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert Path(facts["bundle"]) == tmp_path / "bundle-shortlist"
    assert facts["n_pairs"] == 50
    assert facts["alone"]["n_sentences"] == facts["together"]["n_sentences"] == 10
    assert 5 < facts["mean_words"] < facts["vocabulary"]
    text = "The red cat sees Tom.\n"
    whole = manyheads("predict", bundle_folder, stdin=text).stdout
    listed = manyheads("predict", tmp_path / "bundle-shortlist", stdin=text).stdout
    assert manyheads("predict", tmp_path / "bundle-shortlist", "--no-shortlist", stdin=text).stdout == whole != listed
