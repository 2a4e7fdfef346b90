"""Surveys: counts, dropped rows and errors for pairs, labels, tags and documents."""

from pathlib import Path

import pytest

from manyheads import corpora
from manyheads.errors import DataError
from manyheads.proposals import survey as survey_module
from manyheads.proposals.survey import survey
from manyheads.run.recipe import DataSettings
from manyheads.tasks import ClassifySettings, LanguageSettings, TagSettings


def write_pairs(path: Path, pairs: list[tuple[str, str]]) -> DataSettings:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), "utf-8")
    return DataSettings(train=(str(path),))


def test_survey_counts_and_cleans(tmp_path: Path) -> None:
    pairs = list(corpora.pairs("en", "zh", "train", 400))
    distinct = list(dict.fromkeys(pairs))
    data = write_pairs(tmp_path / "en-zh.tsv", [*distinct, distinct[0], ("only one side", "")])
    found = survey(data, named_languages=("zh", "en"))
    assert found.languages == ("en", "zh")  # the text overrides the file name
    assert found.is_exact
    assert found.n_read == len(distinct) + 2
    assert found.dropped["empty"] == 1
    assert found.n_rows + found.n_held_out + sum(found.dropped.values()) >= found.n_read
    assert found.n_rows == len(found.sample)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("", "x")] * 3, "there is no usable pair"),
        ([(f"text {n}", "good") for n in range(2000)], "only 1 different"),
        ([("one", "eins")], "a.tsv: 1 pair, too few to keep any out of training to validate on"),
        ([("x22", "y22")], "a.tsv: 1 pair, too few"),  # the only pair is one that is held out
        ([(f"text {n}", f"text {n}") for n in range(200)], "the target is the same as the source in 1"),
    ],
)
def test_unusable_pairs_are_refused(tmp_path: Path, pairs: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        survey(write_pairs(tmp_path / "a.tsv", pairs))


def test_sample_is_drawn_from_the_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey_module, "_MAX_EXAMINED", 200)
    pairs = [(f"{'word ' * (n // 100)}{n}", f"{'Wort ' * (n // 100)}{n}") for n in range(1000)]
    data = write_pairs(tmp_path / "a.tsv", pairs)
    found = survey(data)
    assert (found.n_read, found.n_examined, found.is_exact) == (1000, 200, False)
    assert 900 < found.n_rows < 1000
    assert sum(int(source.split()[-1]) >= 500 for source, _ in found.sample) > 60
    assert survey(data) == found


def test_sample_of_long_rows_is_bounded_and_uniform() -> None:
    rows = [(f"{n:>100}", "x") for n in range(1000)]
    sample, n_read = survey_module._sample(iter(rows), 400, max_characters=101 * 300)
    assert n_read == 1000
    assert 100 < len(sample) <= 300
    assert len({*sample}) == len(sample)
    share = sum(int(text) >= 500 for text, _ in sample) / len(sample)
    assert 0.4 < share < 0.6
    assert survey_module._sample(iter(rows[:1]), 400, max_characters=5) == (rows[:1], 1)


def test_a_few_characters_of_long_texts_are_enough_for_the_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey_module, "_SAMPLE_CHARACTERS", 10_000)
    monkeypatch.setattr(survey_module, "_VALID_CHARACTERS", 2_000)
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"{f'word {n} ' * 90}\t{'xy'[n % 2]}\n" for n in range(200)), "utf-8")
    found = survey(DataSettings(train=(str(path),)), ClassifySettings())
    assert sum(len(text) for text, _ in found.sample) <= 10_000
    assert found.n_rows == 160
    assert len(found.valid_sample) == 2
    assert found.n_validated == 40


@pytest.mark.parametrize(
    ("named", "requested", "expected"),
    [
        (("zh-CN", "en"), ("", ""), ("en", "zh-CN")),  # the text overrides the file name
        (("", ""), ("en", "zh-TW"), ("en", "zh-TW")),
        (("", ""), ("zh", "en"), None),
        (("", ""), ("zh-CN", ""), None),
    ],
)
def test_languages_contradicted_by_the_script(
    tmp_path: Path, named: tuple[str, str], requested: tuple[str, str], expected: tuple[str, str] | None
) -> None:
    data = write_pairs(tmp_path / "a.tsv", list(corpora.pairs("en", "zh", "train", 300)))
    if expected is None:
        with pytest.raises(
            DataError, match=r"the target is written in zh, but the requested direction is zh.*. Exchange"
        ):
            survey(data, named_languages=named, requested_languages=requested)
    else:
        assert survey(data, named_languages=named, requested_languages=requested).languages == expected


def test_languages_of_one_script_are_never_exchanged(tmp_path: Path) -> None:
    characters = [chr(0x4E00 + number) for number in range(300)]
    data = write_pairs(tmp_path / "a.tsv", [(f"{character}不是", f"{character}唔係") for character in characters])
    assert survey(data, named_languages=("zh", "yue")).languages == ("zh", "yue")


def write_rows(path: Path, rows: list[tuple[str, ...]], **columns: str) -> DataSettings:
    path.write_text("".join("\t".join(row) + "\n" for row in rows), "utf-8")
    return DataSettings(train=(str(path),), **columns)  # type: ignore[arg-type]


def test_labels_are_counted(tmp_path: Path) -> None:
    rows = [(f"text number {n}", "rare" if n in (3, 7) else ("good", "bad")[n % 3 == 0]) for n in range(300)]
    valid = write_rows(tmp_path / "v.tsv", [("another text", "never seen"), ("text number 3", "rare")])
    data = write_rows(tmp_path / "a.tsv", [*rows, rows[0], ("", "good")], text_column="1", label_column="2")
    data = DataSettings(train=data.train, valid=valid.train, text_column="1", label_column="2")
    found = survey(data, task=ClassifySettings())
    assert found.dropped == {"empty": 1, "in valid or test": 1, "duplicate": 1}
    assert found.counts.labels == {"good": 199, "bad": 99, "rare": 1}
    assert list(found.counts.labels) == ["good", "bad", "rare"]  # the most frequent first
    assert (found.rare_labels, found.unseen_labels, found.noun) == (["rare"], ("never seen",), "row")
    assert (found.n_rows, found.n_held_out, found.n_scored, len(found.valid_sample)) == (299, 0, 2, 2)
    assert found.length_quantile(0.5) == len("text number 150")


def test_each_of_several_labels_is_counted(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "a.tsv", [(f"text {n}", "a|b" if n % 2 else "") for n in range(100)])
    found = survey(data, task=ClassifySettings(multi_label=True))
    assert found.counts.labels["a"] == found.counts.labels["b"] >= 40


def test_spans_and_intents_are_counted(tmp_path: Path) -> None:
    rows = [(f"play song{n} now", "O B-song O", ("play", "stop")[n % 2]) for n in range(200)]
    data = write_rows(tmp_path / "a.tsv", rows, text_column="1", tags_column="2", label_column="3")
    found = survey(data, task=TagSettings(intents=True))
    assert found.counts.labels == {"song": found.n_rows}
    assert sum(found.counts.intents.values()) == found.n_rows
    assert found.n_rows + found.n_held_out == 200
    assert found.noun == "sentence"


def test_documents_are_counted_in_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a line of forty characters, more or less\n" * 1000, "utf-8")
    data = DataSettings(train=(str(path),))
    found = survey(data, task=LanguageSettings())
    total = path.stat().st_size
    assert (found.n_read, found.noun, found.are_documents) == (1, "document", True)
    assert found.n_characters == total - round(total / 20)
    assert found.n_scored_characters == found.n_held_out == round(total / 20)
    monkeypatch.setattr(survey_module, "_SAMPLE_CHARACTERS", 500)
    assert sum(map(len, survey(data, task=LanguageSettings()).texts)) == 500


@pytest.mark.parametrize(
    ("content", "task", "message"),
    [
        ("a text\tlabel\n" * 50 + "b\tlabel\n", ClassifySettings(), "every row has the label “label”"),
        ("a b\tO O\n" + "".join(f"c d{n}\tO O\n" for n in range(50)), TagSettings(), "every tag is O"),
        ("\tx\n" * 50, ClassifySettings(), "there is no usable row (50 empty)"),
        ("short\n", LanguageSettings(), "too few"),
    ],
)
def test_data_with_nothing_to_learn_is_refused(tmp_path: Path, content: str, task: object, message: str) -> None:
    path = tmp_path / ("a.txt" if isinstance(task, LanguageSettings) else "a.tsv")
    path.write_text(content, "utf-8")
    rows = tmp_path / "v.tsv"
    rows.write_text("x y\tB-z O\n" if isinstance(task, TagSettings) else "x\tlabel\n", "utf-8")
    data = DataSettings(train=(str(path),))
    if isinstance(task, ClassifySettings):
        data = DataSettings(train=data.train, valid=(str(rows),), text_column="1", label_column="2")
    elif isinstance(task, TagSettings):
        data = DataSettings(train=data.train, valid=(str(rows),))
    with pytest.raises(DataError) as caught:
        survey(data, task=task)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
