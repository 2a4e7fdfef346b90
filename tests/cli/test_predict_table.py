"""`manyheads predict BUNDLE TABLE` and `evaluate BUNDLE TABLE`: rows in, rows out, with the bundle's columns."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from manyheads.bundle import Bundle, load
from manyheads.cli.evaluate import evaluate
from manyheads.cli.predict import predict
from manyheads.decode import DecodeSettings
from manyheads.errors import DataError
from manyheads.settings import to_table
from manyheads.tasks import Classify, ClassifySettings, Tag, TagSettings
from manyheads.tasks.task import Task

from tasks.small import make_task

LABELED = [("a good film", "good"), ("a bad film", "bad")] * 20
TAGGED = [("Anna sleeps", "B-PER O"), ("the dog sees Tom", "O O O B-PER")] * 20


def _recipe(task: Task, **data: object) -> dict[str, object]:
    return {
        "model": to_table(task.model.settings),
        "data": {"train": ["old.csv"], **data},
        "task": {"kind": task.settings.kind},
    }


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained classifier of the columns "body" and "team"."""
    folder = tmp_path_factory.mktemp("classifier") / "bundle"
    task = make_task(Classify, ClassifySettings(), LABELED)
    Bundle(task, DecodeSettings(), _recipe(task, text_column="body", label_column="team"), {}).save(folder)
    return folder


def _run(*words: object, code: int = 0) -> Result:
    done = CliRunner().invoke(predict, [str(word) for word in words], catch_exceptions=True)
    if isinstance(done.exception, DataError):
        return done
    assert done.exit_code == code, done.output
    return done


def _fault(*words: object) -> str:
    done = _run(*words, code=2)
    assert done.exception is not None
    return str(done.exception) if isinstance(done.exception, DataError) else done.stderr.splitlines()[-1]


def _rows(data: bytes, encoding: str, delimiter: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode(encoding), newline=""), delimiter=delimiter))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_200_tickets_in_a_nasty_table_are_200_rows(classifier: Path, tmp_path: Path, encoding: str) -> None:
    notes: Sequence[str] = ('say "x"; and go', "two\r\nlines", "line\n\n\nends", "  spaces  ", "")
    texts = [f"a good film\r\nnumber {number}" if number % 3 else f'"a" bad; film {number}' for number in range(200)]
    stream = io.StringIO(newline="")
    table = csv.writer(stream, delimiter=";", quoting=csv.QUOTE_ALL)
    table.writerows([("id", "body", "note"), *((n, text, notes[n % 5]) for n, text in enumerate(texts))])
    (tmp_path / "week.csv").write_bytes(stream.getvalue().encode(encoding))
    _run(classifier, tmp_path / "week.csv", "-o", tmp_path / "out.csv")
    before = _rows((tmp_path / "week.csv").read_bytes(), encoding, ";")
    after = _rows((tmp_path / "out.csv").read_bytes(), encoding, ";")
    assert [row[:3] for row in after] == before
    assert after[0][3:] == ["label", "probability", "flags"]
    found = load(classifier).predictions(texts)
    assert [row[3:5] for row in after[1:]] == [list(map(str, one.line().split("\t"))) for one in found]
    assert len(after) == 201


def test_flags_of_blank_unsure_and_too_long_texts(classifier: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("body,label\na good film,x\n ,y\n" + "word " * 500 + ",z\n")
    done = _run(classifier, tmp_path / "a.csv", "--threshold", "0.99")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [(row["label"], row["predicted_label"], row["flags"]) for row in rows[:2]] == [
        ("x", "", "unsure"),
        ("y", "", "blank"),
    ]
    assert rows[1]["probability"] == ""


def test_json_has_the_row(classifier: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,body\n7,"a good\nfilm"\n8,\n')
    done = _run(classifier, tmp_path / "a.csv", "--json", "-o", tmp_path / "a.jsonl")
    first, second = map(json.loads, (tmp_path / "a.jsonl").read_text().splitlines())
    assert (first["line"], first["source"], first["row"]) == (2, "a good\nfilm", {"id": "7", "body": "a good\nfilm"})
    assert first["answer"] in ("good", "bad")
    assert (second["line"], second["note"], second["row"]["id"]) == (4, "The text is blank.", "8")
    assert "line 4" in done.stderr


def test_a_table_without_a_header(tmp_path: Path) -> None:
    task = make_task(Classify, ClassifySettings(), LABELED)
    Bundle(task, DecodeSettings(), _recipe(task, text_column="2", label_column="1"), {}).save(tmp_path / "bundle")
    (tmp_path / "a.csv").write_text("x,a good film\ny,a bad film\n")
    done = _run(tmp_path / "bundle", tmp_path / "a.csv")
    assert [line.split(",")[:2] for line in done.stdout.splitlines()] == [["x", "a good film"], ["y", "a bad film"]]
    done = _run(tmp_path / "bundle", tmp_path / "a.csv", "--json")
    assert json.loads(done.stdout.splitlines()[0])["row"] == {"1": "x", "2": "a good film"}


def test_a_tsv_file_without_a_header_has_its_fields_in_order(tmp_path: Path) -> None:
    task = make_task(Classify, ClassifySettings(), LABELED)
    Bundle(task, DecodeSettings(), {}, {}).save(tmp_path / "bundle")
    (tmp_path / "a.tsv").write_text("a good film\tgood\na bad film\tbad\n")
    assert [line.split("\t")[:2] for line in _run(tmp_path / "bundle", tmp_path / "a.tsv").stdout.splitlines()] == [
        ["a good film", "good"],
        ["a bad film", "bad"],
    ]
    (tmp_path / "b.tsv").write_text("id\tcontent\tdate\n1\ta good film\t2026\n")
    assert _fault(tmp_path / "bundle", tmp_path / "b.tsv") == (
        f'{tmp_path}/b.tsv has no column "text". It has: id, content, date. Choose with --text-column id.'
    )


def test_a_tagger_appends_its_spans(tmp_path: Path) -> None:
    task = make_task(Tag, TagSettings(), TAGGED)
    Bundle(task, DecodeSettings(), _recipe(task, text_column="words", tags_column="tags"), {}).save(tmp_path / "bundle")
    (tmp_path / "a.jsonl").write_text('{"words": ["Anna", "sleeps"], "id": 3}\n{"words": null, "id": 4}\n')
    rows = list(map(json.loads, _run(tmp_path / "bundle", tmp_path / "a.jsonl").stdout.splitlines()))
    assert [(row["id"], row["flags"]) for row in rows] == [(3, ""), (4, "blank")]
    (found, _blank) = load(tmp_path / "bundle").predictions(["Anna sleeps", ""])
    assert json.loads(rows[0]["spans"]) == [vars(span) for span in found.answer]


def test_renamed_columns_are_named(classifier: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,content\n1,a good film\n")
    assert _fault(classifier, tmp_path / "a.csv") == (
        f'{tmp_path}/a.csv has no column "body", with which this bundle was trained. It has: id, content. '
        "Choose with --text-column id."
    )
    assert _run(classifier, tmp_path / "a.csv", "--text-column", "content").stdout.startswith("id,content,label,")
    done = CliRunner().invoke(evaluate, [str(classifier), str(tmp_path / "a.csv")])
    assert str(done.exception) == (
        f'{tmp_path}/a.csv has no column "body" and "team", with which this bundle was trained. It has: id, content. '
        "Choose with --text-column id --label-column id."
    )


def test_evaluate_reads_the_columns_of_the_bundle(classifier: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id;body;team\n1;"a good\nfilm";good\n2;a bad film;bad\n')
    done = CliRunner().invoke(evaluate, [str(classifier), str(tmp_path / "a.csv"), "--json"])
    assert json.loads(done.stdout)["a.csv"]["n_texts"] == 2
    (tmp_path / "b.csv").write_text("id,text,label\n1,a good film,good\n")
    words = [classifier, tmp_path / "b.csv", "--text-column", "text", "--label-column", "label", "--json"]
    assert json.loads(CliRunner().invoke(evaluate, list(map(str, words))).stdout)["b.csv"]["n_texts"] == 1


def test_another_bundle_is_compared_on_the_same_rows(classifier: Path, tmp_path: Path) -> None:
    own = load(classifier)
    texts = [f"{text} {n}" for n, (text, _label) in enumerate(LABELED)]
    (tmp_path / "gold.csv").write_text(
        "body,team\n" + "".join(f"{text},{label}\n" for text, label in zip(texts, own.predict(texts), strict=True))
    )
    swapped = replace(own.task, labels=own.task.labels[::-1])  # type: ignore[type-var]
    replace(own, task=swapped).save(tmp_path / "other")
    words = [str(classifier), str(tmp_path / "gold.csv"), "--against-bundle", str(tmp_path / "other")]
    done = CliRunner().invoke(evaluate, words)
    assert f"gold.csv, accuracy: 100.0, {tmp_path}/other 0.0: +100.0 [+100.0, +100.0], better" in done.stdout
    done = CliRunner().invoke(evaluate, [*words, "--json"])
    assert json.loads(done.stdout)["gold.csv"]["against"]["difference"] == 100.0
    same = CliRunner().invoke(evaluate, [*words[:3], str(classifier)])
    assert "+0.0 [+0.0, +0.0], no clear difference" in same.stdout
    task = make_task(Tag, TagSettings(), TAGGED)
    Bundle(task, DecodeSettings(), {}, {}).save(tmp_path / "tagger")
    done = CliRunner().invoke(evaluate, [*words[:3], str(tmp_path / "tagger")])
    assert "is a bundle of the task tag, not classify" in done.stderr


def test_options_that_need_lines(classifier: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("body\na good film\n")
    (tmp_path / "a.txt").write_text("a good film\n")
    table = tmp_path / "a.csv"
    assert "--shards takes lines" in _fault(classifier, table, "--shards", tmp_path / "s")
    assert "which is answered alone" in _fault(classifier, tmp_path / "a.txt", table)
    assert "add --json, or leave out --align" in _fault(classifier, table, "--align")
    assert "out.parquet: the output is a .csv file" in _fault(classifier, table, "-o", tmp_path / "out.parquet")
    assert "out.csv: the output is a .jsonl file" in _fault(classifier, table, "--json", "-o", tmp_path / "out.csv")
    assert "--text-column is for a table" in _fault(classifier, tmp_path / "a.txt", "--text-column", "body")
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    assert "is not text. Write it to a file" in _fault(classifier, tmp_path / "a.parquet")
    assert "is the file being read" in _fault(classifier, table, "-o", table)
    assert "there is no such file. Did you mean a.csv?" in _fault(classifier, tmp_path / "b.csv")
