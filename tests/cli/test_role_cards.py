"""`manyheads heads show` and `timeline`, as tables and as JSON; and `predict --align`."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from manyheads.cli.root import commands
from manyheads.errors import ManyheadsError
from manyheads.language import Language, using


class Done(NamedTuple):
    """The result of a command."""

    returncode: int
    stdout: str
    stderr: str


class Run:
    """Runs commands in this process, which is faster than starting one."""

    def __call__(self, *words: object, stdin: str = "") -> Done:
        result = CliRunner().invoke(commands, [str(word) for word in words], input=stdin)
        if result.exception and not isinstance(result.exception, ManyheadsError | SystemExit):
            raise result.exception
        error = str(result.exception) if isinstance(result.exception, ManyheadsError) else result.stderr
        return Done(result.exit_code, result.stdout, error)


@pytest.fixture
def manyheads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    monkeypatch.chdir(tmp_path)
    yield Run()


@pytest.mark.parametrize(
    ("language", "title", "n_texts"), [("en", "Heads", "12 texts"), ("zh", "注意力头", "12 条文本")]
)
def test_table_fits_a_hundred_columns(
    manyheads: Run, bundle_folder: Path, tmp_path: Path, language: Language, title: str, n_texts: str
) -> None:
    with using(language):
        done = manyheads("heads", bundle_folder, "--sample", 12, "--svg", tmp_path / "heads.svg")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == title
    assert bool(re.search(r"[\u4e00-\u9fff]", done.stdout)) == (language == "zh")
    assert any(line.startswith("encoder.0.self/0") for line in lines)
    table = [line for line in lines if "heads.svg" not in line]  # a path can be long
    # A Chinese character takes two columns.
    assert all(sum(1 + (character > "⺀") for character in line) <= 100 for line in table)
    assert n_texts in done.stdout
    assert (tmp_path / "heads.svg").read_text("utf-8").startswith("<svg")


def test_json_has_every_statistic(manyheads: Run, bundle_folder: Path) -> None:
    payload = json.loads(manyheads("heads", "show", bundle_folder, "--sample", 12, "--json").stdout)
    assert len(payload["cards"]) == 12
    assert payload["n_texts"] == 12
    statistic = payload["cards"][0]["statistics"]["confidence"]
    assert statistic["low"] <= statistic["value"] <= statistic["high"]
    assert {"baseline", "control", "n"} <= set(statistic)
    assert [similarity["kind"] for similarity in payload["similarity"]] == [
        "encoder.self",
        "decoder.self",
        "decoder.cross",
    ]


def test_text_and_gold_files(manyheads: Run, bundle_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "words.en").write_text("the cat sleeps\nTom sings\n", encoding="utf-8")
    (tmp_path / "words.zh").write_text("猫 睡觉\n汤姆 唱歌\n", encoding="utf-8")
    (tmp_path / "links").write_text("2-1 3-2\n1-1 2-2\n", encoding="utf-8")
    gold = [word for name in ("words.en", "words.zh", "links") for word in ("--gold", name)]
    payload = json.loads(manyheads("heads", "show", bundle_folder, *gold, "--json").stdout)
    cross = next(card for card in payload["cards"] if card["head"] == "decoder.0.cross/0")
    assert "align norms read" in cross["statistics"]
    # Given only sources, the model writes the targets.
    sources = manyheads("heads", "show", bundle_folder, "--text", "words.en", "--json")
    assert "decoder.0.cross/0" in sources.stdout, sources.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--text", "none.txt"], "there is no such file"),
        (["--text", "blank.txt"], "blank.txt has no text: every line is empty"),
        (["--gold", "words.en", "--gold", "words.en", "--gold", "links"], "line 1: the link 9-9 is out of range"),
        (["--gold", "words.en"], "give gold alignments as source words, target words and links"),
        (["--gold", "greek.conllu"], "does not match this model"),
    ],
)
def test_bad_input_is_one_line(
    manyheads: Run, bundle_folder: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    (tmp_path / "blank.txt").write_text(" \n\n", encoding="utf-8")
    (tmp_path / "words.en").write_text("the cat\n", encoding="utf-8")
    (tmp_path / "links").write_text("9-9\n", encoding="utf-8")
    cells = ["1", "γάτα", "_", "_", "_", "_", "0", "root", "_", "_"]
    (tmp_path / "greek.conllu").write_text("\t".join(cells) + "\n", encoding="utf-8")
    done = manyheads("heads", "show", bundle_folder, *options)
    assert done.returncode == 1
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_timeline_takes_no_text(manyheads: Run, bundle_folder: Path) -> None:
    done = manyheads("heads", "timeline", bundle_folder.parent, "--text", "words.en")
    assert done.returncode == 2
    assert "No such option" in done.stderr


def test_predict_align(manyheads: Run, bundle_folder: Path) -> None:
    done = manyheads("predict", bundle_folder, "--align", stdin="Tom sleeps.\n\nAnna sings.\n")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")
    assert len(lines) == 4
    assert lines[1] == "\t"
    plain = manyheads("predict", bundle_folder, stdin="Tom sleeps.\n").stdout
    text, _, pairs = lines[0].rpartition("\t")
    assert text == plain.rstrip("\n")
    payload = json.loads(manyheads("predict", bundle_folder, "--align", "--json", stdin="Tom sleeps.\n").stdout)
    assert payload["source_words"] == ["Tom", "sleeps", "."]
    assert " ".join(f"{i}-{j}" for i, j in payload["alignment"]) == pairs
    assert all(i < 3 and j < len(payload["target_words"]) for i, j in payload["alignment"])
