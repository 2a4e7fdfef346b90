"""Settings of the seq2seq task, and `TextOptions`: what the translation of one text must satisfy."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.settings import Range, raise_faults, shown, type_faults
from manyheads.tasks.task import TaskSettings
from manyheads.text.terms.glossary import FoundTerm, find_terms
from manyheads.text.tokens.words import is_blank

_LANGUAGE_CODE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*")


@dataclass(frozen=True, kw_only=True)
class Seq2SeqSettings(TaskSettings):
    """What the target is to the source, and the loss."""

    kind: Literal["seq2seq"] = "seq2seq"  # generate one text from another
    purpose: Literal["translation", "summary", "dialogue"] = "translation"  # summaries are also scored with ROUGE
    turns: str = " | "  # joins the turns of a dialogue, if a source is a list of them (JSONL, Parquet)
    source_language: str = ""  # language code of the source, such as "en"
    target_language: str = ""  # language code of the target; it selects the tokenizer of BLEU
    # ε of label smoothing; above 0.9 the correct token would be the least likely.
    smoothing: Annotated[float, Range(0, 0.9)] = 0.1
    # R-Drop's α: weight of the agreement of two passes with different dropout, such as 5; 0: one pass.
    consistency: Annotated[float, Range(0)] = 0.0
    # The step after which R-Drop starts; it doubles the cost of a step.
    consistency_after: Annotated[int, Range(0, 1_000_000_000)] = 0

    def __post_init__(self) -> None:
        faults = type_faults(self, "task.")
        if not faults:
            faults += [
                _(
                    'task.{name} = {code} should be a language code, like "en", "zh" or "pt-BR".',
                    name=name,
                    code=shown(code),
                )
                for name, code in (("source_language", self.source_language), ("target_language", self.target_language))
                if code and not _LANGUAGE_CODE.fullmatch(code)
            ]
        raise_faults(faults)

    @property
    def loss_terms(self) -> dict[str, float]:
        """What the loss contains beside the cross-entropy."""
        terms = {"label smoothing": self.smoothing, "R-Drop": self.consistency}
        return {name: weight for name, weight in terms.items() if weight}


_MAX_TERM = 1000  # characters
_SHOWN = 40  # characters of a term in a message


@dataclass(frozen=True)
class TextOptions:
    """What the translation of a text must satisfy.

    Where a source term of the glossary occurs in the text as whole words, the translation contains its target term,
    as often. What `keep` lists is repeated as it is in the text. The translation begins with `prefix`. Capitals do
    not matter for finding a term, unless it has one after its first character. In a text all in capitals, the target
    term is in capitals as well; elsewhere its first letter may be a capital, as at the start of a sentence.
    """

    glossary: Mapping[str, str] = field(default_factory=dict)  # source term: target term
    keep: Sequence[str] = ()
    prefix: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.glossary, Mapping):
            raise DataError(
                _("glossary is of type {type}. Give a table of source and target terms.", type=_type(self.glossary))
            )
        if isinstance(self.keep, str) or not isinstance(self.keep, Sequence):
            raise DataError(_("keep is of type {type}. Give a list of words.", type=_type(self.keep)))
        _check_text(self.prefix, "prefix")
        if self.prefix and is_blank(self.prefix):
            raise DataError(_("prefix has no text. Give the beginning of the translation, or leave it out."))
        for source, target in self.glossary.items():
            _check_term(source, _("A source term of the glossary"))
            _check_term(target, _("The target term of {term} in the glossary", term=_shown(source)))
        for word in self.keep:
            _check_term(word, _("A word of keep"))
        both = [word for word in self.keep if word in self.glossary]
        if both:
            raise DataError(
                _("{term} is in the glossary and in keep. Remove it from one of them.", term=_shown(both[0]))
            )

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to satisfy."""
        return not (self.glossary or self.keep or self.prefix)

    def find(self, text: str, *, ignore_case: bool = False) -> list[FoundTerm]:
        """Return where the terms of the glossary and the words to keep occur in a text."""
        return find_terms(text, (*self.glossary, *self.keep), ignore_case=ignore_case)


def options_per_text(options: TextOptions | Iterable[TextOptions] | None, n_texts: int) -> list[TextOptions] | None:
    """Return the options of each text, or None if all are empty; one `TextOptions` is for every text."""
    if options is None:
        return None
    chosen = [options] * n_texts if isinstance(options, TextOptions) else list(options)
    if len(chosen) != n_texts:
        raise DataError(
            _(
                "There are options for {n_options:,} texts, but {n_texts:,} texts. Give one for each.",
                n_options=len(chosen),
                n_texts=n_texts,
            )
        )
    for number, option in enumerate(chosen):
        if not isinstance(option, TextOptions):
            raise DataError(
                _("options[{number}] is of type {type}, not TextOptions.", number=number, type=_type(option))
            )
    return None if all(option.is_empty for option in chosen) else chosen


def _check_text(text: Any, name: str) -> None:
    if not isinstance(text, str):
        raise DataError(_("{name} is of type {type}, not a text.", name=name, type=_type(text)))
    if len(text) > _MAX_TERM:
        raise DataError(
            _(
                "{name} has {n_characters:,} characters; at most {most:,} are allowed.",
                name=name,
                n_characters=len(text),
                most=_MAX_TERM,
            )
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError(
            _("{name} contains half of a surrogate pair, which is no character. Remove it.", name=name)
        ) from None


def _check_term(text: Any, name: str) -> None:
    _check_text(text, name)
    if is_blank(text):
        raise DataError(_("{name} has no text. Give a word, or leave it out.", name=name))


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")


def _type(value: object) -> str:
    return type(value).__name__


NO_OPTIONS = TextOptions()
