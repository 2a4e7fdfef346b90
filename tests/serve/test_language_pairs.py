import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from manyheads.serve.service.bundle_description import BundleDescription
from manyheads.serve.service.language_pairs import LanguageDetector, LanguagePairs, language_name
from manyheads.serve.service.problems import ProblemError

from serve.fake_service import translator, writer

PAIRS = LanguagePairs.of([translator("en", "zh"), translator("zh", "en"), translator("en", "de")])

SENTENCES = {
    "en": ["Two young men are playing football.", "Where is the station?", "She has never seen snow before."],
    "de": ["Zwei junge Männer spielen Fußball.", "Wo ist der Bahnhof?", "Sie hat noch nie Schnee gesehen."],
    "fr": ["Deux jeunes hommes jouent au football.", "Où est la gare ?", "Elle n'a jamais vu la neige."],
    "zh": ["两个年轻人在踢足球。", "车站在哪里？", "她从来没见过雪。"],
}


@pytest.mark.parametrize("given", ["zh", "ZH", "zh-Hans", "zh-CN", "zh_CN", "zh-hans-cn", " zh "])
def test_codes_of_simplified_chinese_are_one_language(given: str) -> None:
    assert PAIRS.code(given) == "zh"


@pytest.mark.parametrize(("given", "code"), [("en-US", "en"), ("en_GB", "en"), ("DE", "de"), ("de-AT", "de")])
def test_a_region_is_ignored_unless_it_is_served(given: str, code: str) -> None:
    assert PAIRS.code(given) == code


@pytest.mark.parametrize("given", ["zt", "zh-TW", "zh-Hant", "fr", "", "auto", "english"])
def test_other_codes_are_not_served(given: str) -> None:
    assert PAIRS.code(given) is None


def test_regions_and_scripts_that_are_served_are_told_apart() -> None:
    pairs = LanguagePairs.of(
        [translator("en", "zh-Hant"), translator("en", "zh"), translator("pt-BR", "en"), translator("pt", "en")]
    )
    codes = {given: pairs.code(given) for given in ("zt", "zh-TW", "zh-CN", "pb", "pt-br", "pt-PT", "pt")}
    assert codes == {
        "zt": "zh-Hant", "zh-TW": "zh-Hant", "zh-CN": "zh", "pb": "pt-BR", "pt-br": "pt-BR", "pt-PT": "pt", "pt": "pt"
    }  # fmt: skip


def test_only_traditional_chinese_is_no_translation_into_simplified() -> None:
    pairs = LanguagePairs.of([translator("en", "zh-Hant")])
    assert pairs.code("zh") is None
    assert pairs.code("zh-HK") == "zh-Hant"


def test_the_bundle_of_a_pair_is_the_first_that_was_given() -> None:
    pairs = LanguagePairs.of([translator("en", "zh", "first"), translator("en", "zh", "second")])
    assert pairs.bundle("en-US", "zh-Hans") == "first"


def test_only_bundles_that_translate_between_two_languages_are_pairs() -> None:
    others = [
        writer(),
        translator("en", "en", "same"),
        translator("en", "zh", "summaries", purpose="summary"),
        translator("en", "zh", "one", languages=("en",)),
        BundleDescription("labels", "classify", "1", 1, "labels", languages=("en", "zh")),
    ]
    assert LanguagePairs.of(others).bundles == {}


@pytest.mark.parametrize(
    ("source", "target", "begin"),
    [
        ("fr", "en", "fr is not supported."),
        ("en", "x" * 100, f"{'x' * 40}… is not supported."),
        ("de", "zh-CN", "de → zh-CN is not supported."),
    ],
)
def test_a_pair_that_is_not_served_lists_those_that_are(source: str, target: str, begin: str) -> None:
    with pytest.raises(ProblemError) as caught:
        PAIRS.bundle(source, target)
    assert caught.value.status == 400
    assert str(caught.value) == f"{begin} Supported: en → de, en → zh, zh → en."


def test_a_long_list_of_pairs_is_cut() -> None:
    pairs = LanguagePairs.of([translator("en", f"x{number:02}") for number in range(50)])
    assert pairs.shown().endswith("en → x39 and 10 more.")
    assert LanguagePairs.of([]).shown() == "This server has no translation bundle."


def test_a_language_is_a_target_of_itself() -> None:
    assert PAIRS.languages == ["de", "en", "zh"]
    assert {code: PAIRS.targets(code) for code in PAIRS.languages} == {
        "de": ["de"], "en": ["de", "en", "zh"], "zh": ["en", "zh"]
    }  # fmt: skip


@pytest.mark.parametrize(
    ("code", "name"),
    [("en", "English"), ("zh", "Chinese"), ("zh-Hant", "Chinese (Hant)"), ("pt_BR", "Portuguese (BR)"), ("xx", "xx")],
)
def test_names_of_languages(code: str, name: str) -> None:
    assert language_name(code) == name


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
