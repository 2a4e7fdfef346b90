"""The built-in translation corpus: reproducible, disjoint splits, unique translations, valid gold annotations."""

from collections import Counter
from functools import cache
from itertools import pairwise

import jaxtyping
import pytest

from manyheads.corpora import LANGUAGES, SPLITS, Sentence, pairs, sentences
from manyheads.corpora.builtin import split_of
from manyheads.corpora.lexicon import lemmas
from manyheads.corpora.syntax_tree import ADJECTIVE, ATOMS, NOUN, VERB, Tree
from manyheads.errors import DataError

SIZES = {"train": 50_000, "valid": 1_500, "test": 2_000, "compositional": 2_000}


@pytest.fixture(autouse=True)
def _without_type_checks(request):
    """Run-time type checks take minutes for 60,000 sentences; only one test uses them."""
    jaxtyping.config.update("jaxtyping_disable", request.node.name != "test_types_hold")
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@cache
def sample(split: str) -> tuple[Sentence, ...]:
    return tuple(sentences(split, SIZES[split], seed=3))


@cache
def texts(split: str, language: str) -> tuple[str, ...]:
    return tuple(sentence.text(language) for sentence in sample(split))


def test_equal_seeds_give_equal_sentences():
    # Recorded output: if this changes, the corpus has changed.
    first = next(sentences("train", 1, seed=1))
    assert first.text("en") == FIRST_OF_SEED_ONE
    again = [sentence.text("de") for sentence in sentences("test", 50, seed=9)]
    assert again == [sentence.text("de") for sentence in sentences("test", 50, seed=9)]
    assert again != [sentence.text("de") for sentence in sentences("test", 50, seed=10)]


def test_types_hold():
    for s in sentences("train", 200, seed=8):
        assert s.alignment("en", "de") and s.rendering("zh").relations is not None


def test_pairs_are_texts_of_sentences():
    expected = [(s.text("zh"), s.text("de")) for s in sentences("valid", 20, seed=4)]
    assert list(pairs("zh", "de", "valid", 20, seed=4)) == expected


def test_count_is_exact_and_sentences_are_distinct():
    for split in SPLITS:
        assert len(texts(split, "en")) == SIZES[split] == len(set(texts(split, "en")))


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_is_in_two_splits(language):
    sets = {split: set(texts(split, language)) for split in SPLITS}
    assert not sets["train"] & (sets["test"] | sets["valid"] | sets["compositional"])
    assert not sets["valid"] & sets["test"]
    assert not sets["compositional"] & (sets["valid"] | sets["test"])


def held_out_pairs() -> set[tuple[str, str]]:
    ordinary = {pair for split in ("train", "valid", "test") for s in sample(split) for pair in s.tree.combinations()}
    rare = {pair for s in sample("compositional") for pair in s.tree.combinations()}
    return rare - ordinary


def test_compositional_sentences_contain_a_held_out_combination():
    new = held_out_pairs()
    assert len(new) > 100
    assert all(any(pair in new for pair in s.tree.combinations()) for s in sample("compositional"))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("split", ["valid", "test", "compositional"])
def test_every_word_occurs_in_training(split, language):
    known = {word for s in sample("train") for word, _ in s.tokens(language)}
    known |= {word[0].lower() + word[1:] for word in known} | {word[0].upper() + word[1:] for word in known}
    words = [word for s in sample(split) for word, _ in s.tokens(language)]
    new = [word for word in words if word not in known]
    # German has rare inflected forms (du schneidest) that may not occur in the first 50,000 sentences.
    assert len(new) <= (0.001 * len(words) if language == "de" else 0), sorted(set(new))


def test_every_concept_occurs_in_training():
    known = {key for s in sample("train") for key in s.tree.content_keys()}
    assert {key for split in SPLITS for s in sample(split) for key in s.tree.content_keys()} <= known


@pytest.mark.parametrize(("source", "target"), [(a, b) for a in LANGUAGES for b in LANGUAGES if a != b])
def test_every_sentence_has_one_translation(source, target):
    translations: dict[str, str] = {}
    for one, two in zip(texts("train", source), texts("train", target), strict=True):
        assert translations.setdefault(one, two) == two


def test_spans_match_the_words():
    for s in sample("test")[:500]:
        for language in LANGUAGES:
            rendering = s.rendering(language)
            assert rendering.text == s.text(language) == s.renderings[language].text
            assert tuple(rendering.text[a:b] for a, b in rendering.spans) == rendering.words
            assert all(b <= c for (_, b), (c, _) in pairwise(rendering.spans))
            joined = "".join(rendering.words)
            assert joined == rendering.text.replace(" ", "") if language != "zh" else joined == rendering.text


def test_texts_are_well_formed():
    for split in SPLITS:
        for en, zh, de in zip(*(texts(split, language) for language in LANGUAGES), strict=True):
            assert en[0].isupper() and de[0].isupper()
            assert {en[-1], de[-1]} in ({"."}, {"?"})
            assert zh[-1] == {".": "。", "?": "？"}[en[-1]]
            assert " " not in zh and "  " not in en + de and " ," not in en + de and ",." not in de
            assert 2 <= len(en.split()) <= 26


def content_atoms(tree: Tree) -> list[int]:
    atoms = [clause.id * ATOMS + VERB for clause in tree.clauses]
    atoms += [nominal.id * ATOMS + NOUN for nominal in tree.nominals if nominal.kind != "gap"]
    return atoms + [nominal.id * ATOMS + ADJECTIVE for nominal in tree.nominals if nominal.adjective]


def test_alignments_are_valid_and_cover_content_words():
    for s in sample("train")[:3000]:
        content = content_atoms(s.tree)
        for language in LANGUAGES:
            expressed = {atom for _, atoms in s.tokens(language) for atom in atoms}
            assert all(atom in expressed for atom in content), s.text("en")
        pairs_of = s.alignment("en", "zh")
        assert list(pairs_of) == sorted(set(pairs_of))
        assert all(i < len(s.tokens("en")) and j < len(s.tokens("zh")) for i, j in pairs_of)
        assert tuple(sorted((j, i) for i, j in pairs_of)) == s.alignment("zh", "en")


def test_relations_are_valid():
    kinds = Counter()
    for s in sample("train")[:3000]:
        for language in LANGUAGES:
            rendering = s.rendering(language)
            for relation in rendering.relations:
                kinds[relation.kind] += 1
                assert relation.word != relation.head
                assert 0 <= relation.word < len(rendering.words) and 0 <= relation.head < len(rendering.words)
                assert rendering.words[relation.word] not in ",.?，。？"
    assert set(kinds) == {"subject", "object", "indirect-object", "modifier", "antecedent"}


def phenomena(tree: Tree) -> set[str]:
    found = {tree.joint}
    for clause in tree.clauses:
        found |= {clause.kind, clause.tense, "question " + clause.question, "gap " + clause.gap}
        flags = (
            "negated",
            "passive",
            "time",
            "place",
            "manner",
            "frequency",
            "duration",
            "goal",
            "recipient",
            "fronted",
        )
        found |= {flag for flag in flags if getattr(clause, flag)}
    for nominal in tree.nominals:
        found.add(nominal.kind)
        flags = ("numeral", "adjective", "owner", "second", "measured")
        found |= {flag for flag in flags if getattr(nominal, flag)}
    return found


PHENOMENA = (
    *("negated", "passive", "time", "place", "manner", "goal", "recipient", "fronted", "numeral", "adjective", "owner"),
    *("second", "measured", "anaphor", "gap", "because", "but", "while", "when", "if", "that", "comparison"),
    *("existence", "location", "quality", "past", "progressive", "habit", "future", "modal", "state", "order", "worn"),
    *("question whether", "question subject", "question object", "question where", "question when", "question why"),
    *("duration", "frequency", "gap subject", "gap object"),
)


def test_every_phenomenon_is_frequent():
    counts = Counter(found for s in sample("train") for found in phenomena(s.tree))
    rare = {name: counts[name] for name in PHENOMENA if counts[name] < 0.02 * SIZES["train"]}
    assert not rare


def test_lexicon_is_large_and_lengths_vary():
    assert len(lemmas()) >= 400
    lengths = [len(text.split()) for text in texts("train", "en")]
    assert 8 <= sum(lengths) / len(lengths) <= 10
    assert sum(length <= 5 for length in lengths) > 0.08 * len(lengths)
    assert sum(length >= 13 for length in lengths) > 0.05 * len(lengths)


def test_training_uses_most_of_the_lexicon():
    seen = {key for s in sample("train") for key in s.tree.content_keys()}
    assert len(seen) > 380


def test_split_depends_on_content_only():
    assert all(split_of(s.tree) == split for split in SPLITS for s in sample(split)[:200])


def test_unknown_names_raise():
    with pytest.raises(DataError, match=r"^corpus split 'dev' is unknown. Use one of: train, valid, test"):
        sentences("dev", 3)
    with pytest.raises(DataError, match=r"^corpus language 'fr' is unknown. Use one of: en, zh, de\.$"):
        pairs("en", "fr", "train", 3)
    with pytest.raises(DataError, match="'fr' is unknown"):
        next(sentences("train", 1)).text("fr")


FIRST_OF_SEED_ONE = "The doll that Robert brought last Sunday is on the bed."
