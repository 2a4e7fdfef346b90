"""What is trained on and translated: pairs of the built-in corpus, cut into tokens of their own."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from manyheads import corpora
from manyheads.data import Encoded, Texts
from manyheads.tasks import Seq2Seq, Seq2SeqSettings
from manyheads.text.tokenizer import EOS, Tokenizer, TokenizerSettings

_LANGUAGES = ("en", "de")
_N_PAIRS = 2000
# With so few tokens sentences are about as long as real ones are in the tokens of a larger vocabulary.
_N_TOKENS = 1500


@dataclass(frozen=True)
class Sentences:
    """Pairs as text and as ids; of a vocabulary that may be larger, the ids are the first."""

    tokenizer: Tokenizer
    encoded: Encoded

    @classmethod
    @contextmanager
    def make(cls) -> Iterator["Sentences"]:
        """They are on disk as long as they are needed."""
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
        """Tokens of a source and of a target, EOS included."""
        source, target = self.encoded.lengths.mean(axis=0).tolist()
        return source, target

    @property
    def example(self) -> str:
        """One of them."""
        return self.encoded.text(0, 0)

    def sources(self, count: int) -> list[list[int]]:
        """The ids of the first of them, each with its EOS."""
        return [[*self.encoded.columns[0][number].tolist(), EOS] for number in range(min(count, len(self.encoded)))]
