import pytest

from manyheads.serve.service.bundle_description import BundleDescription
from manyheads.serve.service.language_names import language_name
from manyheads.serve.service.language_pairs import LanguagePairs
from manyheads.serve.service.problems import ProblemError

from serve.fake_service import translator, writer

PAIRS = LanguagePairs.of([translator("en", "zh"), translator("zh", "en"), translator("en", "de")])


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
