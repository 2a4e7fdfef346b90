"""Languages as file names, column names and scripts show them."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

_ALL_CODES = (
    "aa ab af ak am an ar as az ba be bg bn bo br bs ca ceb co cs cy da de dz ee el en eo es et eu fa fi fj fo fr fy "
    "ga gd gl gn gu ha he hi hr ht hu hy ia id ig is it ja jv ka kk km kn ko ku ky la lb lg ln lo lt lv mg mi mk ml mn "
    "mr ms mt my nb ne nl nn no ny oc om or pa pl ps pt qu rm rn ro ru rw sa sd se sg si sk sl sm sn so sq sr ss st su "
    "sv sw ta te tg th ti tk tl tn to tr ts tt tw ug uk ur uz vi vo wa wo xh yi yo yue zh zu"
)
_CODES = frozenset(_ALL_CODES.split(" "))
_REGION = re.compile(r"[-_](?:[A-Z]{2}|[A-Z][a-z]{3})$")  # zh-CN, zh_Hans
_COMPRESSED = (".gz", ".zst")
# Scripts that identify a language, or nearly so.
_SCRIPTS = {"ja": "\u3040-\u30ff", "ko": "\uac00-\ud7a3", "zh": "\u4e00-\u9fff", "th": "\u0e01-\u0e5b"}
_SCRIPTS |= {"el": "\u0370-\u03ff", "he": "\u0590-\u05ff", "ka": "\u10a0-\u10ff", "hy": "\u0530-\u058f"}
_HAN = ("zh", "yue", "ja")  # languages that can be written in Chinese characters alone
_FEW_WORDS = 3
# Minimum share of letters in the script: Chinese text contains English words, and Japanese text mixes kanji with kana.
_MIN_SHARE = 0.1


def is_language(code: str) -> bool:
    """Whether a string is a language code, with or without a region."""
    return _REGION.sub("", code) in _CODES


def base_of(language: str) -> str:
    """The language code without its region: zh-CN → zh."""
    return language.replace("_", "-").partition("-")[0].lower()


def language_of_text(text: str) -> str:
    """The language whose script a text is written in; "" if several languages share the script."""
    n_letters = sum(map(str.isalpha, text))
    for language, letters in _SCRIPTS.items():
        if n_letters and len(re.findall(f"[{letters}]", text)) > _MIN_SHARE * n_letters:
            return language
    return ""


def is_in_script_of(text: str, language: str) -> bool:
    """Whether a text may be written in this language by its script.

    Names and codes in Latin letters occur in every language: only a text of several words is told by them.
    """
    found = language_of_text(text)
    if found == language or (found == "zh" and language in _HAN):
        return True
    if language in _SCRIPTS:
        return not found and sum(any(map(str.isalpha, word)) for word in text.split()) < _FEW_WORDS
    n_found = len(re.findall(f"[{_SCRIPTS[found]}]", text)) if found else 0
    return n_found <= sum(map(str.isalpha, text)) / 2


def language_of_suffix(path: Path) -> str:
    """The language that a file name ends in: train.lc.norm.tok.de → de; train.de.txt → de; de.txt → de."""
    parts = [part for part in _uncompressed(path).name.split(".") if part.lower() not in ("txt", "text")]
    return parts[-1].replace("_", "-") if is_language(parts[-1]) else ""


def languages_of_names(files: Sequence[Path]) -> tuple[str, str]:
    """Source and target language from file names: a.en + a.de, or news.en-de.tsv; "" if the names do not show them."""
    if len(files) == 2:
        source, target = (language_of_suffix(path) for path in files)
        return (source, target) if source and target and source != target else ("", "")
    return direction_of_name(_uncompressed(files[0]).stem)


def direction_of_name(name: str) -> tuple[str, str]:
    """The language pair in a name: news.en-de → en, de; multi30k-en-de → en, de; "" if there is none, or several."""
    words: Iterable[tuple[str, str]] = re.findall(r"(?<![A-Za-z])(?=([a-z]{2,3})[-_]([a-z]{2,3})(?![A-Za-z]))", name)
    pairs = Counter(pair for pair in words if pair[0] != pair[1] and {*pair} <= _CODES)
    return next(iter(pairs)) if len(pairs) == 1 else ("", "")


def _uncompressed(path: Path) -> Path:
    return path.with_suffix("") if path.suffix.lower() in _COMPRESSED else path
