"""`manyheads shortlist`: a new bundle with its measured cost, and predicting without the shortlist."""

import json
from pathlib import Path

from cli.conftest import Run
from needs import needs_compiler


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
