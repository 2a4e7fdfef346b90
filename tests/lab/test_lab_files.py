"""The data files of the lab: what they may contain, and how a fault in one is reported."""

import logging
from pathlib import Path

import pytest

from manyheads.errors import LabError
from manyheads.lab import cards, questions
from manyheads.lab.convergence import Convergence
from manyheads.lab.lab_files import read_cards, read_question, read_revisions
from manyheads.lab.lab_tasks import Lookup
from manyheads.lab.trials.variants import with_score_scale
from manyheads.language import LANGUAGES, using

_QUESTION = """
order = 1
asks = "ability"
trial = "training_trials:scores"
tuned_on = "accuracy"
skipped = [["deep", "long"]]
full = { steps = 2000 }
title = { en = "Why?", zh = "为什么？" }
method = { en = "So.", zh = "这样。" }
differs = { en = "Nothing.", zh = "没有。" }
answer.yes = { en = "Yes: {{mean why flat short accuracy}} %.", zh = "是：{{mean why flat short accuracy}} %。" }
answer.no = { en = "No.", zh = "否。" }
sources = [{ citation = "Someone 2020", en = "It does.", zh = "确实。" }]
plots = [{ measure = "accuracy", kind = "lines" }]

[setup]
task = { type = "Lookup", n_records = [2, 12] }
model = { width = 16 }

[arms.flat]
en = "flat"
zh = "平"
[arms.deep]
en = "deep"
zh = "深"
changes = { alter = { function = "variants:with_score_scale", power = 0.5 }, "model.width" = 32 }

[conditions.short]
en = "short"
zh = "短"
[conditions.long]
en = "long"
zh = "长"
changes = { steps = 9 }

[measures.accuracy]
[measures.speed]
en = "speed"
zh = "速度"
digits = 1

[[comparisons]]
arm = "deep"
against = "flat"
condition = "short"
measure = "speed"
expect = "lower"
margin = 1
en = "more work"
zh = "计算更多"
"""
_CARDS = """
order = 5
[[cards]]
id = "why"
plot = { question = "scale", number = 0 }
question = { en = "Why?", zh = "为什么？" }
answer = { en = "So.", zh = "这样。" }
computation = [{ en = "1 + 1 = 2", zh = "1 + 1 = 2" }]
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "why.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_question_is_read_from_its_file(tmp_path: Path) -> None:
    question = read_question(written(tmp_path, _QUESTION))
    assert question.id == "why"
    assert str(question.title) == "Why?"
    with using("zh"):
        assert str(question.arm("flat").label) == "平"
        assert str(question.measure("accuracy").label) == "准确率 (%)"
    assert question.setup is not None
    assert question.setup.task == Lookup(n_records=(2, 12))
    alter = question.arm("deep").changes["alter"]
    assert alter.func is with_score_scale and alter.keywords == {"power": 0.5}
    assert [(arm.name, condition.name) for arm, condition in question.cells()] == [
        ("flat", "short"),
        ("deep", "short"),
        ("flat", "long"),
    ]
    assert question.comparisons[0].margin == 1
    assert question.n_seeds == 6


def test_cards_are_read_from_their_file(tmp_path: Path) -> None:
    order, (card,) = read_cards(written(tmp_path, _CARDS))
    assert (order, card.id, card.plot) == (5, "why", ("scale", 0))
    assert str(card.computation[0]) == "1 + 1 = 2"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('en = "flat"\n', "", r"why.toml: arms.flat.en is missing."),
        ('en = "flat"', "en = 3", r"why.toml: arms.flat.en is 3, which is not of type str."),
        (
            "[measures.speed]",
            "[measures.speed]\nbetterr = 1",
            r"speed.betterr is unknown. Did you mean better?",
        ),
        ("order = 1", "order = true", r"order is True, which is not of type int"),
        ("order = 1", "order = 1\nclaim = 3", r"claim is unknown. Did you mean claims?"),
        ('against = "flat"', 'against = "flatt"', r"comparisons\[1\].against is 'flatt'. Did you mean flat?"),
        ('measure = "speed"', 'measure = "speeed"', r"comparisons\[1\].measure is 'speeed'. Did you mean speed?"),
        ('expect = "lower"', 'expect = "low"', r"comparisons\[1\].expect is 'low'. Did you mean lower?"),
        (
            "training_trials:scores",
            "training_trials:none",
            r"trial is 'training_trials:none', which no module of",
        ),
        (
            "variants:with_score",
            "nothing:with_score",
            r"arms.deep.changes.alter is 'nothing:with_score_scale'",
        ),
        ('type = "Lookup"', 'type = "Look"', r"setup.task: module 'manyheads.lab.lab_tasks' has no attribute 'Look'"),
        ("n_records = [2", "n_record = [2", r"setup.task: .*unexpected keyword argument 'n_record'"),
        ("changes = { steps", "changes = { stepss", r"conditions.long.changes is 'stepss'. Did you mean steps?"),
        ("model = { width", "models = { width", r"setup: .*unexpected keyword argument 'models'"),
        (
            'zh = "是：{{mean why flat',
            'zh = "是：{{mean why deep',
            r"answer.yes.zh quotes other figures",
        ),
        ("[arms.flat]", "[arms.flat", r"why.toml cannot be read: not valid TOML"),
        ('asks = "ability"', 'asks = "abilities"', r"asks is 'abilities'. Did you mean ability?"),
        ('asks = "ability"\n', "", r"why.toml: asks is missing."),
        ("differs =", "differ =", r"why.toml: differs is missing."),
        ("order = 1", "order = 1\nlearning_rates = [0.1, 0.01]", r"learning_rates is \[0.1, 0.01\], which cannot be"),
        (
            "order = 1",
            "order = 1\nlearning_rates = [0, 0.01]",
            r"cannot be extended on both sides. Give positive rates",
        ),
        ("order = 1", "order = 1\nlearning_rates = []", r"learning_rates is \[\], which cannot be extended"),
        ("order = 1", 'order = 1\nlearning_rates = ["a"]', r"learning_rates is \['a'\], which cannot be extended"),
        ("[setup]", "[setup]\nconvergence = { levels = 1 }", r"setup: .*unexpected keyword argument 'levels'"),
    ],
)
def test_a_fault_of_a_question_names_the_file_and_the_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in _QUESTION
    with pytest.raises(LabError, match=message) as caught:
        read_question(written(tmp_path, _QUESTION.replace(old, new)))
    assert "\n" not in str(caught.value).split(" cannot be read")[0]
    assert str(tmp_path / "why.toml") in str(caught.value)


def test_a_stopping_rule_is_read_from_the_file(tmp_path: Path) -> None:
    rule = "[setup]\nconvergence = { level = 0.9, patience = 40 }"
    question = read_question(written(tmp_path, _QUESTION.replace("[setup]", rule)))
    assert question.converges
    assert question.setup is not None and question.setup.convergence == Convergence(level=0.9, patience=40)
    assert not read_question(written(tmp_path, _QUESTION)).converges


def test_revised_claims_are_read_and_checked(tmp_path: Path) -> None:
    text = '[[revisions]]\nquestion = "why"\nbefore = { en = "a", zh = "甲" }\nafter = { en = "b", zh = "乙" }\n'
    (revision,) = read_revisions(written(tmp_path, text))
    assert (revision.question, str(revision.before), revision.after["zh"]) == ("why", "a", "乙")
    with pytest.raises(LabError, match=r"revisions\[1\].befor is unknown. Did you mean before"):
        read_revisions(written(tmp_path, text + 'befor = "x"'))


def test_a_fault_of_a_card_names_the_file_and_the_key(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"why.toml: cards\[1\].answers is unknown. Did you mean answer"):
        read_cards(written(tmp_path, _CARDS + 'answers = { en = "" }'))


def test_a_missing_translation_is_reported_and_shown_in_english(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "manyheads"):
        question = read_question(written(tmp_path, _QUESTION.replace('zh = "平"\n', "")))
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path / 'why.toml'}: arms.flat.zh is missing: the text is in English."
    ]
    with using("zh"):
        assert str(question.arm("flat").label) == "flat"


def test_every_text_that_we_ship_is_in_every_language(caplog: pytest.LogCaptureFixture) -> None:
    assert len(LANGUAGES) >= 2
    with caplog.at_level(logging.WARNING, "manyheads"):
        for path in Path(questions.__file__).parent.glob("*.toml"):
            read_question(path)
        for path in Path(cards.__file__).parent.glob("*.toml"):
            read_cards(path)
    assert not caplog.records
