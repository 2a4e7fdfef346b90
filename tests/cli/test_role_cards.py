"""`manyheads heads` without more: role cards, as a table and as JSON; and `predict --align`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from manyheads.cli.root import commands
from manyheads.errors import ManyheadsError


class Done(NamedTuple):
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


class Run:
    """Commands in this process: starting one takes longer than what is tested here."""

    def __call__(self, *words: object, stdin: str = "") -> Done:
        found = CliRunner().invoke(commands, [str(word) for word in words], input=stdin)
        if found.exception and not isinstance(found.exception, ManyheadsError | SystemExit):
            raise found.exception
        told = str(found.exception) if isinstance(found.exception, ManyheadsError) else found.stderr
        return Done(found.exit_code, found.stdout, told)


@pytest.fixture
def manyheads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    monkeypatch.chdir(tmp_path)
    yield Run()


def test_a_table_that_fits_a_hundred_columns(manyheads: Run, bundle_folder: Path, tmp_path: Path) -> None:
    done = manyheads("heads", bundle_folder, "--sample", 12, "--svg", tmp_path / "heads.svg")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "Heads · 注意力头"
    assert any(line.startswith("encoder.0.self/0") for line in lines)
    table = [line for line in lines if "heads.svg" not in line]  # a path is as long as it is
    # Chinese takes two columns a character.
    assert all(sum(1 + (character > "⺀") for character in line) <= 100 for line in table)
    assert "12 texts" in done.stdout
    assert (tmp_path / "heads.svg").read_text("utf-8").startswith("<svg")


def test_json_has_every_figure(manyheads: Run, bundle_folder: Path) -> None:
    payload = json.loads(manyheads("heads", bundle_folder, "--sample", 12, "--json").stdout)
    assert len(payload["cards"]) == 12
    assert payload["n_texts"] == 12
    statistic = payload["cards"][0]["statistics"]["confidence"]
    assert statistic["low"] <= statistic["value"] <= statistic["high"]
    assert {"baseline", "control", "n"} <= set(statistic)
    assert [one["kind"] for one in payload["similarity"]] == ["encoder.self", "decoder.self", "decoder.cross"]


def test_text_and_gold_of_ones_own(manyheads: Run, bundle_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "words.en").write_text("the cat sleeps\nTom sings\n", encoding="utf-8")
    (tmp_path / "words.zh").write_text("猫 睡觉\n汤姆 唱歌\n", encoding="utf-8")
    (tmp_path / "links").write_text("2-1 3-2\n1-1 2-2\n", encoding="utf-8")
    gold = [word for name in ("words.en", "words.zh", "links") for word in ("--gold", name)]
    payload = json.loads(manyheads("heads", bundle_folder, *gold, "--json").stdout)
    cross = next(card for card in payload["cards"] if card["head"] == "decoder.0.cross/0")
    assert "align norms read" in cross["statistics"]
    alone = manyheads("heads", bundle_folder, "--text", "words.en", "--json")  # it writes the other side itself
    assert "decoder.0.cross/0" in alone.stdout, alone.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--text", "none.txt"], "there is no such file"),
        (["--text", "blank.txt"], "blank.txt has no text: every line is empty"),
        (["--gold", "words.en", "--gold", "words.en", "--gold", "links"], "line 1: the link 9-9 is out of range"),
        (["--gold", "words.en"], "give gold alignments as source words, target words and links"),
        (["--gold", "greek.conllu"], "does not match this model"),
        (["--timeline", "--text", "words.en"], "leave out --gold and --text"),
    ],
)
def test_one_clear_line_each(manyheads: Run, bundle_folder: Path, tmp_path: Path, words: list[str], told: str) -> None:
    (tmp_path / "blank.txt").write_text(" \n\n", encoding="utf-8")
    (tmp_path / "words.en").write_text("the cat\n", encoding="utf-8")
    (tmp_path / "links").write_text("9-9\n", encoding="utf-8")
    cells = ["1", "γάτα", "_", "_", "_", "_", "0", "root", "_", "_"]
    (tmp_path / "greek.conllu").write_text("\t".join(cells) + "\n", encoding="utf-8")
    done = manyheads("heads", bundle_folder, *words)
    assert done.returncode == 1
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_predict_aligns(manyheads: Run, bundle_folder: Path) -> None:
    done = manyheads("predict", bundle_folder, "--align", stdin="Tom sleeps.\n\nAnna sings.\n")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")
    assert len(lines) == 4
    assert lines[1] == "\t"
    plain = manyheads("predict", bundle_folder, stdin="Tom sleeps.\n").stdout
    text, _, pairs = lines[0].rpartition("\t")
    assert text == plain.rstrip("\n")
    told = json.loads(manyheads("predict", bundle_folder, "--align", "--json", stdin="Tom sleeps.\n").stdout)
    assert told["source_words"] == ["Tom", "sleeps", "."]
    assert " ".join(f"{i}-{j}" for i, j in told["alignment"]) == pairs
    assert all(i < 3 and j < len(told["target_words"]) for i, j in told["alignment"])
