"""Tokenizer training: from any number of lines of any length to the bytes of a SentencePiece model.

This module preprocesses text that SentencePiece would drop silently, process slowly or abort on.
"""

import io
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import sentencepiece

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.settings import Range, raise_faults, type_faults
from manyheads.text.markup.copyable_spans import placeholder_symbols, without_copyable_spans

PAD, UNK, BOS, EOS = 0, 1, 2, 3
METASPACE = "▁"  # represents a space in SentencePiece tokens

_N_RESERVED = 4 + 256  # special tokens and byte tokens
_MAX_CHUNK_LENGTH = 1000  # characters
_MAX_SIZE_OF_LINES = 4_000_000  # bytes; the trainer gets the words of a larger sample
# SentencePiece silently drops every training line that contains its placeholder for unknown characters.
_UNKNOWN_PLACEHOLDER = "▅"
# The trainer learns no token that contains NUL, so NUL separates and replaces text that must not be learned.
_BOUNDARY = "\0"
_CHINESE_CHARACTER = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
LOWERCASE = "<lowercase>"  # a control symbol that marks a tokenizer which folds case
_MODEL_TYPES = {"unigram": "unigram", "bpe": "bpe", "character": "char"}  # SentencePiece's names

MIN_VOCAB_SIZE = 300  # bytes and special tokens, and some more


@dataclass(frozen=True, kw_only=True)
class TokenizerSettings:
    """The settings of the tokenizer.

    `sampling` is the strength of subword sampling during training: each time a text is seen, it is split at random.
    0 disables it. For unigram it is the alpha of the distribution over all splits, typically 0.1; values near 0 vary
    most, and 1 follows the learned probabilities. For bpe it is the dropout probability of a merge, typically 0.1;
    values near 1 vary most. With kind = "character", every token is one character, and no space is added before a text.
    """

    # How tokens are learned: a unigram language model, byte-pair encoding, or one token per character.
    kind: Literal["unigram", "bpe", "character"] = "unigram"
    # Number of tokens, including 4 special tokens and 256 byte tokens; small texts yield fewer.
    vocab_size: Annotated[int, Range(MIN_VOCAB_SIZE, 1_000_000)] = 8000
    # Strength of subword sampling during training, typically 0.1; 0: none.
    sampling: Annotated[float, Range(0, 1)] = 0.0
    # Whether a token may contain several Chinese characters. Since words are not separated by spaces, "joined" gives
    # fewer tokens, some of which cross word boundaries (了那); "split" makes each character its own token.
    chinese_characters: Literal["joined", "split"] = "joined"
    # Fold case and width before splitting ("Ａ" and "A" become "a"): labels rarely depend on them. Text that a model
    # generates would be folded as well.
    lowercase: bool = False
    # Number of placeholder tokens, such as 16. Where source and target of a pair both contain a piece of code, markup,
    # a URL or the like, a placeholder stands for it, which the model learns to copy; seq2seq only. 0: none.
    placeholders: Annotated[int, Range(0, 100)] = 0
    # Train on a random sample if there is more text than this. 10 MB of English and Chinese took unigram 250 MB of
    # memory and 35 s; text without spaces takes most.
    sample_bytes: Annotated[int, Range(100_000, 1_000_000_000)] = 10_000_000

    def __post_init__(self) -> None:
        raise_faults(type_faults(self, "tokenizer.") or self._faults())

    def _faults(self) -> list[str]:
        if self.sampling and self.kind == "character":
            return [
                _(
                    'tokenizer.sampling = {sampling} has no effect with tokenizer.kind = "character". Use 0.',
                    sampling=self.sampling,
                )
            ]
        return []


def train_sentencepiece(lines: Iterable[str], settings: TokenizerSettings, seed: int) -> bytes:
    """Train a SentencePiece model on `lines`, which are read once; equal arguments give identical bytes."""
    if settings.lowercase:
        lines = map(fold, lines)
    if settings.placeholders:
        lines = (without_copyable_spans(line, _BOUNDARY) for line in lines)
    if settings.chinese_characters == "split" and settings.kind != "character":
        lines = (_CHINESE_CHARACTER.sub(_BOUNDARY + r"\g<0>" + _BOUNDARY, line) for line in lines)
    sample = _sample(lines, settings.sample_bytes, random.Random(seed))
    if not any(chunk.strip() for chunk in sample):
        raise DataError(_("There is no text to train a tokenizer on: every line is empty. Add some text."))
    if settings.kind == "character":  # its trainer gives no error if the vocabulary is too small for the space
        return _train(_without_rare_characters(sample, settings.vocab_size - settings.placeholders), settings)
    try:
        return _train(sample, settings)
    except RuntimeError as error:
        if "required_chars" not in str(error):
            raise
        return _train(_without_rare_characters(sample, settings.vocab_size - settings.placeholders), settings)


class _Folding(dict[int, str]):
    """The folded form of each character: NFKC and lower case, as far as it is one character, too."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        for form in (unicodedata.normalize("NFKC", character).lower(), character.lower()):
            if len(form) == 1:
                character = form
                break
        self[code] = character
        return character


_FOLDING = _Folding()


def fold(text: str) -> str:
    """Fold the case and the width of each character; the length of the text does not change."""
    return text.translate(_FOLDING)


def to_utf8(text: str, name: str) -> bytes:
    """Encode a text as UTF-8; the error for text that cannot be encoded refers to it as `name`."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            _(
                "{name} contains an unpaired surrogate (U+{code:04X} at character {position}), which cannot be encoded "
                "as UTF-8. Read the text again with the right encoding.",
                name=name,
                code=ord(text[error.start]),
                position=error.start + 1,
            )
        ) from None


def _sample(lines: Iterable[str], max_bytes: int, rng: random.Random) -> list[bytes]:
    """Split lines into chunks of bounded length and return all of them, or a uniform sample of `max_bytes`."""
    kept: list[tuple[float, bytes]] = []
    size, limit = 0, 1.0
    for number, line in enumerate(lines, start=1):
        utf8_chunks = [to_utf8(chunk, f"Line {number}") for chunk in _chunks(line)]
        for chunk in utf8_chunks:
            draw = rng.random()
            if draw >= limit:
                continue
            kept.append((draw, chunk))
            size += len(chunk)
            while size > max_bytes:
                # Every chunk, already read or still to come, is kept with the same probability, `limit`.
                limit *= 0.9
                kept = [(draw, chunk) for draw, chunk in kept if draw < limit]
                size = sum(len(chunk) for _, chunk in kept)
    return [chunk for _, chunk in kept]


def _chunks(line: str) -> Iterator[str]:
    """Split a long line into chunks, at spaces if possible.

    SentencePiece silently drops training lines that are too long. If its limit is raised, a bpe word of more than
    65,535 characters (such as a long line of Chinese) aborts the process.
    """
    start = 0
    while len(line) - start > _MAX_CHUNK_LENGTH:
        cut = line.rfind(" ", start + 1, start + _MAX_CHUNK_LENGTH)
        cut = cut if cut > 0 else start + _MAX_CHUNK_LENGTH
        yield line[start:cut]
        start = cut + 1 if line[cut] == " " else cut  # the trainer adds a space before each chunk
    yield line[start:]


def _without_rare_characters(sample: list[bytes], vocab_size: int) -> list[bytes]:
    """Remove the rarest characters from the sample if there are more characters than the vocabulary can hold."""
    counts: Counter[str] = Counter()
    for chunk in sample:
        counts.update(chunk.decode())
    del counts[" "]
    n_characters = vocab_size - _N_RESERVED - len(METASPACE)
    rare = {ord(character): _BOUNDARY for character, _ in counts.most_common()[n_characters:]}
    return [chunk.decode().translate(rare).encode() for chunk in sample]


def _rows(sample: list[bytes], kind: str) -> Iterator[bytes]:
    """Yield "text TAB count" rows: each distinct text several times, its count divided among distant rows.

    The texts are chunks, and the words of a large sample: the unigram trainer looks for tokens in all of the text that
    it gets, although no token contains a space in its middle. With 10 MB of Wikipedia's articles, words took 7 s
    and 240 MB, chunks 154 s and 457 MB, and a text has as many tokens with either.

    The time of that trainer is quadratic in repeated text: 8,000 copies of a line in a row took 150 s, and ten copies
    of the same words in the same order 226 s. A single row per text would be fastest, but the trainer never makes a
    token of a string that occurs in one row only, and prefers those in many: with 2 copies of a word, texts had 5 %
    more tokens.
    """
    boundary, unknown = _BOUNDARY.encode(), _UNKNOWN_PLACEHOLDER.encode()
    counts: Counter[bytes] = Counter()
    is_large = kind != "character" and sum(map(len, sample)) > _MAX_SIZE_OF_LINES
    for chunk in sample:
        text = chunk.replace(unknown, boundary).replace(b"\t", boundary)
        counts.update(text.split(b" ") if is_large else [text])
    del counts[b""]
    max_copies, rng, rows = (40 if is_large else 10), random.Random(0), list(counts.items())
    for copy in range(max_copies):
        if is_large:
            rng.shuffle(rows)
        for text, count in rows:
            share = (count + max_copies - 1 - copy) // max_copies
            if share:
                yield b"%b\t%d" % (text, share)


def _train(sample: list[bytes], settings: TokenizerSettings) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=_rows(sample, settings.kind),
        input_format="tsv",
        model_writer=model,
        model_type=_MODEL_TYPES[settings.kind],
        vocab_size=settings.vocab_size,
        hard_vocab_limit=False,  # a small text yields a smaller vocabulary rather than an error
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        # A word at the start of a text gets the same token as elsewhere; character tokens do not need this.
        add_dummy_prefix=settings.kind != "character",
        # Byte tokens encode the rarest 0.01 % of characters (those seen once or twice in 29,000 Chinese sentences).
        # Nothing is lost, and no embedding is spent on characters too rare to learn.
        character_coverage=0.9999,
        control_symbols=[LOWERCASE] if settings.lowercase else [],
        required_chars=METASPACE,  # encoded as bytes, a space would be decoded as ▁
        split_digits=True,  # numbers are copied digit by digit and do not fill the vocabulary
        split_by_unicode_script=True,  # no token mixes Chinese and Latin
        max_sentence_length=4 * _MAX_CHUNK_LENGTH,  # in bytes, so that no chunk is dropped
        train_extremely_large_corpus=settings.sample_bytes >= 2**30,  # beyond 32-bit positions
        user_defined_symbols=placeholder_symbols(settings.placeholders),
        pad_id=PAD,
        unk_id=UNK,
        bos_id=BOS,
        eos_id=EOS,
        num_threads=1,  # sums, and so tokens, depend on the number of threads; more were no faster
        minloglevel=3,
    )
    return model.getvalue()
