"""Character classes: script, invisible, broken, full width or half width.

Tables over all of Unicode classify a million characters with one indexing operation.
"""

import unicodedata
from functools import cache

import numpy as np
from numpy.typing import NDArray

SCRIPTS = (
    "none",  # digits, punctuation, symbols
    "Latin",
    "Greek",
    "Cyrillic",
    "Hebrew",
    "Arabic",
    "Devanagari",
    "Thai",
    "Hangul",
    "Kana",
    "Han",
    "other",
)

# By the first part of a language code.
_SCRIPT_OF_LANGUAGE = {
    "zh": "Han", "yue": "Han", "ja": "Kana", "ko": "Hangul", "th": "Thai",
    "ru": "Cyrillic", "uk": "Cyrillic", "bg": "Cyrillic", "be": "Cyrillic", "mk": "Cyrillic", "mn": "Cyrillic",
    "kk": "Cyrillic", "ky": "Cyrillic", "tg": "Cyrillic", "ar": "Arabic", "fa": "Arabic", "ur": "Arabic",
    "ug": "Arabic", "ps": "Arabic", "he": "Hebrew", "yi": "Hebrew", "el": "Greek", "hi": "Devanagari",
    "mr": "Devanagari", "ne": "Devanagari",
}  # fmt: skip
_LATIN_LANGUAGES = {
    "en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "no", "nb", "nn", "fi", "et", "lv", "lt", "pl", "cs",
    "sk", "sl", "hr", "hu", "ro", "sq", "tr", "vi", "id", "ms", "tl", "sw", "af", "eu", "ca", "gl", "is", "ga",
    "cy", "mt", "eo", "la",
}  # fmt: skip

# Classes of characters, as bits.
(
    REPLACEMENT,
    CONTROL,
    ODD_SPACE,
    ZERO_WIDTH,
    JOINER,
    EMOJI,
    FULL_WIDTH_LETTER,
    FULL_WIDTH_PUNCTUATION,
    HALF_WIDTH_PUNCTUATION,
    NUL,
) = (1 << bit for bit in range(10))

_BLOCKS = {
    "Greek": ((0x370, 0x400), (0x1F00, 0x2000)),
    "Cyrillic": ((0x400, 0x530), (0x1C80, 0x1C90), (0x2DE0, 0x2E00), (0xA640, 0xA6A0)),
    "Hebrew": ((0x590, 0x600), (0xFB1D, 0xFB50)),
    "Arabic": ((0x600, 0x700), (0x750, 0x780), (0x8A0, 0x900), (0xFB50, 0xFE00), (0xFE70, 0xFEFF)),
    "Devanagari": ((0x900, 0x980),),
    "Thai": ((0xE00, 0xE80),),
    "Hangul": ((0x1100, 0x1200), (0x3130, 0x3190), (0xAC00, 0xD7B0)),
    "Kana": ((0x3040, 0x3100), (0x31F0, 0x3200), (0xFF66, 0xFFA0)),
    "Han": ((0x3400, 0x4DC0), (0x4E00, 0xA000), (0xF900, 0xFB00), (0x20000, 0x32000)),
    "Latin": ((0x41, 0x5B), (0x61, 0x7B), (0xC0, 0x250), (0x1E00, 0x1F00), (0xFF21, 0xFF3B), (0xFF41, 0xFF5B)),
}
_ZERO_WIDTH_CODES = (0xAD, 0x200B, 0x2060, 0xFEFF)
_ODD_SPACES = (0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F)
_BIDI_CONTROLS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))


def script_of_language(code: str) -> str | None:
    """Return the script of a language, or None if it is not known."""
    short = code.replace("_", "-").partition("-")[0].lower()
    return _SCRIPT_OF_LANGUAGE.get(short, "Latin" if short in _LATIN_LANGUAGES else None)


@cache
def script_table() -> NDArray[np.uint8]:
    """Return the index into SCRIPTS of every code point."""
    table = np.zeros(0x110000, np.uint8)
    # Letters of any other script; there are hardly any above Han.
    for code in range(0x250, 0x20000):
        if unicodedata.category(chr(code))[0] == "L":
            table[code] = SCRIPTS.index("other")
    for name, blocks in _BLOCKS.items():
        for start, end in blocks:
            table[start:end] = SCRIPTS.index(name)
    table[[0xD7, 0xF7]] = 0  # × and ÷ lie between Latin letters
    return table


@cache
def character_flags() -> NDArray[np.uint16]:
    """Return the class bits of every code point."""
    table = np.zeros(0x110000, np.uint16)
    table[0xFFFD] = REPLACEMENT
    table[0:0x20] = CONTROL
    table[0x7F:0xA0] = CONTROL
    table[0] |= NUL
    table[0x09] = 0  # a tab counts as a space
    table[list(_ZERO_WIDTH_CODES)] = ZERO_WIDTH
    table[list(_ODD_SPACES)] = ODD_SPACE
    table[list(_BIDI_CONTROLS)] = JOINER  # used in Arabic and Hebrew
    table[[0x200C, 0x200D, 0x200E, 0x200F]] = JOINER
    table[0x1F000:0x20000] = EMOJI
    table[0x2600:0x27C0] = EMOJI
    table[0xFF10:0xFF1A] = table[0xFF21:0xFF3B] = table[0xFF41:0xFF5B] = FULL_WIDTH_LETTER
    table[[ord(character) for character in "，？！：；"]] = FULL_WIDTH_PUNCTUATION
    table[[ord(character) for character in ",?!:;"]] = HALF_WIDTH_PUNCTUATION
    return table
