"""Tokens of HTML: everything that comes from a log or a recipe passes through `text`."""

import math
from difflib import SequenceMatcher
from html import escape

from manyheads.report.page_text import display_name

_FEW_SPACES = 1 / 15  # words are longer than that in no language that writes spaces
_LONG = 600  # characters of a sentence that are compared


def text(value: object) -> str:
    """Somebody's text, harmless in a page."""
    return escape(str(value))


def both(english: str, chinese: str) -> str:
    """HTML in two languages, of which the page shows one."""
    return f'<span class="en" lang="en">{english}</span><span class="zh" lang="zh">{chinese}</span>'


def titled(name: object) -> str:
    """A name of the log in two languages; once, if it is the same in both."""
    english, chinese = map(text, display_name(str(name)))
    return english if english == chinese else both(english, chinese)


def sentence(value: str, kind: str) -> str:
    """A sentence of the user's, in whichever direction it is written."""
    return f'<p class="{kind}" dir="auto">{text(value) or "&nbsp;"}</p>'


def compared(translation: str, reference: str) -> str:
    """A translation in which what the reference does not have is marked."""
    ours, theirs = (_words(one[:_LONG]) for one in (translation, reference))
    parts, at = [], 0
    matcher = SequenceMatcher(None, [one.strip() for one in ours], [one.strip() for one in theirs], autojunk=False)
    for block in matcher.get_matching_blocks():
        other = "".join(ours[at : block.a])
        marked = other.rstrip()
        parts.append((f"<i>{text(marked)}</i>" if marked else "") + other[len(marked) :])
        parts.append(text("".join(ours[block.a : block.a + block.size])))
        at = block.a + block.size
    return f'<p class="translation" dir="auto">{"".join(parts)}{text(translation[_LONG:])}</p>'


def figure(value: float, digits: int = 1) -> str:
    """A number to read: with thousands set apart; a dash if it is none."""
    if not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) >= 1000 else f"{value:,.{digits}f}"


def duration(seconds: float) -> tuple[str, str]:
    """A span of time, in English and in Chinese; a dash if it is not known."""
    if not math.isfinite(seconds):
        return "–", "–"
    if seconds < 90:
        return f"{seconds:.0f} s", f"{seconds:.0f} 秒"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min", f"{minutes} 分钟"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min", f"{hours} 小时 {minutes:02d} 分"


def _words(sentence: str) -> list[str]:
    """Words, each with the space after it; single characters of a language that writes no spaces."""
    if not sentence.isascii() and sentence.strip().count(" ") < len(sentence) * _FEW_SPACES:
        return list(sentence)
    return [word + " " for word in sentence.split(" ")[:-1]] + sentence.split(" ")[-1:]
