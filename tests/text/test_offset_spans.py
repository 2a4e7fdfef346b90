"""Exports of labeling tools: spans by character offsets become tags of words."""

import json
from pathlib import Path
from typing import Any

import pytest

from manyheads.errors import DataError
from manyheads.proposals.recognition import recognize
from manyheads.proposals.survey import survey
from manyheads.tasks import Classify, ClassifySettings, Tag, TagSettings
from manyheads.text.reading.offset_spans import parse_spans
from manyheads.text.reading.readers import columns_of
from manyheads.text.reading.tagged_readers import read_tagged

from text.makers import Write, refuses

TEXTS = ["Anna Smith sees\nBerlin.", "The dog sleeps.", "(Tom) is in New York!"]
SPANS = [[(0, 10, "PER"), (16, 22, "LOC")], [], [(1, 4, "PER"), (12, 20, "LOC")]]
ROWS = [
    ("Anna Smith sees Berlin .", "B-PER I-PER O B-LOC O"),
    ("The dog sleeps .", "O O O O"),
    ("( Tom ) is in New York !", "O B-PER O O O B-LOC I-LOC O"),
]


def _lines(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def _doccano(text: str, spans: list[tuple[int, int, str]]) -> dict[str, Any]:
    return {"id": 7, "text": text, "label": [list(span) for span in spans], "Comments": []}


def _relations(text: str, spans: list[tuple[int, int, str]]) -> dict[str, Any]:
    entities = [{"id": 1, "label": label, "start_offset": start, "end_offset": end} for start, end, label in spans]
    return {"text": text, "entities": entities, "relations": []}


def _prodigy(text: str, spans: list[tuple[int, int, str]]) -> dict[str, Any]:
    found = [
        {"start": start, "end": end, "token_start": 0, "token_end": 1, "label": label} for start, end, label in spans
    ]
    return {"text": text, "_input_hash": 1, "_task_hash": 2, "tokens": [], "spans": found, "answer": "accept"}


def _own(text: str, spans: list[tuple[int, int, str]]) -> dict[str, Any]:
    found = [
        {"start": start, "end": end, "label": label, "text": text[start:end], "probability": 0.9}
        for start, end, label in spans
    ]
    return {"line": 1, "source": text, "answer": found, "text": text, "spans": found, "label": "", "probabilities": {}}


@pytest.mark.parametrize(
    ("make", "column"), [(_doccano, "label"), (_relations, "entities"), (_prodigy, "spans"), (_own, "spans")]
)
def test_jsonl_of_every_tool(write: Write, make: Any, column: str) -> None:
    texts = [f"{text} {number}" for number in range(20) for text in TEXTS]
    path = write("export.jsonl", _lines(list(map(make, texts, SPANS * 20))))
    rows = [(f"{words} {number}", f"{tags} O") for number in range(20) for words, tags in ROWS]
    assert list(read_tagged(path, word_column="text", tag_column=column)) == rows
    found = recognize([path])
    assert found.task.kind == "tag"
    assert found.settings.columns() == {"text": "text", "tags": column}
    assert survey(found.settings, found.task, found.clean).counts.labels.keys() == {"PER", "LOC"}


def _label_studio(text: str, spans: list[tuple[int, int, str]]) -> dict[str, Any]:
    result = [
        {
            "type": "labels",
            "from_name": "label",
            "to_name": "text",
            "value": {"start": start, "end": end, "text": text[start:end], "labels": [label]},
        }
        for start, end, label in spans
    ]
    return {"id": 1, "data": {"text": text}, "annotations": [{"id": 2, "was_cancelled": False, "result": result}]}


def test_label_studio(write: Write) -> None:
    tasks = list(map(_label_studio, TEXTS, SPANS)) * 20
    unfinished = {"id": 9, "data": {"text": "not yet"}, "annotations": []}
    cancelled = {"data": {"text": "skipped"}, "annotations": [{"was_cancelled": True, "result": []}]}
    path = write("project.json", json.dumps([*tasks, unfinished, cancelled]))
    assert columns_of(path) == ["text", "spans"]
    assert list(read_tagged(path, word_column="text", tag_column="spans")) == ROWS * 20
    assert recognize([path]).settings.columns() == {"text": "text", "tags": "spans"}
    small = [
        {"text": text, "label": [{"start": s, "end": e, "text": "", "labels": [name]} for s, e, name in spans]}
        for text, spans in zip(TEXTS, SPANS, strict=True)
    ]
    path = write("min.json", json.dumps(small))
    assert list(read_tagged(path, word_column="text", tag_column="label")) == ROWS


def test_label_studio_choices_are_labels(write: Write) -> None:
    def task(number: int) -> dict[str, Any]:
        value = {"choices": ["good" if number % 2 else "bad"]}
        return {"data": {"review": f"film number {number}"}, "annotations": [{"result": [{"value": value}]}]}

    path = write("choices.json", json.dumps([task(number) for number in range(40)]))
    found = recognize([path])
    assert (found.task.kind, found.settings.columns()) == ("classify", {"text": "review", "label": "label"})
    rows = list(Classify.read([str(path)], found.settings.columns(), found.task))
    assert rows[:2] == [("film number 0", "bad"), ("film number 1", "good")]


def test_doccano_labels_in_lists_of_one(write: Write) -> None:
    records = [{"text": f"film number {n}", "label": ["good" if n % 2 else "bad"]} for n in range(40)]
    path = write("a.jsonl", _lines(records))
    found = recognize([path])
    assert not found.task.multi_label
    rows = Classify.read([str(path)], {"text": "text", "label": "label"}, ClassifySettings())
    assert next(rows) == ("film number 0", "bad")
    several = write("b.jsonl", _lines([*records, {"text": "film", "label": ["good", "bad"]}]))
    assert recognize([several]).task.multi_label


def test_rejected_examples_of_prodigy_are_left_out(write: Write) -> None:
    records = [_prodigy(text, spans) for text, spans in zip(TEXTS, SPANS, strict=True)]
    records[1]["answer"] = "reject"
    path = write("a.jsonl", _lines(records))
    assert list(read_tagged(path, word_column="text", tag_column="spans")) == [ROWS[0], ROWS[2]]


def test_chinese_is_tagged_by_character(write: Write) -> None:
    text = "王小明住在北京。他用iPhone。"
    others = [_doccano("他们今天去学校。" * 5, []), _doccano("天气很好。" * 5, [])]
    path = write("a.jsonl", _lines([_doccano(text, [(0, 3, "PER"), (5, 7, "LOC")]), *others]))
    words, tags = next(read_tagged(path, word_column="text", tag_column="label"))
    assert words == " ".join(text)
    assert tags.split()[:8] == ["B-PER", "I-PER", "I-PER", "O", "O", "B-LOC", "I-LOC", "O"]


def test_spans_that_do_not_fit(write: Write) -> None:
    faulty = _doccano("Anna sees Tom.", [(0, 3, "PER"), (2, 8, "X"), (10, 13, "PER"), (13, 99, "X"), (4, 5, "X")])
    path = write("a.jsonl", _lines([faulty]))
    with refuses("*/a.jsonl, line 1: the span 2 to 8 (X) is left out: another span is there."):
        list(read_tagged(path, word_column="text", tag_column="label"))
    faults: list[DataError] = []
    rows = list(read_tagged(path, word_column="text", tag_column="label", on_fault=faults.append))
    assert rows == [("Anna sees Tom .", "B-PER O B-PER O")]  # a part of a word is the word
    assert [str(fault).partition("): ")[0].partition("the span ")[2] for fault in faults] == [
        "2 to 8 (X) is left out: another span is there.",
        "4 to 5 (X) is left out: it has no word of the text.",
        "13 to 99 (X) is left out: it has no word of the text.",
    ]


def test_labels_have_no_spaces(write: Write) -> None:
    path = write("a.jsonl", _lines([_doccano("Anna sees Tom.", [(0, 4, "first name")])]))
    assert next(Tag.read([str(path)], {"text": "text", "tags": "label"}, TagSettings()))[1] == "B-first_name O O O"


@pytest.mark.parametrize("value", [None, "B-PER", [1], [[1, 2]], [{"start": 1}], [[True, 2, "x"]], [[0, 1, ""]], {}])
def test_what_is_not_a_list_of_spans(value: object) -> None:
    assert parse_spans(value) is None


def test_damaged_json(write: Write) -> None:
    for content, message in (
        ("[1, 2]", "*/a.json is not an array of JSON objects. For one object per line, rename it to .jsonl."),
        ('{"a": 1}', "*/a.json is not an array of JSON objects. *"),
        ("[{", "*/a.json is not JSON (*)."),
        ("[" * 100_000, "*/a.json is not JSON (*)."),
        ("[]", "*/a.json has no labeled row. Give a file with rows."),
        ("", "*/a.json is empty. Give a file with text."),
    ):
        with refuses(message):
            columns_of(write("a.json", content))
    with pytest.raises(DataError, match=r"line 2: byte .* is not UTF-8"):
        columns_of(write("a.json", b'[\n{"a": "\xff"}]'))


def test_a_large_file_is_one_line(write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from manyheads.text.reading.formats import json_format

    monkeypatch.setattr(json_format, "_MOST_BYTES", 1 << 20)
    path = write("a.json", b'[{"text": "' + b"a" * (1 << 20) + b'"}]')
    with refuses("*/a.json is larger than 1 MiB, the limit of its format. Split it."):
        columns_of(path)
