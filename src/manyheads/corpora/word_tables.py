"""The word tables of the built-in corpora: tables/*.tsv as dictionary entries.

A table is a tab-separated file with a header; lines that start with # explain its columns. In a table of several
groups, the first cell of a row is its group.
"""

from functools import cache
from pathlib import Path

from manyheads.corpora.lexemes import (
    Adjective,
    Adverbial,
    Measure,
    Name,
    Noun,
    Verb,
    chinese_verb,
    english_plural,
    english_verb,
    german_noun,
    german_verb,
    phrase,
)


def read_table(name: str, group: str | None = None) -> list[list[str]]:
    """Return the rows of a table; of a group, the rows that have it as first cell, without this cell."""
    rows = _rows(name)
    return rows if group is None else [row[1:] for row in rows if row[0] == group]


@cache
def _rows(name: str) -> list[list[str]]:
    """Return the rows of a table below its header, without comments."""
    path = Path(__file__).with_name("tables") / f"{name}.tsv"
    lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    header, *rows = lines
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"{path}: {row} has {len(row)} cells instead of {len(header)}.")
    return rows


def noun_table(group: str, *more: str) -> tuple[Noun, ...]:
    """Return the nouns of a group; every noun also gets its own key and `more` as tags."""
    nouns = []
    for en, zh, de, sex, tags in read_table("nouns", group):
        singular, _, plural = en.partition("/")
        word, _, classifier = zh.partition(" ")
        de_singular, _, de_plural = de.partition(", ")
        gender, forms = german_noun(de_singular, de_plural)
        english = (singular, plural or english_plural(singular))
        every_tag = frozenset([*tags.split(), *more, singular])
        nouns.append(Noun(singular, english, word, classifier.strip(), gender, (forms[0], forms[1]), sex, every_tag))
    return tuple(nouns)


def _measures() -> dict[str, Measure]:
    measures = {}
    for key, en, zh, de in read_table("measures"):
        singular, plural = en.split()
        article, de_singular, de_plural = de.split()
        gender = {"die": "f", "das": "n"}[article]
        measures[key] = Measure(key, (singular, plural), zh, gender, (de_singular, de_plural))
    return measures


def _mass_nouns() -> tuple[Noun, ...]:
    measures = _measures()
    nouns = []
    for en, zh, de, measure, tags in read_table("mass_nouns"):
        gender, forms = german_noun(de, "")
        every_tag = frozenset([*tags.split(), "mass", en])
        nouns.append(Noun(en, (en, en), zh, "", gender, (forms[0], forms[0]), "it", every_tag, measures[measure]))
    return tuple(nouns)


def adjective_table(name: str) -> tuple[Adjective, ...]:
    """Return the adjectives of a table."""
    adjectives = []
    for key, en, zh, de, tags, value in read_table(name):
        english, more = en.split()
        attribute, predicate = zh.split()
        german, de_more = de.split()
        form, _, stem = german.partition("=")
        stem = stem or (form[:-1] if form.endswith("e") else form)
        adjectives.append(
            Adjective(
                key,
                english,
                "" if more == "~" else more.replace("_", " "),
                attribute,
                predicate,
                form,
                stem,
                "" if de_more == "~" else de_more,
                frozenset(tags.split()),
                value,
            )
        )
    return tuple(adjectives)


def verb_table(group: str) -> tuple[Verb, ...]:
    """Return the verbs of a group."""
    verbs = []
    for key, en, zh, de, selection, tenses, places, manners, passive in read_table("verbs", group):
        subjects, _, objects = selection.partition(">")
        verbs.append(
            Verb(
                key,
                english_verb(en),
                chinese_verb(zh, passive),
                german_verb(de),
                tuple(subjects.split()),
                tuple(objects.split()),
                tenses.replace(" ", ""),
                tuple(places.replace("-", "").split()),
                tuple(manners.replace("-", "").split()),
            )
        )
    return tuple(verbs)


def adverbial_table(group: str) -> tuple[Adverbial, ...]:
    """Return the adverbials of a group."""
    return tuple(
        Adverbial(key, {"en": phrase(en), "zh": phrase(zh), "de": phrase(de)}, frozenset(tags.replace("-", "").split()))
        for key, tags, en, zh, de in read_table("adverbials", group)
    )


COUNT_NOUNS = noun_table("person") + noun_table("animal") + noun_table("food") + noun_table("thing", "thing")
KIN_NOUNS = noun_table("kin", "kin")
GAME_NOUNS = noun_table("game", "game")
MASS_NOUNS = _mass_nouns()
ALL_NOUNS = COUNT_NOUNS + KIN_NOUNS + GAME_NOUNS + MASS_NOUNS
ALL_NAMES = tuple(Name(key, zh, sex) for key, zh, sex in read_table("names"))
ALL_ADJECTIVES = adjective_table("adjectives")
TIMES = adverbial_table("time")
FREQUENCIES = adverbial_table("frequency")
DURATIONS = adverbial_table("duration")
MANNERS = adverbial_table("manner")
PLACES = adverbial_table("place")
GOALS = adverbial_table("goal")
SPOTS = adverbial_table("spot")
NUMERALS = {
    2: ("two", "两", "zwei"),
    3: ("three", "三", "drei"),
    4: ("four", "四", "vier"),
    5: ("five", "五", "fünf"),
    6: ("six", "六", "sechs"),
    7: ("seven", "七", "sieben"),
    8: ("eight", "八", "acht"),
    9: ("nine", "九", "neun"),
    10: ("ten", "十", "zehn"),
}
