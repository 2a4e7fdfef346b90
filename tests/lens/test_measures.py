"""Hand-made attention maps with known statistics."""

import numpy as np
import pytest

from manyheads.corpora import Relation
from manyheads.lens.roles.measures import (
    Counts,
    aligned_maps,
    argmax_links,
    count_alignment,
    count_cross,
    count_links,
    count_relations,
    count_self,
    diagonal_map,
    offset_maps,
    uniform_map,
)
from manyheads.lens.roles.similarity import js_divergence
from manyheads.lens.traces.encoded_examples import EncodedExample, TokenPositions, pool_to_words, word_shares
from manyheads.tasks.lens_examples import Example, plain_text
from manyheads.text.tokens.tokenizer import BOS, EOS


def positions(ids: list[int], relations: tuple[Relation, ...] = (), rare: tuple[int, ...] = ()) -> TokenPositions:
    """Return a text in which every token is a word; token 99 is punctuation."""
    numbers = np.array(ids)
    is_word = ~np.isin(numbers, (BOS, EOS))
    shares = np.eye(len(ids))[:, is_word]
    return TokenPositions(numbers, numbers == 99, shares, relations, np.isin(numbers, rare))


def statistic(counts: Counts, name: str) -> list[float]:
    amounts, total = counts[name]
    return [float(value) for value in np.asarray(amounts) / total]


TEXT = positions([BOS, 10, 11, 12, 10, 99], rare=(11,))


def test_previous_token_head() -> None:
    counts = count_self(offset_maps(6, 6, [-1], is_causal=True), TEXT, is_causal=True)
    assert statistic(counts, "offset-1") == [1.0]
    assert statistic(counts, "weight-1") == [1.0]
    assert statistic(counts, "offset+0") == [0.0]
    assert statistic(counts, "distance") == [-1.0]
    assert statistic(counts, "near") == [1.0]
    assert statistic(counts, "entropy") == [0.0]
    assert statistic(counts, "bos") == [0.2]  # from the first of five tokens
    assert statistic(counts, "confidence") == [0.8]  # that row has no weight on a token


def test_next_token_head() -> None:
    counts = count_self(offset_maps(6, 6, [1], is_causal=False), TEXT, is_causal=False)
    assert statistic(counts, "offset+1") == statistic(counts, "weight+1") == [1.0]
    assert statistic(counts, "rare") == [0.2]


def test_attention_sink() -> None:
    maps = np.zeros((1, 6, 6))
    maps[..., 0] = 1.0
    counts = count_self(maps, TEXT, is_causal=True)
    assert statistic(counts, "bos") == [1.0]
    assert statistic(counts, "confidence") == [0.0]
    assert "eos" not in counts


def test_uniform_head() -> None:
    counts = count_self(uniform_map(6, 6, is_causal=False), TEXT, is_causal=False)
    assert statistic(counts, "entropy") == pytest.approx([np.log(6)])
    assert statistic(counts, "spread") == pytest.approx([1.0])
    assert statistic(counts, "confidence") == pytest.approx([1 / 6])
    assert statistic(counts, "punctuation") == pytest.approx([1 / 6])
    causal = count_self(uniform_map(6, 6, is_causal=True), TEXT, is_causal=True)
    assert statistic(causal, "spread") == pytest.approx([1.0])


def test_duplicate_and_induction_heads() -> None:
    maps = np.zeros((2, 6, 6))
    maps[0, 4, 1] = maps[1, 4, 2] = 1.0  # the second 10 attends to the first, and to the token after it
    counts = count_self(maps, TEXT, is_causal=True)
    assert counts["duplicate"][1] == counts["induction"][1] == 1.0
    assert statistic(counts, "duplicate") == [1.0, 0.0]
    assert statistic(counts, "induction") == [0.0, 1.0]
    bidirectional = count_self(maps, TEXT, is_causal=False)
    assert bidirectional["duplicate"][1] == 2.0
    assert "induction" not in bidirectional


def test_relations_in_both_directions() -> None:
    text = positions([BOS, 10, 11, 12], (Relation("subject", 0, 1), Relation("object", 2, 1)))
    words = np.array([[[0.9, 0.1, 0.0], [0.2, 0.5, 0.3], [0.6, 0.3, 0.1]]])
    counts = count_relations(words, text, is_causal=False)
    assert statistic(counts, "subject>") == [1.0]  # itself excluded
    assert statistic(counts, "subject<") == [0.0]
    assert statistic(counts, "object<") == [1.0]
    assert statistic(counts, "object>") == [0.0]
    # A decoder does not see later words, so relations to them are not counted.
    names = {name for name in count_relations(words, text, is_causal=True) if "@" not in name}
    assert names == {"subject<", "object>"}


def test_neighbors_of_a_word_with_a_relation() -> None:
    """the teacher reads a red book: the words between verb and object look at the verb."""
    text = positions([BOS, 10, 11, 12, 13, 14, 15], (Relation("subject", 1, 2), Relation("object", 5, 2)))
    words = np.zeros((1, 6, 6))
    words[0, range(6), [1, 2, 1, 2, 2, 0]] = 1.0
    counts = count_relations(words, text, is_causal=False)
    assert (statistic(counts, "object>"), counts["object>"][1]) == ([0.0], 1.0)
    assert statistic(counts, "object> @-1") == statistic(counts, "object> @-2") == [1.0]
    assert counts["object> @+1"] == (np.zeros(1), 0.0)  # the text ends
    # The verb is what the subject looks for, and no neighbor of it; "a" looks at the verb too.
    assert counts["subject> @+1"][1] == 0.0
    assert statistic(counts, "subject> @+2") == [1.0]
    assert statistic(counts, "subject> @-1") == [0.0]
    # From the verb to its object: "red" has no weight on the object, nor have the others.
    assert [counts[f"object< @{offset:+d}"][1] for offset in (-2, -1, 1, 2)] == [1.0] * 4
    # Under a causal mask, a neighbor before the verb cannot see it.
    causal = count_relations(words, text, is_causal=True)
    assert [causal[f"object> @{offset:+d}"][1] for offset in (-2, -1)] == [1.0, 1.0]
    assert causal["subject< @-2"][1] == 0.0
    # Two objects of one verb are no neighbors of each other.
    both = positions([BOS, 10, 11, 12], (Relation("object", 1, 0), Relation("object", 2, 0)))
    assert count_relations(words[:, :3, :3], both, is_causal=False)["object> @+1"][1] == 0.0


def test_neighbors_of_aligned_words() -> None:
    encoded = pair({(0, 0), (1, 1), (2, 2)})
    late = np.zeros((1, 4, 4))
    late[0, range(4), [3, 0, 1, 2]] = 1.0  # each position attends to what the one before it writes
    counts = count_alignment(aligned_maps(late, late, encoded), encoded)
    assert statistic(counts, "align weights written") == [0.0]
    assert statistic(counts, "align weights written @+1") == pytest.approx([4 / 5])  # the last word has no neighbor
    assert statistic(counts, "align weights read") == [1.0]


def test_tokens_are_divided_among_words_by_characters() -> None:
    # 我|爱水课 as tokens 我爱 and 水课; the space before a word belongs to no word.
    shares = word_shares([(0, 2), (2, 4), (4, 7)], [(0, 1), (1, 4), (5, 7)])
    assert shares.tolist() == [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    weights = np.array([[[0.2, 0.3, 0.5], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]])
    words = pool_to_words(weights, shares, shares)
    # To a word: the sum of shares. From a word: the mean over its tokens, weighted by shares.
    assert words[0, 0].tolist() == pytest.approx([0.1, 0.4, 0.5])
    assert words[0, 1].tolist() == pytest.approx([(0.5 * 0.1) / 1.5, (0.5 * 0.4 + 1.0) / 1.5, (0.5 * 0.5) / 1.5])
    assert words.sum(-1) == pytest.approx(1.0)


def pair(links: set[tuple[int, int]]) -> EncodedExample:
    example = Example((plain_text("a b c"), plain_text("x y z")), frozenset(links), frozenset(links))
    return EncodedExample(example, (positions([5, 6, 7, EOS]), positions([BOS, 8, 9, 10])))


def test_diagonal_alignment_read_and_written() -> None:
    encoded = pair({(0, 0), (1, 1), (2, 2)})
    written = np.eye(4)[None]  # at BOS, x is written and a attended to; the last row writes EOS
    maps = aligned_maps(written, written, encoded)
    correct, total = count_links(maps["align weights written"], encoded.example.sure, encoded.example.possible)
    assert 1 - correct / total == 0.0
    read = np.roll(np.eye(4), 1, axis=0)[None]  # where x is read, a is attended to
    maps = aligned_maps(read, read, encoded)
    assert argmax_links(maps["align weights read"]) == [{(0, 0), (1, 1), (2, 2)}]
    assert argmax_links(maps["align weights written"]) == [{(0, 1), (1, 2)}]


def test_weight_on_eos_gives_no_link() -> None:
    encoded = pair({(0, 0)})
    weights = np.zeros((1, 4, 4))
    weights[0, :, 3] = 1.0
    (links,) = argmax_links(aligned_maps(weights, weights, encoded)["align weights written"])
    assert links == set()


def test_error_rate_with_possible_links() -> None:
    words = np.array([[[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]])  # both target words align to the first source word
    correct, total = count_links(words, {(0, 0)}, {(0, 0), (0, 1)})
    assert (correct.tolist(), total.tolist()) == ([3.0], [3.0])  # |A∩S| 1 + |A∩P| 2; |A| 2 + |S| 1
    correct, total = count_links(words, {(0, 0), (1, 1)}, {(0, 0), (1, 1)})
    assert 1 - correct / total == pytest.approx([0.5])


def test_alignment_by_norms_differs_from_weights() -> None:
    encoded = pair({(0, 0), (1, 1), (2, 2)})
    weights = np.zeros((1, 4, 4))
    weights[0, :, 3] = 0.6
    weights[0, range(3), range(3)] = 0.4
    maps = aligned_maps(weights, weights * np.array([1.0, 1.0, 1.0, 0.01]), encoded)
    assert argmax_links(maps["align weights written"]) == [set()]
    assert argmax_links(maps["align norms written"]) == [{(0, 0), (1, 1), (2, 2)}]


def test_cross_attention_and_diagonal_baseline() -> None:
    encoded = pair(set())
    counts = count_cross(np.eye(4)[None], encoded.sides[1], encoded.sides[0])
    assert statistic(counts, "eos") == pytest.approx([1 / 3])
    assert diagonal_map(2, 4)[0].argmax(-1).tolist() == [1, 3]


def test_js_divergence() -> None:
    first, second = offset_maps(4, 4, [0, -1], is_causal=False)
    divergences = js_divergence(np.stack([first, first, second]))
    assert divergences[0, 1] == 0.0
    assert divergences[0, 2] == pytest.approx(0.75)  # only the first row attends to the same position
    assert divergences == pytest.approx(divergences.T)
    uniform = uniform_map(4, 4, is_causal=False)[0]
    apart = np.zeros((4, 4))
    apart[:, 0] = 1.0
    assert 0 < js_divergence(np.stack([uniform, apart]))[0, 1] < 1
