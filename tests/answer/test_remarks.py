"""Remarks on one text: unseen words, another language, and what `predict` remarks on the answer."""

from dataclasses import replace

import pytest

from manyheads.answer.remarks import text_remarks
from manyheads.bundle import Bundle
from manyheads.messages import Message
from manyheads.tasks import Classification, Translations
from manyheads.tasks.seq2seq.seq2seq_task import Translation
from manyheads.text.language_codes import is_in_script_of
from manyheads.text.tokens.seen_words import SeenWords

SEEN = SeenWords.of(["The cat sees the dog.", "A teacher reads"])
CANDIDATE = Translation("猫", -1.0, -1.0, True, -1.0)


def said(remarks: tuple[Message, ...]) -> list[str]:
    return [remark.by_language()["en"] for remark in remarks]


def knowing(bundle: Bundle) -> Bundle:
    return replace(bundle, seen_words=SEEN)


def test_known_words_give_no_remark(untrained: Bundle) -> None:
    assert text_remarks(knowing(untrained), "The dog reads.") == ()
    assert text_remarks(untrained, "Rabbits sneeze.") == ()  # a bundle that stores no words


def test_unseen_words_are_named(untrained: Bundle) -> None:
    assert said(text_remarks(knowing(untrained), "The dog reads Goethe")) == ["Not seen in training: Goethe."]
    many = " ".join(f"word{letter}" for letter in "abcdefghij")
    assert said(text_remarks(knowing(untrained), many)) == [
        "Most words of the text did not occur in training: is it English?",
        "Not seen in training: worda, wordb, wordc, wordd, worde, wordf, wordg, wordh ….",
    ]


def test_another_language_is_named_in_both_languages(untrained: Bundle) -> None:
    remarks = text_remarks(knowing(untrained), "猫在睡觉")
    assert said(remarks) == [
        "The text is not in English, the language that this model reads.",
        "Not seen in training: 猫, 在, 睡, 觉.",
    ]
    assert remarks[0].by_language()["zh"] == "文本不是英文，而这个模型读的是英文。"
    german = said(text_remarks(knowing(untrained), "Der Hund schläft."))
    assert german[0] == "Most words of the text did not occur in training: is it English?"


@pytest.mark.parametrize(
    ("text", "language", "is_so"),
    [
        ("The cat", "en", True),
        ("猫在睡觉", "en", False),
        ("猫在睡觉", "zh", True),
        ("东京都", "ja", True),
        ("ねこがねている", "ja", True),
        ("ねこがねている", "zh", False),
        ("The cat sleeps", "zh", False),
        ("iPhone 15 Pro", "zh", True),
        ("我 means I", "en", True),
        ("我爱 Transformer", "zh", True),
        ("12:30", "zh", True),
        ("Die Katze", "en", True),
        ("γάτα", "de", False),
    ],
)
def test_scripts_of_languages(text: str, language: str, is_so: bool) -> None:
    assert is_in_script_of(text, language) is is_so


def test_what_predict_remarks_on_the_answer(untrained: Bundle) -> None:
    bundle, text = knowing(untrained), "The dog reads."
    suspect = Translations([CANDIDATE], ["repetition", "glossary"], confidence=0.01)
    assert said(text_remarks(bundle, text, suspect)) == [
        "The output repeats itself. Check it for repetitions.",
        "Low confidence: nearly all translations of the validation set were more probable. Check this one.",
    ]
    assert text_remarks(bundle, text, Translations([CANDIDATE], confidence=0.9)) == ()
    outside = Classification(("good",), 0.9, {"good": 0.9}, out_of_scope=0.81)
    assert said(text_remarks(bundle, text, outside)) == [
        "Out of scope: the text is unlike all training texts (score 0.81), so probably no label fits."
    ]
    assert text_remarks(bundle, text, replace(outside, out_of_scope=0.2)) == ()
