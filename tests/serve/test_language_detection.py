import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from manyheads.serve.service.language_detection import LanguageDetector
from manyheads.serve.service.problems import ProblemError

SENTENCES = {
    "en": ["Two young men are playing football.", "Where is the station?", "She has never seen snow before."],
    "de": ["Zwei junge Männer spielen Fußball.", "Wo ist der Bahnhof?", "Sie hat noch nie Schnee gesehen."],
    "fr": ["Deux jeunes hommes jouent au football.", "Où est la gare ?", "Elle n'a jamais vu la neige."],
    "zh": ["两个年轻人在踢足球。", "车站在哪里？", "她从来没见过雪。"],
}


@pytest.fixture(scope="module")
def detector() -> LanguageDetector:
    return LanguageDetector()


@pytest.mark.parametrize("language", SENTENCES)
def test_sentences_of_the_served_languages(detector: LanguageDetector, language: str) -> None:
    for text in SENTENCES[language]:
        ranked = detector.rank(text, SENTENCES)
        assert ranked[0].language == language
        assert ranked[0].confidence > 0.5
        assert {one.language for one in ranked} == {*SENTENCES}
        assert sum(one.confidence for one in ranked) == pytest.approx(1)
        assert [one.confidence for one in ranked] == sorted((one.confidence for one in ranked), reverse=True)


def test_only_served_languages_are_found(detector: LanguageDetector) -> None:
    ranked = detector.rank("Zwei junge Männer spielen Fußball.", ["en", "fr"])
    assert {one.language for one in ranked} == {"en", "fr"}


def test_a_script_shows_a_language_that_is_not_served(detector: LanguageDetector) -> None:
    assert detector.rank("两个年轻人在踢足球。", ["en", "fr"])[0].language == "zh"
    assert detector.rank("こんにちは、お元気ですか。", ["en", "zh"])[0].language == "ja"


def test_regions_of_served_languages_are_ignored(detector: LanguageDetector) -> None:
    assert detector.rank("车站在哪里？", ["en-GB", "zh-Hans"])[0].language == "zh"


@pytest.mark.parametrize("text", ["", " \n", "123, 4.5 %", "😀🎉", "\0"])
def test_a_text_without_letters_has_no_language(detector: LanguageDetector, text: str) -> None:
    assert detector.rank(text, ["en", "zh"]) == []


def test_languages_that_the_model_does_not_know_are_left_out(detector: LanguageDetector) -> None:
    assert [one.language for one in detector.rank("Where is the station?", ["en", "tlh"])] == ["en"]
    assert detector.rank("Where is the station?", ["tlh"]) == []


def test_a_long_text_is_as_clear_as_a_short_one(detector: LanguageDetector) -> None:
    ranked = detector.rank("Wo ist der Bahnhof? " * 5000, ["en", "de"])
    assert ranked[0].language == "de"
    assert ranked[0].confidence > 0.9


def test_threads_that_serve_other_languages_do_not_disturb_each_other(detector: LanguageDetector) -> None:
    asked = [("Wo ist der Bahnhof?", ("en", "de"), "de"), ("Où est la gare ?", ("en", "fr"), "fr")] * 20
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda one: detector.rank(one[0], one[1])[0].language, asked))
    assert found == [language for _, _, language in asked]


def test_without_the_package_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    with pytest.raises(ProblemError, match=r'pip install "manyheads\[serve\]"') as caught:
        LanguageDetector().rank("Where is the station?", ["en"])
    assert caught.value.status == 501
