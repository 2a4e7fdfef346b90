"""N-gram models: which n-grams a text has, and their evidence."""

import math

import torch

from manyheads.tasks.ngrams import NgramClassifier
from manyheads.text.tokenizer import BOS, PAD


def test_ngram_counts_once_and_padding_never() -> None:
    ngrams = NgramClassifier(2, 2)
    ids = torch.tensor([[BOS, 7, 8, 7, 8, PAD, PAD]])
    buckets = ngrams.buckets(ids)
    assert buckets.ne(0).sum() == 5 - 1  # 7, 8, "7 8", "8 7"
    assert set(buckets.unique().tolist()) == set(ngrams.buckets(ids[:, :5]).unique().tolist()) | {0}
    other = ngrams.buckets(torch.tensor([[BOS, 8, 7]]))
    assert set(other[other != 0].tolist()) < set(buckets.unique().tolist())


def test_ngrams_depend_on_order() -> None:
    ngrams = NgramClassifier(2, 3)
    one, other = (set(ngrams.buckets(torch.tensor([ids])).unique().tolist()) for ids in ([4, 5, 6], [6, 5, 4]))
    assert len(one & other - {0}) == 3  # the three tokens; no pair, no triple


def test_evidence_is_the_log_count_ratio() -> None:
    ngrams = NgramClassifier(2, 1)
    ids = torch.tensor([[5, 9]] * 6 + [[6, 9]] * 2)
    targets = torch.tensor([[1.0, 0.0]] * 6 + [[0.0, 1.0]] * 2)
    ngrams.count([(ids, targets)])
    five, six, nine, never = (ngrams.evidence[ngrams.buckets(torch.tensor([[token]]))[0, 0]] for token in (5, 6, 9, 11))
    n = ngrams.n_buckets
    torch.testing.assert_close(five[0].item(), math.log(7 / (n + 12)) - math.log(1 / (n + 4)), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(five, -five.flip(0), rtol=1e-4, atol=1e-4)
    assert five[0] > nine[0] > six[0]
    assert never.tolist() == [0.0, 0.0]
    logits = ngrams(torch.tensor([[BOS, 5, PAD], [BOS, 6, PAD]]))
    assert logits[0, 0] > logits[0, 1] and logits[1, 0] < logits[1, 1]


def test_many_labels_have_fewer_buckets() -> None:
    assert NgramClassifier(2, 1).n_buckets == 1 << 18
    assert NgramClassifier(150, 1).n_buckets == 1 << 13
    assert NgramClassifier(100_000, 1).n_buckets == 1 << 10
