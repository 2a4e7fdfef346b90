"""Dictionary entries: nouns, verbs, adjectives, names and adverbials, and their regular inflections."""

from dataclasses import dataclass

Phrase = tuple[tuple[str, tuple[int, ...]], ...]
"""The words of a fixed expression, each with the numbers of the parts of meaning that it expresses."""

CASES = ("nominative", "accusative", "dative")


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """The measure by which a mass noun is counted: a cup of tea, 一杯茶, eine Tasse Tee."""

    key: str
    en: tuple[str, str]
    zh: str
    gender: str
    de: tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """A common noun; `sex` is its English pronoun (he, she, it), or empty if it has none."""

    key: str
    en: tuple[str, str]
    zh: str
    classifier: str
    gender: str
    de: tuple[tuple[str, str, str], tuple[str, str, str]]
    sex: str
    tags: frozenset[str]
    measure: Measure | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Name:
    """A person's name."""

    key: str
    zh: str
    sex: str


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    """An adjective; `zh` is attributive and `zh_predicate` predicative; `tags` select the nouns that may have it."""

    key: str
    en: str
    en_more: str
    zh: str
    zh_predicate: str
    de: str
    de_stem: str
    de_more: str
    tags: frozenset[str]
    value: str

    @property
    def is_classifying(self) -> bool:
        """Whether Chinese uses 是红色的 rather than 很红."""
        return self.zh_predicate.startswith("是")


@dataclass(frozen=True, slots=True, eq=False)
class EnglishVerb:
    """The forms of an English verb, and the particle that follows it (look *for*)."""

    base: str
    third: str
    past: str
    participle: str
    progressive: str
    particle: str


@dataclass(frozen=True, slots=True, eq=False)
class GermanVerb:
    """The forms of a German verb without its separable prefix, and the prefix ('auf', 'nach Hause ')."""

    infinitive: str
    present: dict[str, str]
    preterite: dict[str, str]
    imperative: str
    participle: str
    prefix: str
    auxiliary: str
    case: str
    preposition: str


@dataclass(frozen=True, slots=True, eq=False)
class ChineseVerb:
    """A Chinese verb, the part that a duration replaces (睡觉, 睡了很久), and the preposition of its object."""

    word: str
    tail: str
    preposition: str
    passive: str


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A verb with its selectional restrictions: subjects, objects, tenses, places and manners."""

    key: str
    en: EnglishVerb
    zh: ChineseVerb
    de: GermanVerb
    subjects: tuple[str, ...]
    objects: tuple[str, ...]
    tenses: str
    places: tuple[str, ...]
    manners: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Adverbial:
    """An adverbial of time, place or manner in three languages."""

    key: str
    phrases: dict[str, Phrase]
    tags: frozenset[str]


def phrase(text: str) -> Phrase:
    """Parse 'in/1 the/3 park/2' into words and the parts of meaning they express; part 1 is the default."""
    words = []
    for item in text.split():
        word, _, parts = item.partition("/")
        words.append((word.replace("_", " "), tuple(int(part) for part in parts or "1")))
    return tuple(words)


def english_plural(noun: str) -> str:
    """Return the regular plural."""
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeou":
        return noun[:-1] + "ies"
    return noun + "s"


def german_noun(article_and_singular: str, plural: str) -> tuple[str, tuple[tuple[str, str, str], ...]]:
    """Return the gender and the forms by number and case; `*` denotes a weak noun (der Junge, den Jungen)."""
    article, singular = article_and_singular.split(" ", 1)
    weak = singular.endswith("*")
    singular = singular.rstrip("*")
    oblique = plural if weak else singular
    dative_plural = plural if plural.endswith(("n", "s")) else plural + "n"
    gender = {"der": "m", "die": "f", "das": "n"}[article]
    return gender, ((singular, oblique, oblique), (plural, plural, dative_plural))


def english_verb(text: str) -> EnglishVerb:
    """Parse 'open', 'buy bought bought' or 'run ran run +running'; a particle follows after a colon."""
    text, _, particle = text.partition(":")
    parts = text.split()
    progressive = next((part[1:] for part in parts if part.startswith("+")), "")
    base, *irregular = [part for part in parts if not part.startswith("+")]
    regular = base + "d" if base.endswith("e") else base + "ed"
    if base.endswith("y") and base[-2] not in "aeou":
        regular = base[:-1] + "ied"
    if progressive and not irregular:
        regular = progressive[:-3] + "ed"
    past, participle = irregular or (regular, regular)
    silent_e = base.endswith("e") and not base.endswith("ee")
    progressive = progressive or (base[:-1] if silent_e else base) + "ing"
    third = "has" if base == "have" else english_plural(base + "e" if base.endswith("o") else base)
    return EnglishVerb(base, third, past, participle, progressive, particle.strip())


_IRREGULAR_PRESENT = {
    "mögen": ("mag", "magst", "mag"),
    "wissen": ("weiß", "weißt", "weiß"),
    "haben": ("habe", "hast", "hat"),
}


def german_verb(text: str) -> GermanVerb:
    """Parse 'kaufen kauft kaufte gekauft'; '¦' ends a separable prefix, 's' means sein, '+mit:dat' gives the case."""
    forms, _, government = text.partition("+")
    infinitive, third, past, participle, *auxiliary = forms.split()
    prefix, bar, infinitive = infinitive.rpartition("¦")
    prefix = prefix.replace("_", " ") + (" " if "_" in prefix or prefix == "spazieren" else "") if bar else ""
    preposition, _, case = government.strip().rpartition(":")
    stem = third[:-1]
    second = stem + ("t" if stem.endswith(("s", "ß", "z", "x")) else "st")
    first = infinitive[:-1]
    if infinitive.endswith("eln"):
        first = infinitive[:-3] + "le"
    elif infinitive.endswith("ern"):
        first = infinitive[:-1] + "e"
    first, second, third = _IRREGULAR_PRESENT.get(infinitive, (first, second, third))
    present = {"1": first, "2": second, "3": third, "p": infinitive}
    is_weak = past.endswith("e")
    plural = past + "n" if is_weak else past + "en"
    second_past = past + "st" if is_weak else past + ("est" if past.endswith(("d", "t", "s", "ß")) else "st")
    preterite = {"1": past, "2": second_past, "3": past, "p": plural}
    changes_vowel = first[:-1] != stem and "ä" not in stem and "ö" not in stem and not stem.endswith("e")
    imperative = stem if changes_vowel and not infinitive.endswith(("eln", "ern")) else first
    if infinitive in ("gehen", "stehen", "kommen"):
        imperative = infinitive[:-2]
    return GermanVerb(
        infinitive,
        present,
        preterite,
        imperative,
        participle.replace("_", " "),
        prefix,
        "sein" if auxiliary else "haben",
        {"": "accusative", "acc": "accusative", "dat": "dative"}[case],
        preposition,
    )


def chinese_verb(text: str, passive: str) -> ChineseVerb:
    """Parse '睡¦觉' (睡 before a duration) or '给_打¦电话' (the object follows 给)."""
    preposition, _, rest = text.rpartition("_")
    word, _, tail = rest.partition("¦")
    return ChineseVerb(word, tail, preposition, "" if passive == "-" else passive)
