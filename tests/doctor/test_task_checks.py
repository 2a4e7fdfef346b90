"""Doctor on the data of every task: a planted fault is found and named, and clean data gives no finding."""

import json
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads import corpora
from manyheads.doctor import Finding, examine
from manyheads.settings import to_toml
from manyheads.tasks.classify.classify_commands import check_contradictions
from manyheads.tasks.task_doctor import LABEL, Source

Rows = list[tuple[str, ...]]
Plant = Callable[[Rows], Rows]
COLUMNS = {"classify": ("text", "label"), "tag": ("text", "tags"), "intents": ("text", "tags", "label")}


def examined(folder: Path, table: dict[str, object], name: str = "recipe.toml") -> dict[str, Finding]:
    """Return the findings of a recipe by check, without those that are good."""
    path = folder / name
    path.write_text(to_toml({"train": {"warmup": 100}, **table}), "utf-8")
    return {finding.check: finding for finding in examine(path, quick=True) if finding.verdict != "good"}


def write_rows(path: Path, rows: Rows, fields: tuple[str, ...]) -> str:
    path.write_text("".join(json.dumps(dict(zip(fields, row, strict=True))) + "\n" for row in rows), "utf-8")
    return str(path)


def rows_of(task: str, split: str, count: int, seed: int = 1) -> Rows:
    """Distinct rows of the built-in corpus."""
    return list(dict.fromkeys(corpora.rows(task, "en", split, 2 * count, seed)))[:count]


def labeled(
    folder: Path, task: str, plant: Plant = lambda rows: rows, valid: Plant = lambda rows: rows
) -> dict[str, Finding]:
    """Examine a classifier's or a tagger's data after a fault was planted in its training or validation set."""
    fields = COLUMNS[task]
    files = {
        "train": [write_rows(folder / "train.jsonl", plant(rows_of(task, "train", 400)), fields)],
        "valid": [write_rows(folder / "valid.jsonl", valid(rows_of(task, "valid", 50)), fields)],
    }
    settings: dict[str, object] = {"kind": "classify" if task == "classify" else "tag"}
    return examined(folder, {"data": files, "task": settings | ({"intents": True} if task == "intents" else {})})


def replaced(rows: Rows, count: int, field: int, value: Callable[[str], str]) -> Rows:
    """Change a field of the first rows."""
    return [
        (*row[:field], value(row[field]), *row[field + 1 :]) if index < count else row for index, row in enumerate(rows)
    ]


@pytest.mark.parametrize("task", list(COLUMNS))
def test_clean_rows_give_no_finding(tmp_path: Path, task: str) -> None:
    assert labeled(tmp_path, task) == {}


@pytest.mark.parametrize(
    ("plant", "check", "named"),
    [
        (lambda rows: replaced(rows, 1, 1, lambda _: "once"), "rare labels", "once: 1"),
        (lambda rows: [(text, "positive") for text, _ in rows[:380]] + [("Fine.", "mixed")], "balance", "380 of 381"),
        (lambda rows: replaced(rows, 20, 1, str.title), "similar labels", "“Mixed” (5), “mixed” (95)"),
        (lambda rows: [*rows, *replaced(rows[:5], 5, 1, lambda label: f"not {label}")], "contradicting labels", "not "),
        (lambda rows: replaced(rows, 3, 0, lambda _: " "), "blank lines", "3 of 400"),
        (lambda rows: [*rows, *rows[:40]], "duplicates", "40 of 440"),
        (lambda rows: replaced(rows, 9, 0, lambda text: text + " CafÃ©\ufffd"), "encoding", "9 of 400"),
        (lambda rows: [*rows, *rows_of("classify", "valid", 5)], "leakage", "5 of 50"),
        (lambda rows: [(text, "positive") for text, _ in rows], "balance", "every row has the label “positive”"),
    ],
)  # fmt: skip
def test_fault_of_a_classifier(tmp_path: Path, plant: Plant, check: str, named: str) -> None:
    finding = labeled(tmp_path, "classify", plant)[check]
    assert named in " ".join((finding.message, *finding.examples))
    assert finding.fix


def test_labels_that_training_lacks(tmp_path: Path) -> None:
    found = labeled(tmp_path, "classify", valid=lambda rows: replaced(rows, 10, 1, lambda _: "unheard-of"))
    assert found["unseen labels"].verdict == "bad"
    assert found["unseen labels"].examples == ("valid: unheard-of (10)",)


def shift(tags: str) -> str:
    """Replace the label of every entity."""
    return " ".join(tag[:2] + "WRONG" if tag != "O" else tag for tag in tags.split(" "))


@pytest.mark.parametrize(
    ("plant", "check", "named"),
    [
        (lambda rows: replaced(rows, 1, 1, shift), "rare types", "WRONG"),
        (lambda rows: replaced(rows, 130, 1, shift), "inconsistent types", "entities have another type"),
        (
            lambda rows: replaced(rows, 60, 1, lambda tags: " ".join("O" for _ in tags.split(" "))),
            "missing tags",
            "not tagged",
        ),
        (
            lambda rows: replaced(rows, 380, 1, lambda tags: " ".join("O" for _ in tags.split(" "))),
            "no entities",
            "of 400",
        ),
        (lambda rows: replaced(rows, 60, 1, str.lower), "readable", "a tag must be O"),
    ],
)
def test_fault_of_a_tagger(tmp_path: Path, plant: Plant, check: str, named: str) -> None:
    finding = labeled(tmp_path, "tag", plant)[check]
    assert named in " ".join((finding.message, *finding.examples))
    assert finding.fix


def test_intents_are_checked_as_labels(tmp_path: Path) -> None:
    found = labeled(tmp_path, "intents", lambda rows: replaced(rows, 2, 2, lambda _: "once"))
    assert found["rare intents"].examples == ("once: 2",)


def test_faults_of_a_tagging_scheme_are_located(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lines = [f"{word}\t{tag}" for n in range(300) for word, tag in (("Ann", "B-PER"), (f"saw{n}", "O"), ("", ""))]
    lines[31 * 3] = "Ann\tI-PER"
    (tmp_path / "train.conll").write_text("\n".join(line.strip() for line in lines), "utf-8")
    found = examined(tmp_path, {"data": {"train": [str(tmp_path / "train.conll")]}, "task": {"kind": "tag"}})
    assert [check for check in found if check != "rare types"] == []  # repaired, with a warning
    assert "the tags of 1 of 300 sentences are not valid and were repaired" in caplog.text
    assert "lines 94 to 95: tag 1 of 2, I-PER at the start, is not valid in IOB2" in caplog.text


def documents(folder: Path, kind: str, texts: list[str]) -> dict[str, Finding]:
    (folder / "texts").mkdir()
    for number, text in enumerate(texts):
        (folder / "texts" / f"{number}.txt").write_text(text, "utf-8")
    return examined(folder, {"data": {"train": [str(folder / "texts")]}, "task": {"kind": kind}})


def stories(count: int) -> list[str]:
    """Documents of five different stories each."""
    texts = list(dict.fromkeys(text for (text,) in corpora.rows("generate", "en", "train", 8 * count)))
    return ["\n".join(texts[start : start + 5]) for start in range(0, 5 * count, 5)]


@pytest.mark.parametrize("kind", ["language", "masked"])
def test_clean_documents_give_no_finding(tmp_path: Path, kind: str) -> None:
    assert documents(tmp_path, kind, stories(40)) == {}


@pytest.mark.parametrize(
    ("plant", "check", "named"),
    [
        (lambda texts: texts[:3], "amount of text", "3 documents"),
        (lambda texts: [*texts, *texts[:5]], "duplicates", "5 of 45"),
        (lambda texts: [*texts[:-1], ""], "blank lines", "1 of 40"),
        (lambda texts: [texts[0] + " Ã¼ber\x07", *texts[1:]], "encoding", "1 of 40"),
        (
            lambda texts: [text.replace("\n", "\nPage header: all rights reserved, do not copy.\n") for text in texts],
            "repeated lines",
            "Page header",
        ),
        (lambda texts: [f"<p>{text}<br>&nbsp;" for text in texts], "markup", "<p>"),
    ],
)
def test_fault_of_documents(tmp_path: Path, plant: Callable[[list[str]], list[str]], check: str, named: str) -> None:
    finding = documents(tmp_path, "language", plant(stories(40)))[check]
    assert named in " ".join((finding.message, *finding.examples))
    assert finding.fix


def pairs(folder: Path, purpose: str, rows: Rows) -> dict[str, Finding]:
    file = write_rows(folder / "train.jsonl", rows, ("source", "target"))
    return examined(folder, {"data": {"train": [file]}, "task": {"purpose": purpose}})


def stories_and_titles(count: int) -> Rows:
    return [(text, f"{text.split('.')[0]}.") for text in stories(count)]


def replies(count: int) -> Rows:
    """Answers of any length to questions, in the same language."""
    rng = random.Random(1)
    return [(f"Is room {n} free?", f"Room {n} is free {' and quiet' * rng.randrange(4)}.") for n in range(count)]


def test_clean_summaries_and_dialogues_give_no_finding(tmp_path: Path) -> None:
    assert pairs(tmp_path, "summary", stories_and_titles(150)) == {}
    assert pairs(tmp_path, "dialogue", replies(600)) == {}


@pytest.mark.parametrize(
    ("purpose", "rows", "check", "named"),
    [
        ("summary", [(title, text) for text, title in stories_and_titles(150)], "summaries", "150 of 150"),
        ("summary", [(text, text) for text, _ in stories_and_titles(150)], "copied targets", "150 of 150"),
        ("dialogue", [(question, "No idea.") for question, _ in replies(200)], "replies", "no idea."),
    ],
)
def test_fault_of_summaries_and_dialogues(tmp_path: Path, purpose: str, rows: Rows, check: str, named: str) -> None:
    finding = pairs(tmp_path, purpose, rows)[check]
    assert finding.verdict == "bad"
    assert named in " ".join((finding.message, *finding.examples))


def test_types_that_depend_on_the_context_are_consistent(tmp_path: Path) -> None:
    """In "from Bern to Bonn", a city's type says what it is and which part it plays."""
    cities = ["Bern", "Bonn", "Rome", "Oslo", "Riga"]
    rows: Rows = [
        (f"trip {n} from {one} to {other}", "O O O B-from.city O B-to.city")
        for n in range(20)
        for one in cities
        for other in cities
    ]
    found = labeled(tmp_path, "tag", lambda _: rows)
    assert "inconsistent types" not in found


def test_contradictions_in_many_rows_take_linear_time() -> None:
    rows = [(f"text {number // 2}", f"label {number % 2}") for number in range(40_000)]
    started = time.process_time()
    finding = check_contradictions(Source("train", lambda: rows), 1, LABEL)
    assert "40,000 of 40,000" in finding.message and finding.examples[0] == "train:1: text 0 → label 0"
    assert time.process_time() - started < 3
