"""`DocumentTranslator`: texts of a document get the translations that they get alone."""

from dataclasses import replace

import pytest

from manyheads.answer.answerer import Answerer
from manyheads.answer.document_translation import DocumentTranslator
from manyheads.answer.request import AnswerOptions
from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings
from manyheads.errors import BundleError, DataError
from manyheads.tasks import TextOptions
from manyheads.tasks.seq2seq.translation_search import Confidence

from lens.makers import task_of

PAGE = '<p>Two <b>cats</b> are sleeping.</p><p title="The dog sleeps.">123</p>'
CATALOG = 'msgid "Two cats are sleeping."\nmsgstr ""\n\nmsgid "done"\nmsgstr "x"\n'


def test_a_page_has_the_translations_of_its_texts(untrained: Bundle) -> None:
    calls: list[tuple[int, int]] = []
    found = DocumentTranslator(untrained).translate("a.html", PAGE.encode(), progress=lambda *done: calls.append(done))
    assert list(found.texts) == ["Two cats are sleeping.", "The dog sleeps."]
    html = "<p>Two <b>cats</b> are sleeping.</p>"
    (alone,) = Answerer(untrained).answers([html], AnswerOptions(format="html"))
    title = untrained.predict(["The dog sleeps."])[0]
    assert found.content.decode() == f'{alone.prediction.answer}<p title="{title}">123</p>'
    assert calls == [(2, 2)]


def test_translations_are_replaced_on_request(untrained: Bundle) -> None:
    translator = DocumentTranslator(untrained)
    (text,) = untrained.predict(["Two cats are sleeping."])
    found = translator.translate("a.po", CATALOG.encode())
    assert found.content.decode() == CATALOG.replace('msgstr ""', f'msgstr "{text}"')
    (other,) = untrained.predict(["done"])
    again = translator.translate("a.po", CATALOG.encode(), replaces=True)
    assert f'msgid "done"\nmsgstr "{other}"' in again.content.decode()


def test_options_apply_to_texts(untrained: Bundle) -> None:
    options = TextOptions({"cats": "猫"}, (), "好")
    table = b'{"a": "Two cats sleep.", "b": "Two cats are sleeping."}'
    found = DocumentTranslator(untrained).translate("a.json", table, options=options, max_new_tokens=12)
    first, second = (one.answer for one in found.translations)
    assert first.startswith("好")
    assert not second.startswith("好")
    assert "猫" in first
    assert "猫" in second


def test_a_text_of_low_confidence_stays(untrained: Bundle) -> None:
    task = replace(untrained.task, confidence=Confidence.fit([0.0] * 20, [50.0] * 20))
    bundle = replace(untrained, task=task, decode=DecodeSettings(method="greedy", max_new_tokens=4, abstain=0.99))
    assert DocumentTranslator(bundle).translate("a.html", PAGE.encode()).content == PAGE.encode()


def test_other_tasks_and_damaged_files_are_refused(untrained: Bundle) -> None:
    with pytest.raises(BundleError, match="needs a translation bundle"):
        DocumentTranslator(Bundle(task_of("classify"), DecodeSettings(), {})).translate("a.html", b"<p>a")
    with pytest.raises(DataError, match=r"^a\.docx: It is not a zip archive"):
        DocumentTranslator(untrained).translate("a.docx", b"x")
