"""`Split`: no text is in two sets, whatever they have in common; no other row is lost, and the counts add up."""

import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from manyheads.data import CleanSettings, Texts
from manyheads.data.cleaning import DUPLICATE, EMPTY, IN_TEST, KEPT, LEAKED
from manyheads.data.split import HELD_OUT
from manyheads.run import Corpus, DataSettings, MixSettings
from manyheads.run.held_out import assign_folds
from manyheads.tasks import TASKS, ClassifySettings, LanguageSettings, Seq2SeqSettings, TagSettings
from manyheads.text.reading.readers import Row

TASK_SETTINGS: dict[str, Any] = {"classify": ClassifySettings(), "tag": TagSettings(), "seq2seq": Seq2SeqSettings()}


def normalized(text: str) -> str:
    return " ".join(text.casefold().split())


def texts_of(rows: Iterable[Row], n_texts: int) -> list[set[str]]:
    """Return the texts of each field."""
    rows = list(rows)
    return [{normalized(row[field]) for row in rows} - {""} for field in range(n_texts)]


def has_text(row: Row, texts: Sequence[set[str]]) -> bool:
    return any(normalized(row[field]) in known for field, known in enumerate(texts))


@dataclass
class Case:
    """A recipe with random overlaps between all of its sets."""

    corpus: Corpus
    train: list[Row]
    valid: list[Row] | None
    test: list[Row]  # or the rows of the fold

    @property
    def n_texts(self) -> int:
        return self.corpus.fields.n_texts


def make_case(folder: Path, kind: str, seed: int) -> Case:
    draw = random.Random(f"{kind} {seed}")
    n_texts = draw.choice((30, 80, 200))

    def text(noun: str) -> str:
        words = [noun, "number", str(draw.randrange(n_texts))]
        written = draw.choice((" ", "  ")).join(words)
        return draw.choice((written, written, written.upper(), f" {written}"))

    def row() -> Row:
        if draw.random() < 0.02:
            return ("", "a") if kind != "tag" else ("x y z", "O O O")
        if kind == "classify":
            return text("text"), draw.choice("ab")
        if kind == "tag":
            return " ".join(text("text").split()), f"{draw.choice(('B-X', 'O'))} O O"
        return text("text"), text("Satz")

    def write(name: str, rows: Sequence[Row]) -> str:
        lines = [json.dumps(dict(zip(fields, one, strict=True))) for one in rows]
        (folder / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
        return str(folder / name)

    task = TASK_SETTINGS[kind]
    fields = TASKS[kind].fields(task)
    parts = [[row() for _ in range(draw.choice((40, 150)))] for _ in range(draw.choice((1, 2)))]
    train = [one for part in parts for one in part]
    has_valid, held_out = draw.random() < 0.5, draw.choice(("test", "fold", "none"))
    # Some rows are exactly those of training, some of validation.
    valid = [draw.choice([row(), draw.choice(train)]) for _ in range(30)] if has_valid else None
    test = [draw.choice([row(), draw.choice(train), draw.choice(valid or train)]) for _ in range(20)]
    settings = DataSettings(
        mix=tuple(MixSettings(files=(write(f"train-{n}.jsonl", part),)) for n, part in enumerate(parts)),
        valid=(write("valid.jsonl", valid),) if valid else (),
        test=(write("test.jsonl", test),) if held_out == "test" else (),
        **({"folds": 3, "fold": draw.choice((1, 2, 3))} if held_out == "fold" else {}),
        **{f"{field}_column": field for field in fields},
    )
    corpus = Corpus(settings, 1, CleanSettings(max_ratio=0.0), task)
    if held_out == "fold":
        # As the task reads them: a tagger splits its tags.
        read = [one for part in settings.corpora for one in corpus.read(part)]
        folds = assign_folds(filter(corpus._is_usable, read), corpus._stratum, 3)
        test = [one for one, fold in folds.items() if fold == settings.fold]
    return Case(corpus, train, valid, test if held_out != "none" else [])


@pytest.mark.parametrize("kind", TASK_SETTINGS)
@pytest.mark.parametrize("seed", range(25))
def test_no_text_is_in_two_sets_and_no_other_row_is_lost(tmp_path: Path, kind: str, seed: int) -> None:
    case = make_case(tmp_path, kind, seed)
    corpus, n_texts = case.corpus, case.n_texts
    valid_counts = Counter[str]()
    valid = list(corpus.valid(valid_counts))
    sets = corpus.tests()
    assert set(sets) == ({"test"} if case.test else {"valid"})
    test = list(sets["test"]) if case.test else []
    assert test == case.test
    corpus.write(tmp_path / "text")
    train = list(Texts.open(tmp_path / "text"))
    counts = sum(map(Counter, json.loads((tmp_path / "text" / "counts.json").read_text("utf-8"))["counts"]), Counter())
    assert counts == corpus.count()

    for one, other in ((valid, test), (train, test), (train, valid), (corpus.train(), [*valid, *test])):
        for ours, theirs in zip(texts_of(one, n_texts), texts_of(other, n_texts), strict=True):
            assert not ours & theirs

    # Counts: every row of the files is kept or dropped for one reason.
    fold = set(case.test) if corpus.data.fold else set()
    n_read = sum(row not in fold for row in case.train)
    assert sum(counts.values()) == n_read and counts[KEPT] == len(train)
    sampled = {} if case.valid else corpus.split.sampled()
    candidates = case.valid if case.valid is not None else list(sampled)
    assert counts[HELD_OUT] == len(sampled)
    assert len(candidates) == len(valid) + valid_counts[IN_TEST]
    assert set(counts) <= {KEPT, EMPTY, HELD_OUT, LEAKED, DUPLICATE} and set(valid_counts) <= {IN_TEST}

    # Nothing else is lost.
    tested, unseen = texts_of(test, n_texts), texts_of([*candidates, *test], n_texts)
    assert valid == [row for row in candidates if not has_text(row, tested)]
    usable = [row for row in case.train if all(field.strip() for field in row) and row not in {*fold, *sampled}]
    assert train == list(dict.fromkeys(row for row in usable if not has_text(row, unseen)))


def test_random_cases_overlap(tmp_path: Path) -> None:
    """The property above says little unless the cases contain what it forbids."""
    kinds = Counter[str]()
    for kind in TASK_SETTINGS:
        for seed in range(25):
            (tmp_path / f"{kind}{seed}").mkdir()
            case = make_case(tmp_path / f"{kind}{seed}", kind, seed)
            counts = Counter[str]()
            list(case.corpus.valid(counts))
            source = "fold" if case.corpus.data.fold else "test" if case.test else "none"
            if counts[IN_TEST]:
                kinds[f"{source}, {'files' if case.valid else 'sampled'}"] += 1
    assert set(kinds) == {"test, files", "test, sampled", "fold, files", "fold, sampled"}
    assert min(kinds.values()) >= 5


@pytest.mark.parametrize("seed", range(40))
def test_whole_documents_are_in_one_set(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    n_different = draw.choice((1, 3, 12))
    pool = [f"{name} {length} " + "".join(map(str, range(length))) for name in "abcdefghijkl" for length in (7, 40)]
    documents = [draw.choice(pool[: 2 * n_different]) for _ in range(draw.choice((1, 4, 30)))]
    test = [draw.choice([draw.choice(documents), "other"]).upper() for _ in range(3)]
    for name, lines in (("train.txt", documents), ("test.txt", test)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    data = DataSettings(train=(str(tmp_path / "train.txt"),), test=(str(tmp_path / "test.txt"),), valid_fraction=0.3)
    corpus = Corpus(data, 1, CleanSettings(drop_duplicates=False), LanguageSettings(documents="line"))
    counts, valid_counts = corpus.count(), Counter[str]()
    valid = [text for (text,) in corpus.valid(valid_counts)]
    corpus.write(tmp_path / "text")
    train = [text for (text,) in Texts.open(tmp_path / "text")]
    tested = {text.casefold() for text in test}
    assert not tested & {*train, *valid}
    assert counts[KEPT] == len(train)
    # At most one document is divided, and never one that the test set contains.
    heads, tails = ([part for part in rows if part not in documents] for rows in (train, valid))
    assert len(heads) <= 1 and len(tails) == len(heads)
    assert all(head + tail in set(documents) - tested for head, tail in zip(heads, tails, strict=True))
    # Each document is kept, or dropped for a reason, or divided: then it counts twice.
    assert sum(counts.values()) + len(valid) + valid_counts[IN_TEST] == len(documents) + len(heads)


def test_a_document_of_the_test_set_is_not_trained_on_in_part(tmp_path: Path) -> None:
    """A single file is divided into training and validation text, and neither part is the text of the test set."""
    for name in ("book.txt", "copy.txt"):
        (tmp_path / name).write_text("Call me Ishmael. " * 50, "utf-8")
    data = DataSettings(train=(str(tmp_path / "book.txt"),), test=(str(tmp_path / "copy.txt"),))
    corpus = Corpus(data, 1, task=LanguageSettings())
    assert corpus.count() == {LEAKED: 1}
    assert list(corpus.train()) == list(corpus.valid()) == []
    kept = Corpus(data, 1, CleanSettings(drop_leaked=False), LanguageSettings())
    assert kept.count() == {KEPT: 1} and list(kept.valid()) == []  # whole, and not validated on


@pytest.mark.parametrize(
    ("kind", "language"), [(kind, "en-zh" if kind == "seq2seq" else language) for kind in TASKS for language in ("en",)]
)
def test_the_built_in_corpus_has_no_text_in_two_sets(kind: str, language: str) -> None:
    corpus = Corpus(DataSettings(builtin=language, builtin_rows=5000), 1, task=TASKS[kind].settings_type())
    sets = {"train": corpus.train(), "valid": corpus.valid(), **corpus.tests()}
    texts = {name: texts_of(rows, corpus.fields.n_texts) for name, rows in sets.items()}
    for field in range(corpus.fields.n_texts):
        every = [text for name in texts for text in texts[name][field]]
        assert len(every) == len(set(every)) > 3000


def test_rows_that_leak_are_kept_only_on_request_and_never_validated_on(tmp_path: Path) -> None:
    rows = [f"text {number}\t{'ab'[number % 2]}" for number in range(100)]
    (tmp_path / "train.tsv").write_text("\n".join(["text\tlabel", *rows]), "utf-8")
    (tmp_path / "test.tsv").write_text("text\tlabel\n" + "\n".join(rows[:50]).upper(), "utf-8")
    data = DataSettings(train=(str(tmp_path / "train.tsv"),), test=(str(tmp_path / "test.tsv"),))
    corpora = [Corpus(data, 1, CleanSettings(drop_leaked=value), ClassifySettings()) for value in (True, False)]
    tested = {text.lower() for text, _ in corpora[0].tests()["test"]}
    valid = [list(corpus.valid()) for corpus in corpora]
    assert valid[0] == valid[1] and 0 < len(valid[0]) < 20
    assert not tested & {text for text, _ in valid[0]}
    assert corpora[1].count() == {KEPT: 80, HELD_OUT: 20}
    counts = corpora[0].count()
    assert counts == {KEPT: 50 - len(valid[0]), HELD_OUT: 20, LEAKED: 30 + len(valid[0])}
