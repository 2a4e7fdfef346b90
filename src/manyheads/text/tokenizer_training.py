"""How a vocabulary is learnt: from lines of any number and length to the bytes of a SentencePiece model.

What SentencePiece would drop, choke on or abort over is put right here, before it sees the text.
"""

import io
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import sentencepiece

from manyheads.errors import DataError
from manyheads.settings import raise_faults, type_faults

PAD, UNK, BOS, EOS = 0, 1, 2, 3
METASPACE = "▁"  # how SentencePiece writes a space inside its tokens

_RESERVED = 4 + 256  # the special tokens and the bytes
_SMALLEST_VOCABULARY = 300
_SMALLEST_SAMPLE = 100_000
_LONGEST_CHUNK = 1000  # characters
_MOST_COPIES = 10
# SentencePiece silently drops every training line that holds its own stand-in for the unknown character.
_SPOILER = "▅"
# The trainer learns no token that holds NUL: it may stand for what is not to be learnt.
_BOUNDARY = "\0"
_CHINESE_CHARACTER = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")  # Chinese characters
_MODEL_TYPES = {"unigram": "unigram", "bpe": "bpe", "character": "char"}  # SentencePiece's names


@dataclass(frozen=True, kw_only=True)
class TokenizerSettings:
    """How a vocabulary is learnt.

    `sampling` splits training text differently each time it is seen. 0 is off. For unigram it is the alpha of
    sampling over all splits, customarily 0.1 (the nearer to 0, the wilder; 1 follows the learnt probabilities);
    for bpe it is the probability of leaving out a merge, customarily 0.1 (the nearer to 1, the wilder).
    Of characters every token is one, and no space is put before a text.
    """

    kind: Literal["unigram", "bpe", "character"] = "unigram"
    vocab_size: int = 8000  # tokens, with the 4 special ones and the 256 bytes; small texts yield fewer
    sampling: float = 0.0
    # Whether a token may hold several characters such as 字. Of words without spaces between them, joined ones are
    # fewer but cross the words' bounds (了那); apart, each character is seen for itself.
    chinese_characters: Literal["joined", "split"] = "joined"
    # Of more text than this, a random sample is learnt from. Unigram needs about 45 MB of memory and 3 s for each MB
    # of it: with 20 MB a run of any size went beyond a gigabyte.
    sample_bytes: int = 10_000_000

    def __post_init__(self) -> None:
        raise_faults(type_faults(self, "tokenizer.") or self._faults())

    def _faults(self) -> list[str]:
        least = {"vocab_size": _SMALLEST_VOCABULARY, "sample_bytes": _SMALLEST_SAMPLE}
        faults = [
            f"tokenizer.{name} = {getattr(self, name)} is too small. Use at least {smallest}."
            for name, smallest in least.items()
            if getattr(self, name) < smallest
        ]
        if not 0 <= self.sampling <= 1:
            faults.append(f"tokenizer.sampling = {self.sampling} is out of range. Use 0 (off) to 1.")
        elif self.sampling and self.kind == "character":
            faults.append(
                f'tokenizer.sampling = {self.sampling}: of tokenizer.kind = "character" there is one split. Use 0.'
            )
        return faults


def train_model(lines: Iterable[str], settings: TokenizerSettings, seed: int) -> bytes:
    """A SentencePiece model learnt from `lines`, which are read once: a pure function of its arguments."""
    if settings.chinese_characters == "split" and settings.kind != "character":
        lines = (_CHINESE_CHARACTER.sub(_BOUNDARY + r"\g<0>" + _BOUNDARY, line) for line in lines)
    sample = _sample(lines, settings.sample_bytes, random.Random(seed))
    if not any(chunk.strip() for chunk in sample):
        raise DataError("There is no text to learn a tokenizer from: every line is empty. Give some text.")
    if settings.kind == "character":  # its trainer says nothing where there is no room for the space
        return _train(_only_common_characters(sample, settings.vocab_size), settings)
    try:
        return _train(sample, settings)
    except RuntimeError as error:
        if "required_chars" not in str(error):
            raise
        return _train(_only_common_characters(sample, settings.vocab_size), settings)


def to_utf8(text: str, name: str) -> bytes:
    """The text as bytes; `name` is what an error calls it."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"{name} holds half a character (surrogate U+{ord(text[error.start]):04X} at character "
            f"{error.start + 1}), which UTF-8 cannot write. Read the text anew in its right encoding."
        ) from None


def _sample(lines: Iterable[str], most_bytes: int, rng: random.Random) -> list[bytes]:
    """The lines in chunks of a bounded length: all of them, or as many drawn evenly as `most_bytes` allows."""
    kept: list[tuple[float, bytes]] = []
    size, limit = 0, 1.0
    for number, line in enumerate(lines, start=1):
        utf8_chunks = [to_utf8(chunk, f"Line {number}") for chunk in _chunks(line)]
        for chunk in utf8_chunks:
            lot = rng.random()
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


def _only_common_characters(sample: list[bytes], vocab_size: int) -> list[bytes]:
    """The sample without its rarest characters, when there are more characters than the vocabulary has room for."""
    counts: Counter[str] = Counter()
    for chunk in sample:
        counts.update(chunk.decode())
    del counts[" "]
    room = vocab_size - _RESERVED - len(METASPACE)
    rare = {ord(character): _BOUNDARY for character, _ in counts.most_common()[room:]}
    return [chunk.decode().translate(rare).encode() for chunk in sample]


def _rows(sample: list[bytes]) -> Iterator[bytes]:
    """Each different chunk TAB how often it occurs, that number being shared out to a few rows far apart.

    One line 8,000 times in a row cost the unigram trainer 150 s, growing by the square. Each line only once would
    be fastest, but a string that occurs in one row only is never considered as a token.
    """
    boundary = _BOUNDARY.encode()
    counts = Counter(chunk.replace(_SPOILER.encode(), boundary).replace(b"\t", boundary) for chunk in sample)
    del counts[b""]
    for copy in range(_MOST_COPIES):
        for chunk, count in counts.items():
            share = (count + _MOST_COPIES - 1 - copy) // _MOST_COPIES
            if share:
                yield b"%b\t%d" % (chunk, share)


def _train(sample: list[bytes], settings: TokenizerSettings) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=_rows(sample),
        input_format="tsv",
        model_writer=model,
        model_type=_MODEL_TYPES[settings.kind],
        vocab_size=settings.vocab_size,
        hard_vocab_limit=False,  # a small text yields a smaller vocabulary rather than an error
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        # So that a word is one token wherever it stands; a character is one in any case.
        add_dummy_prefix=settings.kind != "character",
        # Bytes spell the last 0.01 % (in 29,000 Chinese sentences, the characters seen once or twice): nothing is
        # lost, and no embedding is spent on what cannot be learnt.
        character_coverage=0.9999,
        required_chars=METASPACE,  # if it were spelt by bytes, a space would be decoded as ▁
        split_digits=True,  # any number can be copied digit by digit; none fills the vocabulary
        split_by_unicode_script=True,  # no token mixes Chinese and Latin
        max_sentence_length=4 * _LONGEST_CHUNK,  # in bytes, so that no chunk is dropped
        train_extremely_large_corpus=settings.sample_bytes >= 2**30,  # beyond 32-bit places
        pad_id=PAD,
        unk_id=UNK,
        bos_id=BOS,
        eos_id=EOS,
        num_threads=1,  # the sums, and so the tokens, depend on their number; more were no faster
        minloglevel=3,
    )
    return model.getvalue()
