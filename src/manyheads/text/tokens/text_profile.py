"""`TextProfile`: what training texts looked like, so that other texts can be written alike before a model reads them.

It holds how often variants of a character were seen (spaces, quotation marks, full-width letters), how many sentences
a text had, whether texts in capitals occurred, and which words are written with a capital inside a sentence.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from manyheads.messages import _
from manyheads.text.tokens.sentence_splitting import split_sentences

_RARE = 20  # a variant that is this many times rarer than another was hardly learned
_MIN_SENTENCES_SHARE = 0.05  # of texts with as many sentences: the model has learned to read so many
_MAX_UPPER_SHARE = 0.01
_MAX_CAPITALIZED = 10_000  # words

_FULL_WIDTH = "Ａ"  # stands for all full-width letters and digits
_DECOMPOSED = "e\u0301"  # stands for all text that is not in Unicode's form NFC
_RUN = "  "
_SPACES = "\t\u00a0\u2002\u2003\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_INVISIBLE = "\u00ad\u200b\u2060\ufeff"
_DOUBLE_QUOTES = "“”„‟＂"
_SINGLE_QUOTES = "‘’‚‛＇"
_WATCHED = frozenset(f" {_SPACES}{_INVISIBLE}\"{_DOUBLE_QUOTES}'{_SINGLE_QUOTES}")
_FULL_WIDTH_TABLE = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F) if chr(code - 0xFEE0).isalnum()}
_IS_FULL_WIDTH = re.compile("[０-９Ａ-Ｚａ-ｚ]")
_RUNS = re.compile(" {2,}")
_WORDS = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


@dataclass(frozen=True)
class TextProfile:
    """The statistics of training texts."""

    n_texts: int
    variants: Mapping[str, int] = field(default_factory=dict)  # in how many texts each watched character occurred
    n_upper: int = 0  # texts all in capitals
    max_sentences: int = 1  # so many are common in one text
    capitalized: tuple[str, ...] = ()  # words that usually have a capital inside a sentence

    @classmethod
    def of(cls, texts: Iterable[str], language: str = "") -> "TextProfile":
        """Examine texts."""
        variants: Counter[str] = Counter()
        forms: Counter[str] = Counter()
        sentences: Counter[int] = Counter()
        n_upper = n_texts = 0
        for text in texts:
            n_texts += 1
            variants.update(_WATCHED.intersection(text))
            variants[_RUN] += _RUN in text
            variants[_FULL_WIDTH] += _IS_FULL_WIDTH.search(text) is not None
            variants[_DECOMPOSED] += not unicodedata.is_normalized("NFC", text)
            spans = split_sentences(text, language)
            sentences[len(spans)] += 1
            if is_upper(text):
                n_upper += 1
                continue
            for start, end in spans:
                forms.update(_WORDS.findall(text[start:end])[1:])
        return cls(
            n_texts,
            {name: count for name, count in sorted(variants.items()) if count},
            n_upper,
            _common_most(sentences, n_texts),
            _capitalized(forms),
        )

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> "TextProfile":
        """Make the profile that returned this `to_table`; TypeError or ValueError for any other content."""
        variants, capitalized = dict(table["variants"]), table["capitalized"]
        numbers = [table["n_texts"], table["n_upper"], table["max_sentences"], *variants.values()]
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise ValueError(_("text_profile has a number that is not a count."))
        if not isinstance(capitalized, list) or not all(isinstance(word, str) and word for word in capitalized):
            raise TypeError(_("text_profile.capitalized is not a list of words."))
        return cls(table["n_texts"], variants, table["n_upper"], max(1, table["max_sentences"]), tuple(capitalized))

    def to_table(self) -> dict[str, Any]:
        """Return the profile as JSON values."""
        return {
            "n_texts": self.n_texts,
            "variants": dict(self.variants),
            "n_upper": self.n_upper,
            "max_sentences": self.max_sentences,
            "capitalized": list(self.capitalized),
        }

    def normalize(self, text: str) -> str:
        """Return a text with each variant that was hardly seen replaced by the one that was."""
        if not unicodedata.is_normalized("NFC", text) and self._is_rare(_DECOMPOSED, self.n_texts):
            text = unicodedata.normalize("NFC", text)
        text = text.translate(self._replacements)
        if '"' in text and self._opening_quote:
            text = _directed(text, '"', *self._opening_quote)
        if "'" in text and self._is_rare("'", self.variants.get("’", 0)):
            text = _directed(text, "'", "‘" if "‘" in self.variants else "’", "’")
        if _RUN in text and self._is_rare(_RUN, self.variants.get(" ", 0)):
            text = _RUNS.sub(" ", text)
        return text.strip()

    def needs_lower(self, text: str) -> bool:
        """Return whether a text is all in capitals, which the model has hardly learned to read."""
        return self.n_upper <= _MAX_UPPER_SHARE * self.n_texts and is_upper(text)

    def sentence_case(self, text: str) -> str:
        """Return a text in capitals as it would be written in sentences."""
        parts, position = [], 0
        for start, end in split_sentences(text):
            parts += [text[position:start], self._sentence(text[start:end])]
            position = end
        return "".join([*parts, text[position:]])

    def _sentence(self, text: str) -> str:
        lower = _WORDS.sub(lambda match: self._forms.get(match[0].lower(), match[0].lower()), text)
        first = _WORDS.search(lower)
        if first is None:
            return lower
        return lower[: first.start()] + lower[first.start()].upper() + lower[first.start() + 1 :]

    @cached_property
    def _forms(self) -> dict[str, str]:
        return {word.lower(): word for word in self.capitalized}

    @cached_property
    def _replacements(self) -> dict[int, str]:
        """What replaces each character, for `str.translate`."""
        spaces = self.variants.get(" ", 0)
        table = {ord(space): " " for space in _SPACES if self._is_rare(space, spaces)}
        table |= {ord(character): "" for character in _INVISIBLE if self._is_rare(character, self.n_texts)}
        if self._is_rare(_FULL_WIDTH, self.n_texts):
            table |= _FULL_WIDTH_TABLE
        for straight, curly in (('"', _DOUBLE_QUOTES), ("'", _SINGLE_QUOTES)):
            most = self.variants.get(straight, 0)
            table |= {ord(quote): straight for quote in curly if self._is_rare(quote, most)}
        return table

    @cached_property
    def _opening_quote(self) -> str:
        """The opening and the closing quotation mark if straight ones were hardly seen, otherwise nothing."""
        low, left, right = (self.variants.get(quote, 0) for quote in "„“”")
        if not self._is_rare('"', max(left, right)):
            return ""
        return "„“" if _RARE * right < low else "“”"

    def _is_rare(self, variant: str, n_others: int) -> bool:
        return _RARE * self.variants.get(variant, 0) < n_others


def is_upper(text: str) -> bool:
    """Return whether a text has two or more words and is all in capitals; a single word may be an abbreviation."""
    if not text.isupper():
        return False
    words = [word for word in _WORDS.findall(text) if len(word) > 1]
    return len(words) > 1 or (len(words) == 1 and len(_WORDS.findall(text)) > 1 and len(words[0]) > 3)


def _directed(text: str, straight: str, opening: str, closing: str) -> str:
    """Replace straight quotation marks by opening ones at the start of a word, by closing ones elsewhere."""
    return re.sub(rf"(?<![^\s(\[{{]){straight}(?=\S)", opening, text).replace(straight, closing)


def _common_most(counts: Mapping[int, int], n_texts: int) -> int:
    """The largest number of sentences that at least one text in twenty has."""
    n_as_many = 0
    for number in sorted(counts, reverse=True):
        n_as_many += counts[number]
        if n_as_many >= _MIN_SENTENCES_SHARE * n_texts:
            return max(1, number)
    return 1


def _capitalized(forms: Mapping[str, int]) -> tuple[str, ...]:
    """The most frequent words whose usual form has a capital."""
    best: dict[str, str] = {}
    for form in sorted(forms, key=lambda form: (-forms[form], form)):
        best.setdefault(form.lower(), form)
    words = [form for lower, form in best.items() if form != lower and (forms[form] > 1 or not form.isupper())]
    return tuple(sorted(words[:_MAX_CAPITALIZED]))
