"""The data of the benchmark: sentence pairs of the built-in corpus with their own tokenizer."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from manyheads import corpora
from manyheads.data import Encoded, Texts
from manyheads.tasks import Seq2Seq, Seq2SeqSettings
from manyheads.text.tokens.tokenizer import EOS, Tokenizer, TokenizerSettings

_LANGUAGES = ("en", "de")
_N_PAIRS = 2000
# A small vocabulary makes these short sentences as long, in tokens, as real ones with a larger vocabulary.
_N_TOKENS = 1500


@dataclass(frozen=True)
class Sentences:
    """Sentence pairs as text and as ids."""

    tokenizer: Tokenizer
    encoded: Encoded

    @classmethod
    @contextmanager
    def make(cls) -> Iterator["Sentences"]:
        """Make the pairs; they are on disk until the block ends."""
        rows = list(corpora.pairs(*_LANGUAGES, "train", _N_PAIRS, 1))
        settings = TokenizerSettings(kind="bpe", vocab_size=_N_TOKENS)
        tokenizer = Tokenizer.train((text for row in rows for text in row), settings, 1)
        with TemporaryDirectory(prefix="manyheads-bench-") as folder:
            Texts.write(Path(folder) / "text", rows, n_fields=2)
            texts = Texts.open(Path(folder) / "text")
            encode = partial(Seq2Seq.encode_rows, tokenizer=tokenizer, settings=Seq2SeqSettings())
            Encoded.write(Path(folder) / "data", texts, encode, max_length=None)
            yield cls(tokenizer, Encoded.open(Path(folder) / "data", texts))

    @property
    def mean_lengths(self) -> tuple[float, float]:
        """The mean number of tokens of sources and of targets, EOS included."""
        source, target = self.encoded.lengths.mean(axis=0).tolist()
        return source, target

    @property
    def example(self) -> str:
        """The first source sentence."""
        return self.encoded.text(0, 0)

    def sources(self, count: int) -> list[list[int]]:
        """The ids of the first sources, each with EOS."""
        return [[*self.encoded.columns[0][number].tolist(), EOS] for number in range(min(count, len(self.encoded)))]
