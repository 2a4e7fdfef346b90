"""The built-in corpora are reproducible byte for byte: digests of their first rows, recorded before this layout."""

import hashlib
from collections.abc import Iterable, Iterator

import jaxtyping
import pytest

from manyheads.corpora import LANGUAGES, rows, sentences

GOLD = {
    "train": "4bb0cf1ce988e325",
    "valid": "16c5925881a22c2c",
    "test": "64addf4f30398131",
    "compositional": "f992e8b161316ed1",
}
ROWS = {
    "classify": "ef1ff8b9dd78277b",
    "tag": "fd2285d25dcaa94d",
    "intents": "c275fc4ef9d58dc0",
    "generate": "3fd206a495d88ad8",
    "summary": "8168e792e19ad5ec",
}


@pytest.fixture(autouse=True)
def _without_type_checks():
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def digest(items: Iterable[object]) -> str:
    sha256 = hashlib.sha256()
    for item in items:
        sha256.update(repr(item).encode() + b"\n")
    return sha256.hexdigest()[:16]


def gold(split: str) -> Iterator[object]:
    for sentence in sentences(split, 1000, seed=3):
        for language in LANGUAGES:
            rendering = sentence.rendering(language)
            relations = [(relation.kind, relation.word, relation.head) for relation in rendering.relations]
            yield rendering.text, rendering.words, rendering.spans, relations
        yield sentence.alignment("en", "zh"), sentence.alignment("en", "de"), sentence.alignment("zh", "de")


@pytest.mark.parametrize("split", GOLD)
def test_sentences_and_their_gold_annotations_are_unchanged(split: str) -> None:
    assert digest(gold(split)) == GOLD[split]


@pytest.mark.parametrize("corpus", ROWS)
def test_rows_are_unchanged(corpus: str) -> None:
    every_language = (row for language in LANGUAGES for row in rows(corpus, language, "train", 1000, seed=1))
    assert digest(every_language) == ROWS[corpus]
