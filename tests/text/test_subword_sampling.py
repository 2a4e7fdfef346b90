"""Subword sampling: deterministic in every process, with SentencePiece's distribution."""

import hashlib
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from manyheads import corpora
from manyheads.text.tokens.subword_sampling import SubwordSampler
from manyheads.text.tokens.tokenizer import Tokenizer, TokenizerSettings

LINES = [text for pair in corpora.pairs("en", "zh", "train", 400) for text in pair]
AWKWARD = ["  a  b ▁▁ 😀 x", "ab 鬱 c", "", " ", "a", "▁", "\t\0 "]

IN_A_PROCESS = """
import hashlib, sys
from manyheads.text.tokens.tokenizer import Tokenizer
tokenizer = Tokenizer.from_file(sys.argv[1])
rows = tokenizer.sample_batch(["The dog sleeps in the garden."] * 20, 0.1, 7)
print(hashlib.sha256(str(rows).encode()).hexdigest())
"""


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return Tokenizer.train(LINES, TokenizerSettings(kind=request.param, vocab_size=1000))


def test_every_process_draws_the_same_tokens(tokenizer: Tokenizer, tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.model"
    file.write_bytes(tokenizer.to_bytes())
    rows = tokenizer.sample_batch(["The dog sleeps in the garden."] * 20, 0.1, 7)
    assert len({tuple(row) for row in rows}) > 1
    command = [sys.executable, "-c", IN_A_PROCESS, str(file)]
    errors = {subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() for _ in range(2)}
    assert errors == {hashlib.sha256(str(rows).encode()).hexdigest()}


def test_without_randomness_equals_sentencepiece(tokenizer: Tokenizer) -> None:
    """A very large alpha leaves only the most probable split; without dropout, BPE is deterministic."""
    sampler = SubwordSampler(tokenizer._processor)
    strength = 0.0 if sampler.is_bpe else 1000.0
    plain = [text for text in [*LINES, *AWKWARD] if "▁" not in text]
    found = [sampler.sample(text, strength, random.Random(1), add_prefix=True) for text in plain]
    assert found == tokenizer.encode_batch(plain)


@pytest.mark.parametrize("strength", [0.05, 0.3])
def test_distribution_equals_sentencepiece(tokenizer: Tokenizer, strength: float) -> None:
    text, draws = "The garden", 4000
    options = {"enable_sampling": True, "nbest_size": -1, "alpha": strength, "num_threads": 1}
    theirs = Counter(map(tuple, tokenizer._processor.encode([text] * draws, **options)))
    ours = Counter(map(tuple, tokenizer.sample_batch([text] * draws, strength, 1)))
    for split, count in theirs.most_common(5):
        # Five standard deviations of the difference of two counts.
        assert abs(ours[split] - count) <= 5 * (2 * count) ** 0.5 + 5


def test_sampling_is_lossless(tokenizer: Tokenizer) -> None:
    for seed in range(5):
        assert tokenizer.decode_batch(tokenizer.sample_batch(AWKWARD, 0.3, seed)) == AWKWARD
