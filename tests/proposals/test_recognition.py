"""Recognition of the task by names, columns and contents, and the errors if the data is ambiguous."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from manyheads.errors import DataError
from manyheads.language import using
from manyheads.proposals.recognition import RecognizedData, recognize
from manyheads.tasks import ClassifySettings, LanguageSettings, MaskedSettings, Seq2SeqSettings, TagSettings
from manyheads.tasks.task_init import Request

REVIEWS = [(f"this is review number {n} of a film", ("good", "bad")[n % 2]) for n in range(40)]
POEM = "the moon shines in at the window, and no one is at home but the cat"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def table(path: Path, rows: Sequence[Sequence[object]], header: str = "", separator: str = "\t") -> Path:
    lines = [header] * bool(header) + [separator.join(map(str, row)) for row in rows]
    return write(path, "".join(f"{line}\n" for line in lines))


def jsonl(path: Path, records: Sequence[dict[str, object]]) -> Path:
    return write(path, "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records))


def columns(sets: RecognizedData) -> dict[str, str]:
    return sets.settings.columns()


def sentences(n_sentences: int, columns: str = "{word} {tag}") -> str:
    words = [("Ann", "B-PER"), ("Lee", "I-PER"), ("sees", "O"), ("Rome", "B-LOC")]
    sentence = "".join(columns.format(word=word, tag=tag) + "\n" for word, tag in words)
    return f"{sentence}\n" * n_sentences


# Classification.


@pytest.mark.parametrize(
    ("name", "header", "separator", "expected"),
    [
        ("a.tsv", "", "\t", {"text": "1", "label": "2"}),
        ("a.tsv", "sentence\tlabel", "\t", {"text": "sentence", "label": "label"}),
        ("a.csv", "评论,情感", ",", {"text": "评论", "label": "情感"}),
        ("a.csv", "", ",", {"text": "1", "label": "2"}),
        ("a.csv", "what they wrote,thumbs", ",", {"text": "what they wrote", "label": "thumbs"}),
    ],
)
def test_table_of_texts_and_labels(
    tmp_path: Path, name: str, header: str, separator: str, expected: dict[str, str]
) -> None:
    sets = recognize([table(tmp_path / name, REVIEWS, header, separator)])
    assert isinstance(sets.task, ClassifySettings)
    assert columns(sets) == expected
    assert "2 values (good, bad)" in sets.reason


def test_label_column_may_come_before_the_text(tmp_path: Path) -> None:
    rows = [(n, label, 2000 + n % 7, text, "x" * (n % 3)) for n, (text, label) in enumerate(REVIEWS)]
    sets = recognize([table(tmp_path / "a.csv", rows, "id,class,year,body,note", ",")])
    assert columns(sets) == {"text": "body", "label": "class"}


def test_splits_are_recognized_by_name_among_given_files_and_in_folders(tmp_path: Path) -> None:
    paths = [table(tmp_path / f"films_{name}.tsv", REVIEWS) for name in ("train", "dev", "test")]
    for sets in (recognize([tmp_path]), recognize(paths[:1]), recognize(paths[::-1])):
        assert [Path(*files).name for files in (sets.settings.train, sets.settings.valid, sets.settings.test)] == [
            "films_train.tsv",
            "films_dev.tsv",
            "films_test.tsv",
        ]


def test_a_file_given_as_the_test_set_does_not_validate(tmp_path: Path) -> None:
    train, dev = (table(tmp_path / name, REVIEWS) for name in ("train.tsv", "dev.tsv"))
    assert recognize([train]).settings.valid == (str(dev),)
    sets = recognize([train], test=[tmp_path / "." / "dev.tsv"])
    assert (sets.settings.valid, sets.settings.test, sets.found_splits) == ((), (str(dev),), ())


def test_test_set_beside_a_table_of_any_name(tmp_path: Path) -> None:
    paths = [table(tmp_path / name, REVIEWS) for name in ("films.tsv", "test.tsv")]
    for sets in (recognize([tmp_path]), recognize(paths)):
        assert [Path(*files).name for files in (sets.settings.train, sets.settings.test)] == ["films.tsv", "test.tsv"]
        assert not sets.settings.valid


@pytest.mark.parametrize(
    ("labels", "separator"),
    [(lambda n: ["short", "long"][: 1 + n % 2], "|"), (lambda n: "short;long" if n % 2 else "short", ";")],
)
def test_lists_of_labels_are_multi_label(tmp_path: Path, labels: object, separator: str) -> None:
    assert callable(labels)
    records = [{"text": text, "labels": labels(n)} for n, (text, _) in enumerate(REVIEWS)]
    if separator == ";":
        records[0]["labels"] = "long"
        records[2]["labels"] = "new"
        records[4]["labels"] = "new;short"
    sets = recognize([jsonl(tmp_path / "a.jsonl", records)])
    assert sets.task == ClassifySettings(multi_label=True, separator=separator)


def test_numbers_as_labels(tmp_path: Path) -> None:
    records = [{"review": text, "stars": 1 + n % 5} for n, (text, _) in enumerate(REVIEWS * 2)]
    for n, record in enumerate(records):
        record["review"] = f"{record['review']} {n}"
    assert columns(recognize([jsonl(tmp_path / "a.jsonl", records)])) == {"text": "review", "label": "stars"}


def test_two_files_of_texts_and_labels(tmp_path: Path) -> None:
    texts = table(tmp_path / "texts", [(text,) for text, _ in REVIEWS])
    labels = table(tmp_path / "labels", [(label,) for _, label in REVIEWS])
    assert isinstance(recognize([texts, labels]).task, ClassifySettings)


# Tagging.


def test_conll_files(tmp_path: Path) -> None:
    for name in ("eng.train", "eng.testa", "eng.testb"):
        write(tmp_path / name, "-DOCSTART- -X- O O\n\n" + sentences(3, "{word} NN O {tag}"))
    sets = recognize([tmp_path])
    assert sets.task == TagSettings()
    assert [Path(*files).name for files in (sets.settings.train, sets.settings.valid, sets.settings.test)] == [
        "eng.train",
        "eng.testa",
        "eng.testb",
    ]


def test_parts_of_speech(tmp_path: Path) -> None:
    sentence = "".join(f"word{{n}}{position}\t{tag}\n" for position, tag in enumerate(("DET", "NOUN", "VERB", "ADV")))
    path = write(tmp_path / "train.tsv", "\n".join(sentence.format(n=n) for n in range(20)))
    assert recognize([path]).task == TagSettings()
    named = recognize([path], request=Request(scheme="words"))
    assert named.task == TagSettings(scheme="words")
    table = write(tmp_path / "a.csv", "text,pos\n" + "a dog runs,DET NOUN VERB\n" * 9)
    named = recognize([table], request=Request(columns={"tags": "pos"}))
    assert (named.task, columns(named)) == (TagSettings(), {"text": "text", "tags": "pos"})
    with pytest.raises(DataError, match=r"--scheme is not for classify: it has no tags\. Leave it out\."):
        recognize([table], request=Request(task="classify", scheme="IO"))


def test_conll_file_of_characters_in_a_tsv(tmp_path: Path) -> None:
    path = write(tmp_path / "train.tsv", "高\tB-NAME\n勇\tE-NAME\n，\tO\n\n男\tO\n" * 5)
    assert recognize([path]).task == TagSettings()


def test_folders_of_parallel_files_of_words_and_tags(tmp_path: Path) -> None:
    for part in ("train", "valid", "test"):
        write(tmp_path / part / "seq.in", "play it again \nfly to rome\n")
        write(tmp_path / part / "seq.out", "O B-song I-song \nO O B-city\n")
        write(tmp_path / part / "label", "Play\nFly\n")
    for folder in (tmp_path, tmp_path / "train"):
        sets = recognize([folder])
        assert sets.task == TagSettings(intents=True)
        assert [Path(file).name for file in sets.settings.train] == ["seq.in", "seq.out", "label"]
        assert [Path(file).parent.name for file in sets.settings.test] == ["test"] * 3
        assert sets.found_splits == ("valid", "test")
    (tmp_path / "train" / "label").unlink()
    assert recognize([tmp_path]).task == TagSettings()


def test_lists_of_words_and_tags(tmp_path: Path) -> None:
    record: dict[str, object] = {"tokens": ["Ann", "sees", "New York"], "ner": ["B-PER", "O", "B-LOC"]}
    plain = recognize([jsonl(tmp_path / "a.jsonl", [record] * 9)])
    assert (plain.task, columns(plain)) == (TagSettings(), {"text": "tokens", "tags": "ner"})
    joint = [{**record, "intent": ("see", "hear")[n % 2]} for n in range(9)]
    sets = recognize([jsonl(tmp_path / "b.jsonl", joint)])
    assert (sets.task, columns(sets)["label"]) == (TagSettings(intents=True), "intent")


# Text alone.


def test_plain_text(tmp_path: Path) -> None:
    path = write(tmp_path / "novel.txt", f"{POEM}\n\n" * 50)
    assert recognize([path]).task == LanguageSettings()
    assert recognize([path], request=Request(task="masked")).task == MaskedSettings()


def test_folder_of_plain_text(tmp_path: Path) -> None:
    for name in ("one.txt", "two.txt", "README.md"):
        write(tmp_path / name, f"{POEM}\n" * 50)
    sets = recognize([tmp_path])
    assert sets.task == LanguageSettings()
    assert [Path(file).name for file in sets.settings.train] == ["one.txt", "two.txt"]


@pytest.mark.parametrize(
    ("name", "header", "separator", "rows", "column"),
    [
        ("a.tsv", "", "\t", [(f"poet {n % 9}", f"song {n}", f"{n} {POEM}") for n in range(30)], "3"),
        ("a.csv", "id,text", ",", [(n, f"word {n}") for n in range(30)], "text"),
        ("a.csv", "body", ",", [(f"word {n}",) for n in range(30)], "body"),
    ],
)
def test_table_of_documents(
    tmp_path: Path, name: str, header: str, separator: str, rows: list[tuple[object, ...]], column: str
) -> None:
    plain = [[str(cell).replace(",", "") for cell in row] for row in rows]
    sets = recognize([table(tmp_path / name, plain, header, separator)])
    assert (sets.task, columns(sets)) == (LanguageSettings(), {"text": column})


# Pairs.


def test_pairs_of_texts_are_translations(tmp_path: Path) -> None:
    pairs = [(f"sentence {n}", f"Satz {n}") for n in range(40)]
    for path, expected in (
        (table(tmp_path / "a.tsv", pairs), {}),
        (table(tmp_path / "b.tsv", pairs, "en\tde"), {"source": "en", "target": "de"}),
        (table(tmp_path / "c.csv", pairs, "source,target", ","), {"source": "source", "target": "target"}),
    ):
        sets = recognize([path])
        assert (sets.task, columns(sets), sets.clean.max_ratio) == (Seq2SeqSettings(), expected, 3.0)
    sides = [
        table(tmp_path / f"m.{side}", [(pair[index],) for pair in pairs]) for index, side in ((0, "en"), (1, "de"))
    ]
    assert recognize(sides).languages == ("en", "de")


@pytest.mark.parametrize(
    ("source", "target", "purpose"),
    [
        ("article", "highlights", "summary"),
        ("Question", "Answer", "dialogue"),
        ("prompt", "response", "dialogue"),
        ("正文", "摘要", "summary"),
        ("input", "output", "translation"),
    ],
)
def test_summaries_and_dialogue(tmp_path: Path, source: str, target: str, purpose: str) -> None:
    records = [{"id": n, source: f"{POEM} {n} " * 9, target: f"moon {n}", "kind": "ab"[n % 2]} for n in range(30)]
    sets = recognize([jsonl(tmp_path / "a.jsonl", records)])
    assert isinstance(sets.task, Seq2SeqSettings)
    assert (sets.task.purpose, columns(sets)) == (purpose, {"source": source, "target": target})
    assert (sets.clean.max_ratio == 0) == (purpose != "translation")  # a summary is shorter than its source


def test_dialogue_may_be_a_list_of_turns(tmp_path: Path) -> None:
    records = [{"dialogue": ["hello", f"this is {n}"], "response": f"hello {n}"} for n in range(30)]
    sets = recognize([jsonl(tmp_path / "a.jsonl", records)])
    assert sets.task == Seq2SeqSettings(purpose="dialogue")


# Options override recognition.


def test_options_override_recognition(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", [(*row, n % 3) for n, row in enumerate(REVIEWS)], "text,label,other", ",")
    assert columns(recognize([path], request=Request(columns={"label": "other"}))) == {"text": "text", "label": "other"}
    assert columns(recognize([path], request=Request(columns={"label": "3"})))["label"] == "other"
    assert columns(recognize([path], request=Request(task="language"))) == {"text": "text"}
    assert recognize([path], request=Request(task="masked")).task == MaskedSettings()
    pair = {"source": "text", "target": "label"}
    assert columns(recognize([path], request=Request(columns=pair))) == pair


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("a.csv", "p,q,r\n" + "".join(f"a {n},b {n},c {n}\n" for n in range(30)), {}, "not clear which columns"),
        (
            "a.csv",
            "p,q\n" + "".join(f"a {n},b {n}\n" for n in range(30)),
            {"task": "classify"},
            "1: all different; 2: all",
        ),
        (
            "a.csv",
            "text,label\n" + "".join(f"a {n},{n}\n" for n in range(30)),
            {},
            "label has 30 different values in 30",
        ),
        ("a.csv", "text,label\n" + "".join(f"a {n},one\n" for n in range(30)), {}, "label has only “one”"),
        ("a.tsv", "word\nword\n", {}, "a.tsv has one column only"),
        ("a.csv", "text,label\n", {}, "a.csv has a header, but no rows"),
        ("a.csv", "", {}, "a.csv is empty"),
        ("a.txt", "", {}, "a.txt is empty"),
        ("a.jsonl", "{}\n[1]\n", {}, "a.jsonl, line 2 is not a JSON object"),
        ("a.dat", "some words\n", {}, "a.dat is not recognized"),
        (
            "a.txt",
            "体育\t一条新闻\n" * 20,
            {},
            "every line has 2 columns, with a tab between them: a table. Rename it to end in .tsv",
        ),
        (
            "a.txt",
            "".join(f"i feel {n};{'joy' if n % 2 else 'fear'}\n" for n in range(40)),
            {},
            "Rename it to end in .csv",
        ),
        ("a.txt", "__label__spam buy this now\n" * 20, {}, "labels as fastText writes them"),
        ("a.csv", "text,label\na,b\n", {"columns": {"label": "lable"}}, "no column lable for --label-column"),
        ("a.csv", "text,label\na,b\n", {"task": "classify", "columns": {"tags": "label"}}, "--tags-column is not for"),
        ("a.txt", "words\n", {"columns": {"label": "x"}}, "no columns to choose from"),
        ("a.csv", "text,tags\na b,X Y\n", {"task": "tag"}, "no column holds tags such as B-PER"),
        ("a.csv", "text,tags\na b c,B-X O\n", {}, "tags holds tags, but no other has as many words"),
        ("a.jsonl", '{"tokens": ["a", "b"], "ner_tags": [0, 3]}\n' * 9, {}, "ner_tags numbers the tags"),
        (
            "a.csv",
            "sentence1,sentence2,label\n" + "".join(f"a {n},b {n},{n % 2}\n" for n in range(30)),
            {},
            "several texts in a row (sentence1 and sentence2). Choose one with --text-column",
        ),
        (
            "a.csv",
            "text,one,two\n" + "".join(f"a {n},{n % 2},{n % 3}\n" for n in range(60)),
            {},
            "2 columns may be labels (one: 2 values; two: 3 values). Choose with --label-column",
        ),
    ],
)
def test_ambiguous_data_is_refused_in_one_line(
    tmp_path: Path, name: str, content: str, options: dict[str, object], message: str
) -> None:
    path = write(tmp_path / name, content)
    with pytest.raises(DataError) as caught:
        recognize([path], request=Request(**options))  # type: ignore[arg-type]
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400 + len(str(tmp_path))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "holds no files"),
        (["README.md"], "holds no files"),
        (["pos/1.txt", "neg/1.txt"], "holds only folders (neg, pos)"),
        (["a.conll", "b.jpg", "c.bin"], "it is not clear which files to train on (files: a.conll, b.jpg, c.bin)"),
    ],
)
def test_ambiguous_folders_are_refused(tmp_path: Path, files: list[str], message: str) -> None:
    for name in files:
        write(tmp_path / name, f"{POEM}\n" * 50)
    with pytest.raises(DataError) as caught:
        recognize([tmp_path])
    assert message in str(caught.value)


def test_texts_in_subfolders_are_documents_if_requested(tmp_path: Path) -> None:
    for name in ("pos/1.txt", "neg/1.txt"):
        write(tmp_path / name, f"{POEM}\n" * 50)
    assert len(recognize([tmp_path], request=Request(task="language")).settings.train) == 2


def test_reasons_are_in_the_language_in_use(tmp_path: Path) -> None:
    data = [
        table(tmp_path / "a.csv", [(f"film {n}", ("good", "bad")[n % 2]) for n in range(20)], "text,label", ","),
        write(tmp_path / "b.conll", sentences(20)),
        write(tmp_path / "c.txt", POEM),
        table(tmp_path / "d.tsv", [(f"one {n}", f"eins {n}") for n in range(20)]),
    ]
    with using("zh"):
        reasons = [recognize([path]).reason for path in data]
    assert reasons == [
        "label 列是 text 列文本的标签：2 种取值（good, bad）",
        "每行是一个词及其标注，句子之间有空行",
        "纯文本",
        "有两列文本",
    ]
    assert not any("\u4e00" <= character <= "\u9fff" for path in data for character in recognize([path]).reason)
