"""The reader of gold dependency trees in CoNLL-U: ten columns per word, blank lines between sentences.

Comments are ignored, except `# text =`, which holds the text of the sentence. The words of a multiword token (don't,
numbered 2-3) share its characters. Empty nodes (numbered 2.1) are ignored.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from manyheads.corpora.builtin import Relation, Rendering
from manyheads.errors import DataError
from manyheads.text.reading.files import check_readable, file_lines
from manyheads.text.suggestions import shortened

_COLUMNS = 10
_TEXT = "# text ="
_LONGEST_SENTENCE = 100_000  # words
_NO_SPACE = "SpaceAfter=No"
_IGNORED_RELATIONS = ("root", "punct")


def read_trees(path: Path | str) -> Iterator[Rendering]:
    """Yield every sentence of a file: its text, its words with their spans, and the relation of each word to its head.

    Subtypes of relations are dropped: `nsubj:pass` becomes `nsubj`. The relations `root` and `punct` are left out.
    """
    path = Path(path)
    check_readable(path)
    return _sentences(path)


def _sentences(path: Path) -> Iterator[Rendering]:
    sentence = _Sentence(path)
    is_empty = True
    for number, line in enumerate(chain(file_lines(path, None), [""]), start=1):
        if line.strip():
            sentence.add(number, line)
        elif sentence.words:
            is_empty = False
            yield sentence.rendering()
            sentence = _Sentence(path)
        else:
            sentence = _Sentence(path)
    if is_empty:
        raise DataError(f"{path} has no sentence. Give a CoNLL-U file: ten columns per word, separated by tabs.")


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) < 10  # Python refuses to convert thousands of digits


class _Sentence:
    """Collects the lines of one sentence."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = ""
        self.words: list[str] = []
        self.heads: list[tuple[int, int, str]] = []  # line number, number of the head, relation
        self.forms: list[tuple[str, int, bool]] = []  # surface form, its number of words, whether a space follows
        self.covered = 0  # the last word of the latest multiword token

    def add(self, number: int, line: str) -> None:
        if line.startswith("#"):
            if line.startswith(_TEXT):
                self.text = line.removeprefix(_TEXT).strip()
            return
        where = f"{self.path}, line {number}"
        cells = line.rstrip("\r").split("\t")
        if len(cells) != _COLUMNS:
            raise DataError(
                f"{where}: the number of columns is {len(cells)}, but CoNLL-U has {_COLUMNS}, separated by tabs."
            )
        name, form = cells[0], cells[1]
        is_spaced = _NO_SPACE not in cells[9].split("|")
        first, dash, last = name.partition("-")
        if "." in name:
            return
        if len(self.words) == _LONGEST_SENTENCE:
            raise DataError(
                f"{where}: the sentence has more than {_LONGEST_SENTENCE:,} words. Put a blank line between sentences."
            )
        if dash and _is_number(first) and _is_number(last) and int(first) == len(self.words) + 1 <= int(last):
            self.forms.append((form, int(last) - int(first) + 1, is_spaced))
            self.covered = int(last)
            return
        if name != str(len(self.words) + 1):
            raise DataError(f'{where}: the word is numbered "{shortened(name)}", but should be {len(self.words) + 1}.')
        if not _is_number(cells[6]):
            raise DataError(f'{where}: the head is "{shortened(cells[6])}", but should be the number of a word, or 0.')
        self.words.append(form)
        self.heads.append((number, int(cells[6]), cells[7].partition(":")[0]))
        if len(self.words) > self.covered:
            self.forms.append((form, 1, is_spaced))

    def rendering(self) -> Rendering:
        if self.covered > len(self.words):
            raise DataError(
                f"{self.path}, line {self.heads[-1][0]}: the sentence has {len(self.words)} words, but a multiword "
                f"token ends at word {self.covered}."
            )
        relations = []
        for word, (number, head, kind) in enumerate(self.heads):
            if head > len(self.words):
                raise DataError(
                    f"{self.path}, line {number}: the head is {head}, but the sentence has {len(self.words)} words."
                )
            if head and kind not in _IGNORED_RELATIONS:
                relations.append(Relation(kind, word, head - 1))
        text = self.text or "".join(form + " " * is_spaced for form, _, is_spaced in self.forms).strip()
        return Rendering(text, tuple(self.words), tuple(self._spans(text)), tuple(relations))

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the span of each word in the text."""
        end = word = 0
        for form, n_words, _ in self.forms:
            start = text.find(form, end)
            if start < 0 or text[end:start].strip():
                raise DataError(
                    f'{self.path}, line {self.heads[word][0]}: "{shortened(form)}" is not at the expected '
                    f'position in the text of the sentence, "{shortened(text)}".'
                )
            end = start + len(form)
            parts = self.words[word : word + n_words]
            if "".join(parts) != form:  # French "du" is "de" and "le": both get the whole span
                yield from [(start, end)] * n_words
            else:
                for part in parts:
                    yield start, start + len(part)
                    start += len(part)
            word += n_words
