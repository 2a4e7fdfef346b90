"""`MarkupTranslator`: translations of HTML with its tags in place, by the word alignment of the model's own heads.

The result for a text does not depend on the other texts: alignment heads are chosen on the bundle's held-out data,
never on the texts to translate. Without that data, every text is aligned by occlusion.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings
from manyheads.errors import BundleError
from manyheads.lens.aligner import Aligner, OcclusionAligner, aligner_of
from manyheads.messages import _
from manyheads.settings import build, to_table
from manyheads.tasks import TextOptions, Translations, one_line
from manyheads.text.markup.html_segments import split_markup
from manyheads.text.markup.inline_segments import Markup


@dataclass(frozen=True)
class MarkupTranslation:
    """The translation of an HTML text; its segments are in the order of the text."""

    answer: str
    segments: Sequence[str]  # the plain texts
    translations: Sequence[Translations]  # of the segments

    @property
    def abstained(self) -> bool:
        """Whether the confidence of a segment is below `DecodeSettings.abstain`, so that there is no answer."""
        return any(one.abstained for one in self.translations)

    @property
    def warnings(self) -> list[str]:
        """The warnings of all segments, each once."""
        return list(dict.fromkeys(warning for one in self.translations for warning in one.warnings))

    @property
    def missing(self) -> list[str]:
        """What the translations of segments should repeat and do not."""
        return list(dict.fromkeys(span for one in self.translations for span in one.missing))

    @property
    def confidence(self) -> float | None:
        """The lowest confidence of a segment; None if it is unknown."""
        return min((one.confidence for one in self.translations if one.confidence is not None), default=None)

    @property
    def is_low_confidence(self) -> bool:
        """Whether nearly all translations of the validation set had a higher log-probability than some segment."""
        return any(one.is_low_confidence for one in self.translations)

    @property
    def n_cut_off(self) -> int:
        """The number of segments whose translation reached the maximum length."""
        return sum(not one.candidates[0].finished for one in self.translations)

    def line(self) -> str:
        """The answer as one line."""
        return one_line(self.answer)

    def cells(self) -> dict[str, str | float | None]:
        """The answer and its confidence."""
        return {"answer": self.answer, "confidence": self.confidence}

    def fields(self) -> dict[str, Any]:
        """The translation as JSON values."""
        return {
            "segments": [
                {"source": source, "answer": one.answer, "confidence": one.confidence}
                for source, one in zip(self.segments, self.translations, strict=True)
            ],
            "warnings": self.warnings,
            "missing": self.missing,
            "confidence": self.confidence,
            "abstained": self.abstained,
        }


@dataclass(frozen=True)
class MarkupTranslator:
    """Translates HTML with a translation bundle.

    A server that batches texts calls `split`, translates the `texts` of the result like any others, and calls `join`.
    """

    bundle: Bundle

    def __post_init__(self) -> None:
        task = self.bundle.task
        if not getattr(task, "is_translation", False):
            given = _("task {kind}", kind=self.bundle.kind)
            if purpose := getattr(task.settings, "purpose", ""):
                given = _("task {kind} with the purpose {purpose}", kind=self.bundle.kind, purpose=purpose)
            raise BundleError(
                _("The format html needs a translation bundle; this is a bundle of {given}. Use text.", given=given)
            )

    @cached_property
    def aligner(self) -> Aligner | OcclusionAligner:
        """What aligns words; chosen when it is first needed, always the same for a bundle."""
        return aligner_of(self.bundle)

    @property
    def uses_placeholders(self) -> bool:
        """Whether the model has learned to copy placeholders such as ⟦1⟧."""
        return bool(self.bundle.task.tokenizer.placeholders.symbols)

    def split(self, html: str) -> Markup:
        """Return the segments of an HTML text."""
        return split_markup(html, use_placeholders=self.uses_placeholders)

    def join(self, markup: Markup, translations: Sequence[Translations]) -> MarkupTranslation:
        """Return the translation of an HTML text from those of its segments."""
        answers = [one.answer for one in translations]
        links = [
            self.aligner.align([segment.text], [one.answer], [one.parts])[0] if segment.needs_alignment else []
            for segment, one in zip(markup.segments, translations, strict=True)
        ]
        answer = "" if any(one.abstained for one in translations) else markup.join(answers, links)
        return MarkupTranslation(answer, markup.texts, translations)

    def translate(
        self, texts: Iterable[str], *, first: int | None = 0, options: TextOptions | None = None, **changes: Any
    ) -> list[MarkupTranslation]:
        """Return the translation of each HTML text; `changes` override decoding settings.

        A glossary and words to keep apply to every segment, a prefix to the first. Samples are drawn by a text's index
        plus `first`, and by the segment's index in the text; if `first` is None, by the segment's index alone.
        """
        settings = build(DecodeSettings, to_table(self.bundle.decode) | changes | {"n_best": 1}, "decode.")
        markups = [self.split(text) for text in texts]
        if settings.method == "sample":
            streams = [0 if first is None else first + number for number in range(len(markups))]
            own = [
                self._predict([markup], settings, stream, options)
                for stream, markup in zip(streams, markups, strict=True)
            ]
        else:
            flat = iter(self._predict(markups, settings, 0, options))
            own = [[next(flat) for _segment in markup.segments] for markup in markups]
        return [self.join(markup, translations) for markup, translations in zip(markups, own, strict=True)]

    def _predict(
        self, markups: Sequence[Markup], settings: DecodeSettings, first: int, options: TextOptions | None
    ) -> list[Translations]:
        """The translations of the segments of all texts."""
        texts = [text for markup in markups for text in markup.texts]
        if not texts:
            return []
        own = None
        if options is not None:
            later = replace(options, prefix="")
            own = [later if number else options for markup in markups for number in range(len(markup.texts))]
        changes = to_table(settings)
        predictions = self.bundle.predictions(texts, first=first, options=own, **changes)
        return [one for one in predictions if isinstance(one, Translations)]


def translate_markup(bundle: Bundle, texts: Iterable[str], **changes: Any) -> list[MarkupTranslation]:
    """Return the translation of each HTML text, with its tags in place.

    `changes` override decoding settings, such as `beam=5`. To translate repeatedly keep a `MarkupTranslator`, which
    chooses alignment heads once.
    """
    if isinstance(texts, str):
        raise TypeError('translate_markup takes a list of texts: translate_markup(bundle, ["…"]).')
    return MarkupTranslator(bundle).translate(texts, **changes)
