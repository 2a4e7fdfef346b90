"""The built-in corpora of the other tasks: reproducible, with disjoint splits, balanced, not solvable by keywords."""

import math
import re
import time
from collections import Counter
from functools import cache
from itertools import islice, pairwise

import jaxtyping
import pytest

from manyheads.corpora import CORPORA, LANGUAGES, SPLITS, rows, sentences
from manyheads.corpora.entities import ENTITIES, INTENTS
from manyheads.corpora.opinions import STANCES, OpinionSampler, negations
from manyheads.corpora.task_rows import _is_held_out
from manyheads.errors import DataError
from manyheads.text.tokens.words import split_text

SIZES = {"train": 2000, "valid": 160, "test": 240, "compositional": 240}
FIELDS = {"classify": 2, "tag": 2, "intents": 3, "generate": 1, "summary": 2}


@pytest.fixture(autouse=True)
def _without_type_checks(request):
    """Run-time type checks of every call are slow; only one test uses them."""
    jaxtyping.config.update("jaxtyping_disable", request.node.name != "test_types_hold")
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@cache
def sample(task: str, language: str, split: str) -> tuple[tuple[str, ...], ...]:
    return tuple(rows(task, language, split, SIZES[split], seed=3))


def texts(task: str, language: str, split: str) -> list[str]:
    return [row[0] for row in sample(task, language, split)]


def test_types_hold():
    for task in CORPORA:
        assert len(list(rows(task, "zh", "train", 30, seed=2))) == 30


@pytest.mark.parametrize("task", CORPORA)
def test_equal_seeds_give_equal_rows(task):
    once = list(rows(task, "zh", "test", 60, seed=5))
    assert once == list(rows(task, "zh", "test", 60, seed=5))
    assert once != list(rows(task, "zh", "test", 60, seed=6))
    assert once[:20] == list(rows(task, "zh", "test", 20, seed=5))


def test_first_rows_of_seed_one():
    # Recorded output: if this changes, the corpus has changed.
    first = {task: next(rows(task, "en", "train", 1, seed=1)) for task in CORPORA}
    assert first["classify"] == ("The guest is not selfish.", "positive")
    assert first["tag"] == (
        "The doll that Robert brought last Sunday is on the bed .",
        "O B-THING O B-PERSON O B-TIME I-TIME O O O B-PLACE O",
    )
    assert first["generate"][0].startswith("This morning Nina lost her phone at the market. Nina looked for the phone")
    assert first["summary"] == (*first["generate"], "This morning Robert found Nina's phone at the market.")


@pytest.mark.parametrize("task", CORPORA)
@pytest.mark.parametrize("language", LANGUAGES)
def test_count_fields_and_no_text_in_two_splits(task, language):
    for split in SPLITS:
        found = texts(task, language, split)
        assert len(found) == SIZES[split]
        assert task == "tag" or len(set(found)) == len(found)
        assert {len(row) for row in sample(task, language, split)} == {FIELDS[task]}
    sets = [set(texts(task, language, split)) for split in SPLITS]
    assert not any(sets[i] & sets[j] for i in range(4) for j in range(i))


def test_rows_are_lazy_and_fast():
    start = time.process_time()
    assert len(list(islice(rows("classify", "en", "train", 10**9), 5000))) == 5000
    assert time.process_time() - start < 5  # a fifth of the expected rate, since the machine may be busy


def test_unknown_names_raise():
    with pytest.raises(DataError, match=r"corpus 'dance' is unknown\. Use one of: classify, tag"):
        rows("dance", "en", "train", 1)
    with pytest.raises(DataError, match=r"language 'fr' is unknown"):
        rows("tag", "fr", "train", 1)
    with pytest.raises(DataError, match=r"split 'dev' is unknown"):
        rows("tag", "en", "dev", 1)


@pytest.mark.parametrize("split", SPLITS)
def test_labels_are_balanced(split):
    for task, labels in (("classify", STANCES), ("intents", INTENTS)):
        counts = Counter(row[-1] for row in sample(task, "en", split))
        assert set(counts) == set(labels)
        assert max(counts.values()) - min(counts.values()) <= 1


def tokens(text: str) -> list[str]:
    return re.findall(r"[\w']+", text.lower())


def test_bag_of_words_does_not_predict_the_stance():
    """Naive Bayes on words ("not", "but", "boring") must stay inaccurate."""
    words: dict[str, Counter[str]] = {stance: Counter() for stance in STANCES}
    for text, stance in sample("classify", "en", "train"):
        words[stance].update(tokens(text))
    sizes = {stance: sum(count.values()) for stance, count in words.items()}

    def guess(text: str) -> str:
        def likelihood(stance: str) -> float:
            return sum(math.log((words[stance][word] + 1) / (sizes[stance] + 1000)) for word in tokens(text))

        return max(STANCES, key=likelihood)

    for split, most in (("test", 0.8), ("compositional", 0.8)):
        right = sum(guess(text) == stance for text, stance in sample("classify", "en", split))
        assert 0.4 < right / SIZES[split] < most


def test_compositional_opinions_contain_held_out_negations():
    sampler, known, new = OpinionSampler(4), set(), set()
    for index in range(6000):
        tree = sampler.opinion(STANCES[index % 4])
        found = set(negations(tree))
        (new if any(map(_is_held_out, found)) else known).update(found)
    held_out = {negation for negation in new if _is_held_out(negation)}
    assert len(held_out) >= 15 and not held_out & known
    # Each such adjective occurs in training without negation.
    seen = " ".join(texts("classify", "en", "train"))
    assert all(f" {re.split('-', key)[0]}" in seen for _, key in held_out if key not in ("dusty", "tidy"))


@pytest.mark.parametrize(
    ("text", "stance"),
    [
        ("not boring", "positive"),
        ("does not think that", None),
        ("Is ", "neutral"),
        ("If ", "neutral"),
        ("too expensive", None),
    ],
)
def test_stance_of_a_text(text, stance):
    found = [row for row in sample("classify", "en", "train") if text in row[0]]
    assert found
    if stance:
        simple = [row for row in found if "," not in row[0] and "because" not in row[0] and "that" not in row[0]]
        assert {row[1] for row in simple if row[0][-1] == "." or stance == "neutral"} <= {stance}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("task", ["tag", "intents"])
def test_tags_are_iob2_and_align_with_the_words(task, language):
    kinds = Counter()
    for row in sample(task, language, "train"):
        words, tags = row[0].split(" "), row[1].split(" ")
        assert len(words) == len(tags) and all(words) and all(tags)
        assert language != "zh" or all(len(word) == 1 for word in words)
        for before, tag in pairwise(["O", *tags]):
            assert tag[:2] != "I-" or before[2:] == tag[2:]
        kinds.update(tag[2:] for tag in tags if tag[:2] == "B-")
    assert set(kinds) == set(ENTITIES)
    assert min(kinds.values()) > 40


def spans(row: tuple[str, ...]) -> list[tuple[str, str]]:
    found: list[list[str]] = []
    for word, tag in zip(row[0].split(" "), row[1].split(" "), strict=True):
        if tag[:2] == "B-":
            found.append([tag[2:], word])
        elif tag[:2] == "I-":
            found[-1][1] += " " + word
    return [(kind, text) for kind, text in found]


@pytest.mark.parametrize(
    ("language", "person", "time", "room", "table"),
    [
        ("en", "Anna", "two days ago", "living room", "table"),
        ("zh", "安 娜", "两 天 前", "客 厅", "桌 子"),
        ("de", "Anna", "vor zwei Tagen", "Wohnzimmer", "Tisch"),
    ],
)
def test_entity_spans(language, person, time, room, table):
    found = {span for row in sample("tag", language, "train") for span in spans(row)}
    assert {("PERSON", person), ("TIME", time), ("PLACE", room), ("PLACE", table), ("THING", table)} <= found
    articles = ("the", "a", "der", "ein", "那", "在")
    assert not any(text.split(" ")[0] in articles for kind, text in found if kind != "TIME")


@pytest.mark.parametrize(("language", "split_by"), [("en", "word"), ("zh", "character"), ("de", "word")])
def test_words_match_the_splitting_of_raw_text(language, split_by):
    raw_texts = [sentence.text(language) for sentence in sentences("train", SIZES["train"], seed=3)]
    for text, row in zip(raw_texts, sample("tag", language, "train"), strict=True):
        assert " ".join(word.text for word in split_text(text, split_by)) == row[0]


def test_all_languages_have_the_same_entities():
    for english, chinese, german in zip(*(sample("tag", language, "test") for language in LANGUAGES), strict=True):
        counts = [Counter(kind for kind, _ in spans(row)) for row in (english, chinese, german)]
        assert counts[0] == counts[1] == counts[2], english
