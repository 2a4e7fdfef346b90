"""`DocumentTranslator`: whole files translated, with everything but their text unchanged."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import PurePath
from typing import Any

from manyheads.answer.markup_translation import MarkupTranslator
from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings
from manyheads.settings import build, to_table
from manyheads.tasks import TextOptions, Translations
from manyheads.text.documents.document import DocumentOptions
from manyheads.text.documents.formats import split_document
from manyheads.text.markup.inline_segments import Markup, MarkupSegment
from manyheads.text.tokens.words import split_text

_BATCH_TEXTS = 500


@dataclass(frozen=True)
class DocumentTranslation:
    """A translated file, its plain texts and their translations, in order."""

    content: bytes
    texts: Sequence[str]
    translations: Sequence[Translations]


@dataclass(frozen=True)
class DocumentTranslator:
    """Translates files of every format in `text/documents/formats/` with a translation bundle."""

    bundle: Bundle

    @cached_property
    def markup_translator(self) -> MarkupTranslator:
        """What places tags; it raises if the bundle does not translate."""
        return MarkupTranslator(self.bundle)

    def translate(
        self,
        name: str | PurePath,
        content: bytes,
        *,
        replaces: bool = False,
        options: TextOptions | None = None,
        progress: Callable[[int, int], None] = lambda done, of: None,
        **changes: Any,
    ) -> DocumentTranslation:
        """Return the translation of a file; its name decides the format.

        In files that hold translations, texts that have one are left as they are unless `replaces`. A glossary and
        words to keep apply to every text, a prefix to the first. `changes` override decoding settings. A text whose
        confidence is below `DecodeSettings.abstain` stays as it is.
        """
        translator = self.markup_translator
        settings = build(DecodeSettings, to_table(self.bundle.decode) | changes | {"n_best": 1}, "decode.")
        task = self.bundle.task.settings
        document = split_document(
            name,
            content,
            DocumentOptions(task.source_language, task.target_language, translator.uses_placeholders, replaces),
        )
        texts = [text for markup in document.markups for text in markup.texts]
        translations: list[Translations] = []
        for batch in _batches(texts):
            own = None
            if options is not None:
                own = [
                    options if not translations and not index else replace(options, prefix="")
                    for index in range(len(batch))
                ]
            found = self.bundle.predictions(batch, first=len(translations), options=own, **to_table(settings))
            translations += (one for one in found if isinstance(one, Translations))
            progress(len(translations), len(texts))
        remaining = iter(translations)
        joined = [
            _join(markup, [next(remaining) for _segment in markup.segments], translator) for markup in document.markups
        ]
        return DocumentTranslation(document.write(joined), texts, translations)


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    remaining = iter(texts)
    return iter(lambda: list(islice(remaining, _BATCH_TEXTS)), [])


def _join(markup: Markup, translations: Sequence[Translations], translator: MarkupTranslator) -> str:
    answers, links = [], []
    for segment, one in zip(markup.segments, translations, strict=True):
        answers.append(segment.text if one.abstained else one.answer)
        links.append(_links(segment, one, translator))
    return markup.join(answers, links)


def _links(segment: MarkupSegment, one: Translations, translator: MarkupTranslator) -> Sequence[tuple[int, int]]:
    """Return the word alignment of a segment, where a tag needs one."""
    if not segment.needs_alignment:
        return []
    if one.abstained or one.answer == segment.text:
        return [(index, index) for index, _word in enumerate(split_text(segment.text, "word"))]
    return translator.aligner.align([segment.text], [one.answer], [one.parts])[0]
