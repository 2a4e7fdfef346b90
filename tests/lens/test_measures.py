"""Maps made by hand, of which the right statistics are known."""

import numpy as np
import pytest

from manyheads.corpora import Relation
from manyheads.lens.alignment import aligned_maps, argmax_links, count_links
from manyheads.lens.encoded_examples import EncodedExample, TokenPositions, pool_to_words, word_shares
from manyheads.lens.examples import Example, plain_text
from manyheads.lens.measures import (
    Counts,
    count_cross,
    count_relations,
    count_self,
    diagonal_map,
    offset_maps,
    uniform_map,
)
from manyheads.lens.similarity import js_divergence
from manyheads.text.tokenizer import BOS, EOS


def positions(ids: list[int], relations: tuple[Relation, ...] = (), rare: tuple[int, ...] = ()) -> TokenPositions:
    """A text whose every token is a word; the token 99 is punctuation."""
    numbers = np.array(ids)
    is_word = ~np.isin(numbers, (BOS, EOS))
    shares = np.eye(len(ids))[:, is_word]
    return TokenPositions(numbers, numbers == 99, shares, relations, np.isin(numbers, rare))


def statistic(counts: Counts, name: str) -> list[float]:
    amounts, total = counts[name]
    return [float(one) for one in np.asarray(amounts) / total]


TEXT = positions([BOS, 10, 11, 12, 10, 99], rare=(11,))


def test_a_previous_token_head() -> None:
    counts = count_self(offset_maps(6, 6, [-1], is_causal=True), TEXT, is_causal=True)
    assert statistic(counts, "offset-1") == [1.0]
    assert statistic(counts, "weight-1") == [1.0]
    assert statistic(counts, "offset+0") == [0.0]
    assert statistic(counts, "distance") == [-1.0]
    assert statistic(counts, "near") == [1.0]
    assert statistic(counts, "entropy") == [0.0]
    assert statistic(counts, "bos") == [0.2]  # the first of five tokens looks at it
    assert statistic(counts, "confidence") == [0.8]  # and there is then no weight on any token


def test_a_next_token_head() -> None:
    counts = count_self(offset_maps(6, 6, [1], is_causal=False), TEXT, is_causal=False)
    assert statistic(counts, "offset+1") == statistic(counts, "weight+1") == [1.0]
    assert statistic(counts, "rare") == [0.2]


def test_a_head_that_looks_at_begin() -> None:
    maps = np.zeros((1, 6, 6))
    maps[..., 0] = 1.0
    counts = count_self(maps, TEXT, is_causal=True)
    assert statistic(counts, "bos") == [1.0]
    assert statistic(counts, "confidence") == [0.0]
    assert "eos" not in counts


def test_an_even_head() -> None:
    counts = count_self(uniform_map(6, 6, is_causal=False), TEXT, is_causal=False)
    assert statistic(counts, "entropy") == pytest.approx([np.log(6)])
    assert statistic(counts, "spread") == pytest.approx([1.0])
    assert statistic(counts, "confidence") == pytest.approx([1 / 6])
    assert statistic(counts, "punctuation") == pytest.approx([1 / 6])
    causal = count_self(uniform_map(6, 6, is_causal=True), TEXT, is_causal=True)
    assert statistic(causal, "spread") == pytest.approx([1.0])


def test_duplicates_and_what_followed_them() -> None:
    maps = np.zeros((2, 6, 6))
    maps[0, 4, 1] = maps[1, 4, 2] = 1.0  # the second 10 looks at the first, and at what followed it
    counts = count_self(maps, TEXT, is_causal=True)
    assert counts["duplicate"][1] == counts["induction"][1] == 1.0
    assert statistic(counts, "duplicate") == [1.0, 0.0]
    assert statistic(counts, "induction") == [0.0, 1.0]
    both_ways = count_self(maps, TEXT, is_causal=False)
    assert both_ways["duplicate"][1] == 2.0
    assert "induction" not in both_ways


def test_relations_in_both_directions() -> None:
    text = positions([BOS, 10, 11, 12], (Relation("subject", 0, 1), Relation("object", 2, 1)))
    words = np.array([[[0.9, 0.1, 0.0], [0.2, 0.5, 0.3], [0.6, 0.3, 0.1]]])
    counts = count_relations(words, text, is_causal=False)
    assert statistic(counts, "subject>") == [1.0]  # itself excluded
    assert statistic(counts, "subject<") == [0.0]
    assert statistic(counts, "object<") == [1.0]
    assert statistic(counts, "object>") == [0.0]
    # A decoder cannot see what comes, and is not asked for it.
    assert set(count_relations(words, text, is_causal=True)) == {"subject<", "object>"}


def test_tokens_are_shared_out_by_characters() -> None:
    # 我|爱水课 as tokens 我爱 and 水课; the space before a word belongs to nobody.
    shares = word_shares([(0, 2), (2, 4), (4, 7)], [(0, 1), (1, 4), (5, 7)])
    assert shares.tolist() == [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    weights = np.array([[[0.2, 0.3, 0.5], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]])
    words = pool_to_words(weights, shares, shares)
    # To a word: the sum of shares. From a word: the mean of its tokens by how much of each is its own.
    assert words[0, 0].tolist() == pytest.approx([0.1, 0.4, 0.5])
    assert words[0, 1].tolist() == pytest.approx([(0.5 * 0.1) / 1.5, (0.5 * 0.4 + 1.0) / 1.5, (0.5 * 0.5) / 1.5])
    assert words.sum(-1) == pytest.approx(1.0)


def pair(links: set[tuple[int, int]]) -> EncodedExample:
    example = Example((plain_text("a b c"), plain_text("x y z")), frozenset(links), frozenset(links))
    return EncodedExample(example, (positions([5, 6, 7, EOS]), positions([BOS, 8, 9, 10])))


def test_a_diagonal_aligner_and_its_shift() -> None:
    encoded = pair({(0, 0), (1, 1), (2, 2)})
    written = np.eye(4)[None]  # at BOS x is written, and a looked at; the last row writes EOS
    maps = aligned_maps(written, written, encoded)
    right, given = count_links(maps["align weights written"], encoded.example.sure, encoded.example.possible)
    assert 1 - right / given == 0.0
    read = np.roll(np.eye(4), 1, axis=0)[None]  # where x was read, a is looked at
    maps = aligned_maps(read, read, encoded)
    assert argmax_links(maps["align weights read"]) == [{(0, 0), (1, 1), (2, 2)}]
    assert argmax_links(maps["align weights written"]) == [{(0, 1), (1, 2)}]


def test_what_looks_at_the_end_is_linked_to_nothing() -> None:
    encoded = pair({(0, 0)})
    weights = np.zeros((1, 4, 4))
    weights[0, :, 3] = 1.0
    (links,) = argmax_links(aligned_maps(weights, weights, encoded)["align weights written"])
    assert links == set()


def test_error_rate_with_possible_links() -> None:
    words = np.array([[[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]])  # both target words stand for the first
    right, given = count_links(words, {(0, 0)}, {(0, 0), (0, 1)})
    assert (right.tolist(), given.tolist()) == ([3.0], [3.0])  # |A∩S| 1 + |A∩P| 2; |A| 2 + |S| 1
    right, given = count_links(words, {(0, 0), (1, 1)}, {(0, 0), (1, 1)})
    assert 1 - right / given == pytest.approx([0.5])


def test_norms_may_say_something_else_than_weights() -> None:
    encoded = pair({(0, 0), (1, 1), (2, 2)})
    weights = np.zeros((1, 4, 4))
    weights[0, :, 3] = 0.6
    weights[0, range(3), range(3)] = 0.4
    maps = aligned_maps(weights, weights * np.array([1.0, 1.0, 1.0, 0.01]), encoded)
    assert argmax_links(maps["align weights written"]) == [set()]
    assert argmax_links(maps["align norms written"]) == [{(0, 0), (1, 1), (2, 2)}]


def test_cross_attention_and_the_diagonal() -> None:
    encoded = pair(set())
    counts = count_cross(np.eye(4)[None], encoded.sides[1], encoded.sides[0])
    assert statistic(counts, "eos") == pytest.approx([1 / 3])
    assert diagonal_map(2, 4)[0].argmax(-1).tolist() == [1, 3]


def test_divergence() -> None:
    one, other = offset_maps(4, 4, [0, -1], is_causal=False)
    found = js_divergence(np.stack([one, one, other]))
    assert found[0, 1] == 0.0
    assert found[0, 2] == pytest.approx(0.75)  # the first row alone looks at the same place
    assert found == pytest.approx(found.T)
    even = uniform_map(4, 4, is_causal=False)[0]
    apart = np.zeros((4, 4))
    apart[:, 0] = 1.0
    assert 0 < js_divergence(np.stack([even, apart]))[0, 1] < 1
