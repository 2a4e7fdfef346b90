"""The scorecard of translations: scores, counts of errors, and examples."""

import json
from dataclasses import asdict, replace

import pytest

from manyheads.bundle import Bundle
from manyheads.errors import DataError
from manyheads.metrics import Answers, Note, copies, length_ratio, repetitions, translation_card

# source, translation, reference
ROWS = [
    ("A dog barks.", "一只狗在叫。", "一只狗在叫。"),
    ("Berlin", "Berlin", "Berlin"),  # a correct copy of the source
    ("Two cats sleep.", "Two cats sleep. ", "两只猫在睡觉。"),
    ("She sings.", "她唱唱唱唱。", "她在唱歌。"),
    ("He reads.", "", "他在看书。"),
    ("Hm.", "嗯。", " "),
]


def answers_of(rows: list[tuple[str, str, str]]) -> Answers:
    sources, texts, references = (list(column) for column in zip(*rows, strict=True))
    return Answers(sources, texts, references, n_cut_off=1, n_too_long=0)


def test_errors_are_counted() -> None:
    card = translation_card(answers_of(ROWS), "zh")
    assert card.n_sentences == 6
    assert (card.n_copies, card.n_wrong_copies) == (2, 1)
    assert card.n_repetitions == 1
    assert (card.n_empty, card.n_empty_references) == (1, 1)
    assert (card.n_cut_off, card.n_too_long) == (1, 0)
    # tokens as BLEU counts them in Chinese: 6 + 1 + 4 + 6 + 0 + 2 tokens to 6 + 1 + 7 + 5 + 5 + 0
    assert card.length_ratio == pytest.approx(19 / 24)
    assert [one.name for one in card.scores] == ["BLEU", "chrF", "TER"]


def test_translations_that_say_something_else_are_unusable() -> None:
    texts = [(f"Tom sees {n} dogs.", f"Anna a {n} voitures", f"Tom voit {n} chiens dans la rue.") for n in range(120)]
    card = translation_card(answers_of(texts), "fr", is_translation=True)
    assert card.scores[0].high < 10
    notes = [str(section.text) for section in card.sections() if isinstance(section, Note)]
    assert notes[0].startswith("Unusable: with a BLEU below 10,")
    assert not translation_card(answers_of(texts), "fr").are_unusable  # an answer in a dialogue differs by nature
    assert not translation_card(answers_of(texts[:19]), "fr", is_translation=True).are_unusable  # too few to judge
    good = [(source, reference, reference) for source, _text, reference in texts]
    assert not translation_card(answers_of(good), "fr", is_translation=True).are_unusable


def test_worst_examples_come_first_and_longer_ones_before_shorter() -> None:
    card = translation_card(answers_of(ROWS), "zh", n_examples=4)
    assert [one.number for one in card.worst] == [3, 5, 6, 4]
    assert [one.chrf for one in card.worst[:3]] == [0, 0, 0]
    assert card.worst[-1].chrf > 0


def test_random_examples_are_reproducible_and_distinct() -> None:
    answers = answers_of([(f"Number {n}.", f"{n}号。", f"{n}号。") for n in range(50)])
    numbers = [one.number for one in translation_card(answers, "zh").random]
    assert numbers == [one.number for one in translation_card(answers, "zh").random]
    assert len(set(numbers)) == 10
    assert numbers != sorted(numbers)
    assert numbers[:5] == [one.number for one in translation_card(answers, "zh", n_examples=5).random]


def test_card_is_json_serializable_and_long_texts_are_shortened() -> None:
    rows = [("long " * 10_000, "长" * 5000, "短。"), *ROWS]
    table = asdict(translation_card(answers_of(rows), "zh", tokenized=True))
    scores = [score | {"used_for": []} for score in table["scores"]]
    assert json.loads(json.dumps(table)) == table | {"differences": [], "scores": scores}
    assert table["scores"][-1]["name"] == "BLEU (tokenized, lowercased)"
    assert len(json.dumps(table, ensure_ascii=False)) < 20_000
    assert next(one for one in table["worst"] if one["number"] == 1)["source"].endswith("…")


def test_language_without_word_boundaries_has_no_ter() -> None:
    assert [one.name for one in translation_card(answers_of(ROWS), "th").scores] == ["BLEU", "chrF"]


def test_single_empty_translation() -> None:
    (only,) = (translation_card(answers_of(ROWS[4:5]), "zh"),)
    assert [one.value for one in only.scores] == [0, 0, 100]
    assert all(one.low <= one.value <= one.high and one.high - one.low > 50 for one in only.scores)
    assert only.length_ratio == 0
    assert len(only.worst) == len(only.random) == 1


def test_score_reports_progress(untrained: Bundle) -> None:
    done: list[int] = []
    pairs = [("The dog sleeps.", "那条狗在睡觉。"), ("cat " * 200, "猫"), ("", "空")]
    card = untrained.task.score(iter(pairs), untrained.decode, done.append)
    assert sum(done) == card.n_sentences == 3
    assert card.n_too_long == 0
    assert card.n_empty >= 1
    task = replace(untrained.task, settings=replace(untrained.task.settings, purpose="summary"))
    assert task.score(iter(pairs), untrained.decode).n_too_long == 1
    assert {one.source for one in card.random} == {source for source, _ in pairs}


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "The test set is empty: there is nothing to score"),
        ([("a", " "), ("b", "")], "Every reference is empty: there is nothing"),
    ],
)
def test_empty_test_set_is_an_error(untrained: Bundle, pairs: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        untrained.task.score(pairs, untrained.decode)


def test_length_ratio_counts_the_tokens_of_bleu() -> None:
    assert length_ratio(["ein Hund."], ["ein großer Hund bellt laut."], "de") == pytest.approx(3 / 6)
    assert length_ratio(["那只狗。"], ["那只大狗在叫。"], "zh") == pytest.approx(4 / 7)
    assert length_ratio(["", ""], ["a", "b"], "en") == 0


def test_copies_may_differ_in_surrounding_space() -> None:
    assert copies(["Berlin", "a b", "a b", "", "A"], [" Berlin ", "a b", "a  b", "", "a"]) == [
        True,
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("language", "hypothesis", "reference", "is_one"),
    [
        ("en", "the the the cat", "the cat", True),
        ("en", "the the cat", "the cat", False),
        ("en", "a cat and a cat and a cat and", "a cat", True),
        ("en", "one two three four one two three four one two three four", "x", True),
        ("en", "a b c d e a b c d e a b c d e", "x", False),  # phrases of five words are not checked
        ("en", "no no no!", "never never never!", False),  # the reference repeats too
        ("en", "no no no!", "never", True),
        ("en", "wait...", "wait", False),
        ("en", "100 000 000", "x", False),
        ("en", "well , , , , yes", "x", True),
        ("zh", "我歌手歌手歌手。", "我把信寄给了他。", True),
        ("zh", "那些了了。", "那些问题很简单。", False),
        ("zh", "哈哈哈，你好。", "哈哈哈哈，您好。", False),
        ("ja", "1000円です", "x", False),
        ("en", "", "", False),
    ],
)
def test_repetitions(language: str, hypothesis: str, reference: str, is_one: bool) -> None:
    assert repetitions([hypothesis], [reference], language) == [is_one]
