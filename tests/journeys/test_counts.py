"""From raw files through init, train and doctor, for every task: the numbers agree, and nothing is falsely reported."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from manyheads import corpora
from manyheads.cli.root import commands
from manyheads.metrics import rows_name
from manyheads.run import RunFolder

N_ROWS = 160


def run(*words: object) -> str:
    """Run a command and return its output; doctor exits with 1 if it finds a problem."""
    done = CliRunner().invoke(commands, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code <= (words[0] == "doctor"), done.output
    return done.output


def rows_of(task: str) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(corpora.rows(task, "en", "train", 2 * N_ROWS)))[:N_ROWS]


def with_duplicates(lines: list[str]) -> str:
    """The lines as a file; two of them occur twice, which is too few to be reported."""
    return "".join(f"{line}\n" for line in [*lines, *lines[:2]])


def write_data(folder: Path, task: str) -> Sequence[Path]:
    if task == "translate":
        rows = list(dict.fromkeys(corpora.pairs("en", "de", "train", 2 * N_ROWS)))[:N_ROWS]
        files = [folder / "mail.en", folder / "mail.de"]
        for side, file in enumerate(files):
            file.write_text(with_duplicates([row[side] for row in rows]), "utf-8")
        return files
    if task == "classify":
        lines = [json.dumps({"text": text, "label": label}) for text, label in rows_of("classify")]
        (folder / "reviews.jsonl").write_text(with_duplicates(lines), "utf-8")
        return [folder / "reviews.jsonl"]
    if task == "tag":
        lines = [json.dumps({"text": text, "tags": tags}) for text, tags in rows_of("tag")]
        (folder / "names.jsonl").write_text(with_duplicates(lines), "utf-8")
        return [folder / "names.jsonl"]
    texts = [text for (text,) in rows_of("generate")]
    (folder / "stories.jsonl").write_text(with_duplicates([json.dumps({"text": text}) for text in texts]), "utf-8")
    return [folder / "stories.jsonl"]


@pytest.mark.parametrize("task", ["translate", "classify", "tag", "language", "masked"])
def test_init_train_and_doctor_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str) -> None:
    monkeypatch.setattr("manyheads.proposals.cost_estimate._TRIAL_SECONDS", 0.0)  # the times are not tested here
    monkeypatch.setattr("manyheads.tasks.language.language_task._SHOWN", 3)  # tokens of a sample
    recipe, folder = tmp_path / "recipe.toml", tmp_path / "run"
    proposed = run("init", *write_data(tmp_path, task), "--task", task, "-o", recipe)
    (rows,) = re.findall(r": ([\d,]+ of [\d,]+ .* kept out: .*)", proposed)
    (millions, vocab_size) = re.findall(r"\(([\d.]+ M)\), ([\d,]+) tokens", proposed)[0]

    examined = run("doctor", recipe)
    assert "warnings: 0 · problems: 0" in examined, examined
    short = ("train.steps=2", "train.warmup=1", "decode.max_new_tokens=2")
    trained = run("train", recipe, *short, "-o", folder, "--plain")
    diagnosed = run("doctor", folder)
    reported = re.findall(r"^  [!✗] (.*?)  ", diagnosed, re.MULTILINE)
    assert set(reported) <= {"output collapse"}, diagnosed  # two steps teach little
    for output in (examined, trained, diagnosed):
        assert rows in output
        assert f"{millions} parameters" in output
        assert f"{vocab_size} tokens" in output

    (prepared,) = RunFolder(folder).log().of_kind("Prepared")
    assert str(rows_name(prepared["noun"], prepared["n_rows"], prepared["dropped"])) == rows
    page = (folder / "report.html").read_text("utf-8")
    for count in (prepared["n_rows"], *prepared["dropped"].values()):
        assert f'<td class="number">{count:,}<' in page or f'<td class="number">−{count:,}<' in page
