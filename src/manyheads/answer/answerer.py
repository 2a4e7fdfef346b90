"""`Answerer`: a loaded bundle that answers texts: it checks each, predicts, aligns words and places markup."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from manyheads.answer.answer import Answer, WordAlignment, answer_fields, is_foreign, token_counts
from manyheads.answer.markup_translation import MarkupTranslation, MarkupTranslator
from manyheads.answer.request import DEFAULT_OPTIONS, AnswerOptions
from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings
from manyheads.errors import DataError, LensError, RecipeError
from manyheads.lens.aligner import Aligner, OcclusionAligner, aligner_of, split_words
from manyheads.messages import _
from manyheads.settings import build, to_table
from manyheads.tasks import GenerativeTask, LabelingTask, Prediction, TextOptions
from manyheads.text.tokens.words import is_blank

NameText = Callable[[int], str]  # names the text of this index in messages


def _name_text(index: int) -> str:
    return _("The text")


@dataclass(frozen=True)
class Answerer:
    """Answers texts with a bundle. What takes long to find out, such as the alignment heads, it finds out once."""

    bundle: Bundle

    @cached_property
    def aligner(self) -> Aligner | OcclusionAligner:
        """What aligns words, the same way for every text."""
        return aligner_of(self.bundle)

    @cached_property
    def markup_translator(self) -> MarkupTranslator:
        """What translates HTML."""
        return MarkupTranslator(self.bundle)

    def warm_up(self) -> None:
        """Answer one text, so that the engine is built before the first request."""
        text = self.bundle.task.mask_text or "a"
        self.bundle.predictions([text], max_new_tokens=1)

    def answers(
        self,
        texts: Sequence[str],
        options: AnswerOptions = DEFAULT_OPTIONS,
        *,
        first: int | None = None,
        name: NameText = _name_text,
    ) -> list[Answer]:
        """Return the answer to each text.

        The random stream of a text is its index plus `first`. Without it, a text draws the same samples whatever other
        texts it is answered with.
        """
        bundle = self._with_threshold(options)
        errors = self._errors(texts, name)
        readable = ["" if index in errors else text for index, text in enumerate(texts)] if errors else texts
        predictions: Sequence[Prediction | MarkupTranslation]
        required = _text_options(options)
        if options.format == "html":
            predictions = self._translate_html(readable, options, first)
        elif first is None and _method(bundle, options) == "sample":
            predictions = [bundle.predictions([text], options=required, **options.decode)[0] for text in readable]
        else:
            predictions = bundle.predictions(readable, first=first or 0, options=required, **options.decode)
        alignments = self._align(readable, predictions) if options.align else [None] * len(texts)
        starts_texts = bundle.task.continues_prompts
        return [
            Answer(
                text,
                prediction,
                self._unseen_words(readable[index], prediction),
                is_foreign(bundle, _plain_text(readable[index], prediction)),
                not starts_texts and is_blank(text),
                errors.get(index, ""),
                alignment,
            )
            for index, (text, prediction, alignment) in enumerate(zip(texts, predictions, alignments, strict=True))
        ]

    def _translate_html(
        self, texts: Sequence[str], options: AnswerOptions, first: int | None
    ) -> list[MarkupTranslation]:
        """Translate HTML; a text has one translation and no word alignment."""
        if options.align:
            raise RecipeError(_('align: the format "html" has no word alignment.'))
        required = _text_options(options)
        return self.markup_translator.translate(texts, first=first, options=required, **options.decode)

    def _unseen_words(self, text: str, prediction: Prediction | MarkupTranslation) -> list[str] | None:
        if self.bundle.seen_words is None:
            return None
        if isinstance(prediction, MarkupTranslation):
            words = (word for segment in prediction.segments for word in self.bundle.unseen_words(segment))
            return list(dict.fromkeys(words))
        return self.bundle.unseen_words(text)

    def stream(self, text: str, options: AnswerOptions = DEFAULT_OPTIONS) -> Iterator[dict[str, Any]]:
        """Yield the parts of a continuation as `{"delta": …}`, then the whole as `{"done": …}`, both JSON values."""
        bundle = self._with_threshold(options)
        if errors := self._errors([text], _name_text):
            raise DataError(errors[0])
        task = bundle.task
        if not (isinstance(task, GenerativeTask) and task.continues_prompts):
            (answer,) = self.answers([text], options)
            yield {"done": answer_fields(answer, bundle)}
            return
        settings = build(DecodeSettings, to_table(bundle.decode) | dict(options.decode), "decode.")
        parts, written, is_finished = task.stream(text, settings), "", False
        while True:
            try:
                part = next(parts)
            except StopIteration as end:
                is_finished = bool(end.value)
                break
            written += part
            yield {"delta": part}
        whole = {"source": text, "answer": written, "candidates": [{"text": written, "finished": is_finished}]}
        yield {"done": whole | token_counts(bundle, text, [written])}

    def _errors(self, texts: Sequence[str], name: NameText) -> dict[int, str]:
        """Return why the model cannot read texts, by their index."""
        check, errors = self.bundle.task.check, {}
        for index, text in enumerate(texts):
            try:
                text.encode()
                check(text, "")
            except UnicodeEncodeError:
                errors[index] = _("The text has half of a surrogate pair, which is not valid Unicode.")
            except DataError:
                try:
                    check(text, name(index))
                except DataError as error:  # the same, which now names the text
                    errors[index] = str(error)
        return errors

    def _with_threshold(self, options: AnswerOptions) -> Bundle:
        if options.threshold is None:
            return self.bundle
        if not isinstance(self.bundle.task, LabelingTask):
            raise RecipeError(_("threshold: a bundle of task {kind} has no threshold.", kind=self.bundle.kind))
        return replace(self.bundle, task=self.bundle.task.with_threshold(options.threshold))

    def _align(
        self, texts: Sequence[str], predictions: Sequence[Prediction | MarkupTranslation]
    ) -> list[WordAlignment]:
        if not self.bundle.task.model.settings.has_cross_attention:
            raise LensError(
                _("align: a bundle of task {kind} has no cross-attention to align words with.", kind=self.bundle.kind)
            )
        heads = self.aligner.heads if isinstance(self.aligner, Aligner) else ()
        aligned = []
        for text, prediction in zip(texts, predictions, strict=True):
            answer, parts = prediction.answer, getattr(prediction, "parts", ())
            links = [] if is_blank(text) or is_blank(answer) else self.aligner.align([text], [answer], [parts])[0]
            aligned.append(WordAlignment(split_words(text).words, split_words(answer).words, links, heads))
        return aligned


def _plain_text(text: str, prediction: Prediction | MarkupTranslation) -> str:
    return " ".join(prediction.segments) if isinstance(prediction, MarkupTranslation) else text


def _method(bundle: Bundle, options: AnswerOptions) -> str:
    """Return the method of decoding; settings that are not valid are refused later."""
    return str(options.decode.get("method", bundle.decode.method))


def _text_options(options: AnswerOptions) -> TextOptions | None:
    return TextOptions(options.glossary, options.keep, options.prefix) if options.has_requirements else None
