"""Features of words: hashes of words, their parts and their neighbors."""

from hashlib import sha256

import numpy as np
import pytest

from manyheads.tasks.tag.linear_tagger import NO_FEATURE, shape_of, text_columns, word_features

TEXTS = [["Ada", "lives", "in", "NEW", "York-12"], ["x"], ["in", "Oslo", "."]]


@pytest.mark.parametrize("are_characters", [False, True])
def test_features_do_not_depend_on_other_texts(are_characters: bool) -> None:
    together = word_features(TEXTS, are_characters=are_characters)
    alone = [word_features([text], are_characters=are_characters) for text in TEXTS]
    np.testing.assert_array_equal(together, np.concatenate(alone))
    assert int(together.max()) < 1 << 63  # files store signed integers


def test_neighbors_and_edges_make_a_difference() -> None:
    first, second, third = word_features([["a", "b", "a"]], are_characters=True)
    assert first[0] == third[0] != second[0]  # the first feature is the word itself
    assert (first != third).any()
    (alone,) = word_features([["a"]], are_characters=True)
    assert not (alone == NO_FEATURE).any()  # the edge of a text is a neighbor, too


def test_case_is_kept_and_ignored() -> None:
    lower, upper = (word_features([[word]], are_characters=False)[0] for word in ("apple", "Apple"))
    assert 0 < (lower != upper).sum() < len(lower)
    columns = text_columns(are_characters=False)
    np.testing.assert_array_equal(lower[columns], upper[columns])


def test_short_words_have_fewer_features() -> None:
    short, long = (word_features([[word]], are_characters=False)[0] for word in ("of", "afternoon"))
    assert (short == NO_FEATURE).sum() > (long == NO_FEATURE).sum()


@pytest.mark.parametrize(("word", "shape"), [("Ab-12", "Xx-00"), ("東京", "字字"), ("", ""), ("éÉ9", "xX0")])
def test_shapes(word: str, shape: str) -> None:
    assert shape_of(word) == shape


@pytest.mark.parametrize(
    ("are_characters", "n_features", "digest"), [(False, 69, "a6d308fce28f9789"), (True, 17, "fa05b382b75fc754")]
)
def test_features_are_those_of_earlier_bundles(are_characters: bool, n_features: int, digest: str) -> None:
    """A bundle stores a weight for each hash: with other features, taggers of earlier versions would predict noise."""
    found = word_features(TEXTS, are_characters=are_characters)
    assert found.shape == (9, n_features)
    assert sha256(found.astype("<u8").tobytes()).hexdigest()[:16] == digest
