"""HTML translated by a bundle: tags in place, the same result in any batch."""

import re
from collections import Counter
from dataclasses import replace

import pytest

from manyheads.answer.markup_translation import MarkupTranslator, translate_markup
from manyheads.bundle import Bundle
from manyheads.errors import BundleError, LensError
from manyheads.lens import aligner as aligner_module
from manyheads.lens.aligner import Aligner, OcclusionAligner

from lens.makers import task_of

TEXTS = [
    "<p>The <b>red</b> dog <i>sleeps</i>.</p>",
    "",
    "<b>A cat</b>.<br>The book is <a href='x'>here</a>. - <b>Tom</b> reads.",
    "plain &amp; simple",
    "<ul><li>One <em>old</em> man<li><pre> x </pre></ul>",
    "<p>The <code>f(x)</code> dog reads <b>unclosed.",
]
TAG = re.compile("<[^>]*>")


def test_every_tag_is_in_the_translation(untrained: Bundle) -> None:
    for text, one in zip(TEXTS, translate_markup(untrained, TEXTS), strict=True):
        assert Counter(TAG.findall(one.answer)) == Counter(TAG.findall(text))
        assert len(one.segments) == len(one.translations)


@pytest.mark.parametrize("method", ["beam", "greedy", "sample"])
def test_batched_equals_single(untrained: Bundle, method: str) -> None:
    together = MarkupTranslator(untrained).translate(TEXTS, method=method)
    for number, text in enumerate(TEXTS):
        (alone,) = MarkupTranslator(untrained).translate([text], first=number, method=method)
        assert alone.answer == together[number].answer


def test_segments_are_translated_like_plain_texts(untrained: Bundle) -> None:
    (one,) = translate_markup(untrained, ["<p>The <b>red</b> dog.</p><p>A cat.</p>"], method="greedy")
    assert list(one.segments) == ["The red dog.", "A cat."]
    assert [part.answer for part in one.translations] == untrained.predict(one.segments, method="greedy")
    assert one.warnings == list(dict.fromkeys(w for part in one.translations for w in part.warnings))
    assert one.missing == []
    rated = replace(one, translations=[replace(part, confidence=0.25) for part in one.translations])
    assert (one.confidence, rated.confidence) == (None, 0.25)


def test_a_server_splits_and_joins(untrained: Bundle) -> None:
    translator = MarkupTranslator(untrained)
    for text, expected in zip(TEXTS, translator.translate(TEXTS), strict=True):
        markup = translator.split(text)
        predictions = untrained.predictions(markup.texts)
        assert translator.join(markup, predictions).answer == expected.answer  # type: ignore[arg-type]


def test_heads_are_chosen_once_and_not_by_the_texts(untrained: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    choose = aligner_module.choose_aligner
    monkeypatch.setattr(aligner_module, "choose_aligner", lambda *given: calls.append(given) or choose(*given))
    translator = MarkupTranslator(untrained)
    translator.translate(["no tags", "<b>around all</b>"])
    assert calls == []
    translator.translate(TEXTS)
    translator.translate(TEXTS)
    assert len(calls) == 1
    assert isinstance(translator.aligner, Aligner)
    assert translator.aligner.heads == MarkupTranslator(untrained).aligner.heads  # type: ignore[union-attr]


def test_without_validation_data_texts_are_aligned_by_occlusion(
    untrained: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise LensError("no data")

    monkeypatch.setattr(aligner_module, "choose_aligner", fail)
    translator = MarkupTranslator(untrained)
    assert isinstance(translator.aligner, OcclusionAligner)
    for text, one in zip(TEXTS, translator.translate(TEXTS), strict=True):
        assert Counter(TAG.findall(one.answer)) == Counter(TAG.findall(text))
    assert translator.aligner.align(["a b"], [""]) == [[]]


def test_only_translation_bundles(untrained: Bundle) -> None:
    task = replace(untrained.task, settings=replace(untrained.task.settings, purpose="summary"))  # type: ignore[type-var]
    with pytest.raises(BundleError, match="a bundle of task seq2seq with the purpose summary"):
        MarkupTranslator(replace(untrained, task=task))
    classifier = replace(untrained, task=task_of("classify"))
    with pytest.raises(BundleError, match="bundle of task classify"):
        MarkupTranslator(classifier)
    with pytest.raises(TypeError, match="takes a list of texts"):
        translate_markup(untrained, "text")
