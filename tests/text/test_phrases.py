"""Phrases that an output must contain: how they are counted, and how a search is led to them."""

import random
import re
from collections.abc import Mapping
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.text.terms.phrases import Phrases
from manyheads.text.tokens.tokenizer import EOS, Tokenizer, TokenizerSettings

LINES = [
    "Die Katze schläft im Haus.",
    "der Hund und die Katzen (groß) sehen New York!",
    "那只小猫在房子里睡觉。",
    "两只小猫和一条小狗，猫票和车票。",
    "Return ``x`` now.",
] * 40
TERMS = ["Katze", "katze", "Katzen", "der Hund", "Hund", "小猫", "猫", "票", "猫票", "."]
PIECES = [*TERMS, "n", " ", "Der", "(", "é", "😀"]


@cache
def tokenizer(kind: str = "unigram", placeholders: int = 0) -> Tokenizer:
    chosen = TokenizerSettings(kind=kind, vocab_size=360, placeholders=placeholders)  # type: ignore[arg-type]
    return Tokenizer.train(LINES, chosen)


def missing(text: str, wanted: Mapping[str, int], kind: str = "unigram") -> dict[str, int]:
    phrases = Phrases(tokenizer(kind), wanted)
    return phrases.missing(phrases.after(tokenizer(kind).encode(text)))


def slow_missing(text: str, wanted: Mapping[str, int]) -> dict[str, int]:
    """The same with a regular expression over the whole text."""
    word = r"[^\W_\u3400-\u9fff]"
    forms = {term[0].upper() + term[1:]: term for term in wanted} | {term: term for term in wanted}
    ways = [
        (rf"(?<!{word})" if re.match(word, form) else "")
        + re.escape(form)
        + (rf"(?!{word})" if re.match(word, form[-1]) else "")
        for form in sorted(forms, key=len, reverse=True)
    ]
    found = [forms[match[0]] for match in re.finditer("|".join(ways), text)]
    return {term: count - found.count(term) for term, count in wanted.items() if found.count(term) < count}


@pytest.mark.parametrize(
    ("text", "wanted", "lacks"),
    [
        ("Die Katze schläft.", {"Katze": 1}, {}),
        ("Die Katzen schlafen.", {"Katze": 1}, {"Katze": 1}),
        ("Katze", {"Katze": 2}, {"Katze": 1}),
        ("(Katze)", {"Katze": 1}, {}),
        ("Der Hund schläft.", {"der Hund": 1}, {}),
        ("那只小猫在睡觉。", {"小猫": 1, "猫": 1}, {"猫": 1}),
        ("小猫和猫", {"小猫": 1, "猫": 1}, {}),
        ("猫票", {"猫": 1, "猫票": 1}, {"猫": 1}),
        ("用Katze写", {"Katze": 1}, {}),
        ("ein 😀 hier", {"😀": 1}, {}),
        ("", {"Katze": 1}, {"Katze": 1}),
    ],
)
@pytest.mark.parametrize("kind", ["unigram", "bpe", "character"])
def test_whole_words_are_counted_and_the_longest_first(
    text: str, wanted: dict[str, int], lacks: dict[str, int], kind: str
) -> None:
    assert missing(text, wanted, kind) == lacks == slow_missing(text, wanted)


@settings(max_examples=300, deadline=None)
@given(
    pieces=st.lists(st.sampled_from(PIECES), max_size=8),
    wanted=st.dictionaries(st.sampled_from(TERMS), st.integers(1, 2), min_size=1),
)
def test_counting_token_by_token_is_counting_in_the_text(pieces: list[str], wanted: dict[str, int]) -> None:
    text = "".join(pieces)
    assert missing(text, wanted) == slow_missing(text, wanted)


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 1000),
    kind=st.sampled_from(["unigram", "bpe", "character"]),
    wanted=st.dictionaries(
        st.sampled_from(["Katze", "der Hund", "小猫", "猫", "😀ß", "Ж und Ω", "(x)"]), st.integers(1, 2), min_size=1
    ),
    before=st.sampled_from(["", "Die", "Kat", "那只", "x ("]),
)
def test_required_ids_of_the_highest_level_lead_to_all_phrases(
    seed: int, kind: str, wanted: dict[str, int], before: str
) -> None:
    """A search keeps a hypothesis of the highest level at each step, so that it ends after a bounded number of them."""
    own, rng = tokenizer(kind), random.Random(seed)
    phrases = Phrases(own, wanted)
    ids = own.encode(before)
    state, n_steps = phrases.after(ids), 0
    while not phrases.may_end(state):
        levels = {one: phrases.level(phrases.follow(state, one)) for one in phrases.required_ids(state)}
        best = [one for one, level in levels.items() if level == max(levels.values())]
        assert EOS not in levels
        ids.append(rng.choice(best))
        assert phrases.level(state) < levels[ids[-1]] <= phrases.n_levels
        state, n_steps = phrases.follow(state, ids[-1]), n_steps + 1
    assert n_steps <= phrases.n_tokens
    assert phrases.level(state) == phrases.n_levels
    assert slow_missing(own.decode(ids), wanted) == {}


def test_usual_tokens_of_a_phrase_raise_the_level_at_each_step() -> None:
    phrases = Phrases(tokenizer("bpe"), {"Katze": 1})
    levels, state = [], phrases.start
    for token_id in tokenizer("bpe").encode("Katze"):
        assert token_id in phrases.required_ids(state)
        state = phrases.follow(state, token_id)
        levels.append(phrases.level(state))
    assert levels == list(range(1, phrases.n_levels + 1))


@pytest.mark.parametrize("kind", ["unigram", "bpe", "character"])
@pytest.mark.parametrize("prefix", ["Die Kat", "那只小", "😀", "Die "])
def test_only_ids_of_the_prefix_are_allowed_until_it_is_complete(kind: str, prefix: str) -> None:
    own = tokenizer(kind)
    for seed in range(20):
        rng, phrases = random.Random(seed), Phrases(own, {}, prefix=prefix)
        ids: list[int] = []
        state = phrases.start
        while (allowed := phrases.allowed_ids(state)) is not None:
            assert not phrases.may_end(state)
            ids.append(rng.choice(list(allowed)))
            state = phrases.follow(state, ids[-1])
        assert phrases.may_end(state)
        assert own.decode(ids).startswith(prefix)


def test_placeholders_are_required_as_single_tokens() -> None:
    own = tokenizer("bpe", 4)
    first, second, *_ = own.placeholders.symbols
    phrases = Phrases(own, {"Katze": 1}, symbols={first: 2})
    assert tuple(phrases.limited_ids) == own.placeholder_ids
    assert phrases.missing(phrases.after(own.encode(f"{first} {second} Katze"))) == {first: 1}
    required = set(phrases.required_ids(phrases.after(own.encode("Katze"))))
    assert required & set(own.placeholder_ids) == {own.placeholder_ids[0]}
    assert phrases.may_end(phrases.after(own.encode(f"{first}{first} Katze.")))
