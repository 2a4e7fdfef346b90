"""Text ⇄ pieces ⇄ ids: a subword vocabulary learnt from the user's own text by SentencePiece.

Nothing is ever unknown and nothing is ever changed: text is not normalised, and a character outside the
vocabulary is spelt by its UTF-8 bytes, so `decode(encode(text)) == text` for every text that UTF-8 can hold.
"""

import io
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import sentencepiece

from manyheads.errors import BundleError, DataError
from manyheads.settings import refuse

PAD, UNKNOWN, BEGIN, END = 0, 1, 2, 3
SPACE_SIGN = "▁"  # how SentencePiece writes a space inside its pieces

_RESERVED = 4 + 256  # the special pieces and the bytes
_SMALLEST_VOCABULARY = 300
_SMALLEST_SAMPLE = 100_000
_LONGEST_CHUNK = 1000  # characters
_ENOUGH_FOR_THREADS = 1000  # texts
# SentencePiece silently drops every training line that holds its own stand-in for the unknown character.
_SPOILER = "▅"
# The trainer learns no piece that holds a tab: it may stand for what is not to be learnt.
_BOUNDARY = "\t"
# What another's tokenizer would lose: runs of spaces, the space sign itself, the rare, the full-width, controls.
_PROBE = "  a▁▁ 😀，\t\0 "

_seed_lock = threading.Lock()

Processor = sentencepiece.SentencePieceProcessor
EncodeBatch = Callable[[Processor, list[str]], list[list[int]]]


@dataclass(frozen=True, kw_only=True)
class TokenizerSettings:
    """How a vocabulary is learnt.

    `sampling` splits training text differently each time it is seen. 0 is off. For unigram it is the alpha of
    sampling over all splits, customarily 0.1 (the nearer to 0, the wilder; 1 follows the learnt probabilities);
    for bpe it is the probability of leaving out a merge, customarily 0.1 (the nearer to 1, the wilder).
    """

    kind: Literal["unigram", "bpe"] = "unigram"
    vocabulary: int = 8000  # pieces, with the 4 special ones and the 256 bytes; small texts yield fewer
    sampling: float = 0.0
    sample_bytes: int = 200_000_000  # of more text than this, a random sample is learnt from

    def __post_init__(self) -> None:
        least = {"vocabulary": _SMALLEST_VOCABULARY, "sample_bytes": _SMALLEST_SAMPLE}
        faults = [
            f"tokenizer.{name} = {getattr(self, name)} is too small. Use at least {smallest}."
            for name, smallest in least.items()
            if getattr(self, name) < smallest
        ]
        if self.kind not in ("unigram", "bpe"):
            faults.append(f'tokenizer.kind = "{self.kind}" is not known. Use "unigram" or "bpe".')
        if not 0 <= self.sampling <= 1:
            faults.append(f"tokenizer.sampling = {self.sampling} is out of range. Use 0 (off) to 1.")
        refuse(faults)


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of a text and where it stands: `original[start:end]`, counted in characters.

    `text` is the piece as the vocabulary writes it: ▁ for a space, <0xE2> for a byte. The space before a word
    belongs to the word's first piece. The bytes of one character all carry that character's span. A ▁ that
    SentencePiece put before the text on its own account has the empty span (0, 0).
    """

    text: str
    id: int
    start: int
    end: int


class Tokenizer:
    """A learnt vocabulary. Its bytes are an ordinary SentencePiece model that other tools can read.

    SentencePiece cannot tell a ▁ in the text from a space. So that character is kept from it: the text is
    split there, and the three UTF-8 bytes of ▁ are put between the parts, which it decodes as they are.
    """

    def __init__(self, blob: bytes) -> None:
        self._blob = blob
        self._processor = Processor(model_proto=blob)
        # The parts after a ▁ do not begin a text, so they get no space of SentencePiece's own in front.
        self._inner = Processor(model_proto=blob)
        self._inner.override_normalizer_spec(add_dummy_prefix=False)
        self._sign = [self._processor.piece_to_id(f"<0x{byte:02X}>") for byte in SPACE_SIGN.encode()]

    @classmethod
    def learn(cls, lines: Iterable[str], settings: TokenizerSettings, seed: int = 1) -> "Tokenizer":
        """Learn from `lines`, read once; the same lines, settings and seed give the same bytes on any machine."""
        sample = _sample(lines, settings.sample_bytes, random.Random(seed))
        if not any(chunk.strip() for chunk in sample):
            raise DataError("There is no text to learn a tokenizer from: every line is empty. Give some text.")
        try:
            blob = _train(sample, settings)
        except RuntimeError as error:
            if "required_chars" not in str(error):
                raise
            blob = _train(_only_common_characters(sample, settings.vocabulary), settings)
        return cls.from_bytes(blob)

    @classmethod
    def from_file(cls, path: Path | str) -> "Tokenizer":
        """Read what `to_bytes` gave."""
        try:
            blob = Path(path).read_bytes()
        except OSError as error:
            raise BundleError(f"{path}: the tokenizer cannot be read ({error.strerror}).") from None
        return cls.from_bytes(blob, name=str(path))

    @classmethod
    def from_bytes(cls, blob: bytes, name: str = "tokenizer.model") -> "Tokenizer":
        """Restore what `to_bytes` gave; `name` is what an error calls it."""
        damaged = f"{name} is damaged, or is not a SentencePiece model. Copy the bundle again or train it anew."
        if not blob:
            raise BundleError(damaged)
        try:
            tokenizer = cls(blob)
            special = [tokenizer._processor.piece_to_id(text) for text in ("<pad>", "<unk>", "<s>", "</s>")]
            ours = special == [PAD, UNKNOWN, BEGIN, END] and tokenizer.decode(tokenizer.encode(_PROBE)) == _PROBE
        except (RuntimeError, IndexError):
            raise BundleError(damaged) from None
        if not ours:
            raise BundleError(
                f"{name} is a SentencePiece model, but not one that manyheads made: its special pieces differ, "
                "or it alters text. Use the tokenizer.model of a manyheads bundle."
            )
        return tokenizer

    def to_bytes(self) -> bytes:
        """The whole tokenizer, as a file would hold it."""
        return self._blob

    @property
    def vocabulary(self) -> int:
        """How many pieces there are; ids run from 0 to one less."""
        return int(self._processor.vocab_size())

    def encode(self, text: str) -> list[int]:
        """The ids of one text, without BEGIN and END."""
        return self.encode_many([text])[0]

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, without BEGIN and END; many at once is much faster than one by one."""
        threads = -1 if len(texts) >= _ENOUGH_FOR_THREADS else 1
        return self._encode(texts, lambda processor, batch: processor.encode(batch, num_threads=threads))

    def sample_many(self, texts: Sequence[str], strength: float, seed: int) -> list[list[int]]:
        """Like `encode_many`, each text split at random: a pure function of its arguments.

        `strength` is what `TokenizerSettings.sampling` describes; 0 gives `encode_many`.
        """
        if strength == 0:
            return self.encode_many(texts)

        # More than one thread of SentencePiece's would each draw whichever texts it gets to first.
        def sample(processor: Processor, batch: list[str]) -> list[list[int]]:
            return list(processor.encode(batch, num_threads=1, enable_sampling=True, nbest_size=-1, alpha=strength))

        # SentencePiece draws from one generator per thread, seeded when the thread first draws and never again,
        # from a number that the whole process shares. Hence a new thread for each call, and one call at a time.
        # Its largest seed, 2**32 - 1, means "seed by chance".
        with _seed_lock, ThreadPoolExecutor(max_workers=1) as fresh_thread:
            sentencepiece.set_random_generator_seed(seed % (2**32 - 1))
            return fresh_thread.submit(self._encode, texts, sample).result()

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; PAD, BEGIN and END vanish, bytes that are not UTF-8 become U+FFFD."""
        return str(self._processor.decode([int(i) for i in ids]))

    def decode_many(self, rows: Iterable[Iterable[int]]) -> list[str]:
        """The text of each row of ids."""
        return [self.decode(row) for row in rows]

    def pieces(self, text: str) -> list[Piece]:
        """The pieces of one text, each with its place in it."""
        found = []
        # SentencePiece puts a space before the text, unless it is never shown the text's beginning.
        place = 0 if text.startswith(SPACE_SIGN) else -1
        for piece_id in self.encode(text):
            name = str(self._processor.id_to_piece(piece_id))
            if not self._processor.is_byte(piece_id):
                start, place = place, place + len(name)
            else:
                byte = int(name[1:-1], 16)
                if not 0x80 <= byte < 0xC0:  # not a continuation byte of UTF-8: a new character
                    place += 1
                start = place - 1
            found.append(Piece(name, piece_id, max(start, 0), place))
        return found

    def _encode(self, texts: Sequence[str], encode: EncodeBatch) -> list[list[int]]:
        for number, text in enumerate(texts, start=1):
            _to_utf8(text, f"Text {number}")
        parts = [text.split(SPACE_SIGN) for text in texts]
        rows = encode(self._processor, [first for first, *_ in parts])
        inner = iter(encode(self._inner, [part for _, *rest in parts for part in rest]))
        for row, (_, *rest) in zip(rows, parts, strict=True):
            for _ in rest:
                row += self._sign + next(inner)
        return rows


def _to_utf8(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"{name} holds half a character (surrogate U+{ord(text[error.start]):04X} at character "
            f"{error.start + 1}), which UTF-8 cannot write. Read the text anew in its right encoding."
        ) from None


def _sample(lines: Iterable[str], most_bytes: int, chance: random.Random) -> list[bytes]:
    """The lines in chunks of a bounded length: all of them, or as many drawn evenly as `most_bytes` allows."""
    kept: list[tuple[float, bytes]] = []
    size, limit = 0, 1.0
    for number, line in enumerate(lines, start=1):
        utf8_chunks = [_to_utf8(chunk, f"Line {number}") for chunk in _chunks(line)]
        for chunk in utf8_chunks:
            lot = chance.random()
            if lot >= limit:
                continue
            kept.append((lot, chunk))
            size += len(chunk)
            while size > most_bytes:
                # Whatever was read so far and whatever comes is kept with the same probability, `limit`.
                limit *= 0.9
                kept = [(lot, chunk) for lot, chunk in kept if lot < limit]
                size = sum(len(chunk) for _, chunk in kept)
    return [chunk for _, chunk in kept]


def _chunks(line: str) -> Iterator[str]:
    """A long line in parts, cut at spaces where there are any.

    SentencePiece silently drops training lines that are too long for it, and where that is set higher, a bpe
    word of more than 65,535 characters (one long line of Chinese, say) aborts the whole process.
    """
    start = 0
    while len(line) - start > _LONGEST_CHUNK:
        cut = line.rfind(" ", start + 1, start + _LONGEST_CHUNK)
        cut = cut if cut > 0 else start + _LONGEST_CHUNK
        yield line[start:cut]
        start = cut + 1 if line[cut] == " " else cut  # the trainer puts that space back before each chunk
    yield line[start:]


def _only_common_characters(sample: list[bytes], vocabulary: int) -> list[bytes]:
    """The sample without its rarest characters, when there are more characters than the vocabulary has room for."""
    counts: Counter[str] = Counter()
    for chunk in sample:
        counts.update(chunk.decode())
    del counts[" "]
    room = vocabulary - _RESERVED - len(SPACE_SIGN)
    rare = {ord(character): _BOUNDARY for character, _ in counts.most_common()[room:]}
    return [chunk.decode().translate(rare).encode() for chunk in sample]


def _train(sample: list[bytes], settings: TokenizerSettings) -> bytes:
    spoiler, boundary = _SPOILER.encode(), _BOUNDARY.encode()
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(chunk.replace(spoiler, boundary) for chunk in sample),
        model_writer=model,
        model_type=settings.kind,
        vocab_size=settings.vocabulary,
        hard_vocab_limit=False,  # a small text yields a smaller vocabulary rather than an error
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        # Bytes spell the last 0.01 % (in 29,000 Chinese sentences, the characters seen once or twice): nothing is
        # lost, and no embedding is spent on what cannot be learnt.
        character_coverage=0.9999,
        required_chars=SPACE_SIGN,  # if it were spelt by bytes, a space would be decoded as ▁
        split_digits=True,  # any number can be copied digit by digit; none fills the vocabulary
        split_by_unicode_script=True,  # no piece mixes Chinese and Latin
        max_sentence_length=4 * _LONGEST_CHUNK,  # in bytes, so that no chunk is dropped
        train_extremely_large_corpus=settings.sample_bytes >= 2**30,  # beyond 32-bit places
        pad_id=PAD,
        unk_id=UNKNOWN,
        bos_id=BEGIN,
        eos_id=END,
        num_threads=1,  # the sums, and so the pieces, depend on their number; more were no faster
        minloglevel=3,
    )
    return model.getvalue()
