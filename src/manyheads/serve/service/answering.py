"""`AnsweringBundle`: a loaded bundle that answers texts with JSON tables, as a worker process holds it."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings
from manyheads.errors import DataError, LensError, RecipeError
from manyheads.lens.aligner import Aligner, OcclusionAligner, aligner_of, split_words
from manyheads.lens.markup_translation import MarkupTranslator
from manyheads.messages import _
from manyheads.serve.lens_page.lens_model import answer_form
from manyheads.serve.private_data import load_served
from manyheads.settings import build, to_table
from manyheads.storage import MANIFEST
from manyheads.tasks import Generation, Prediction, StreamingTask, TextOptions, ThresholdTask, Translations
from manyheads.tasks.masked.masked_training import MASK_TEXT
from manyheads.text.tokens.words import is_blank

_N_EXAMPLES = 3
_MAX_EXAMPLE = 160  # characters
_LEAVES = (str, int, float, type(None))


@dataclass
class AnsweringBundle:
    """A bundle and what clients may know about it."""

    bundle: Bundle
    path: Path
    served: Mapping[str, Any]  # the fields of ServedBundle

    @classmethod
    def open(cls, name: str, path: Path, *, share_examples: bool = False) -> "AnsweringBundle":
        """Load a bundle; the version is that of the files that were loaded, even if they are replaced meanwhile."""
        before = _version(path)
        bundle = load_served(path, share_examples=share_examples)
        if _version(path) != before:
            bundle, before = load_served(path, share_examples=share_examples), _version(path)
        settings, model = bundle.task.settings, bundle.task.model
        served = {
            "name": name,
            "task": bundle.kind,
            "answer_form": answer_form(bundle.task),
            "version": before,
            "created": int((path / MANIFEST).stat().st_mtime),
            "purpose": getattr(settings, "purpose", ""),
            "languages": [language for language in bundle.task.languages(settings) if language],
            "labels": list(getattr(bundle.task, "labels", ())),
            "n_parameters": model.n_parameters,
            "max_tokens": model.settings.max_length,
            "decode": to_table(bundle.decode),
            "examples": _examples(bundle),
            "scores": {name: [asdict(score) for score in scores] for name, scores in bundle.scores.items()},
        }
        return cls(bundle, path, served)

    def warm_up(self) -> None:
        """Answer one text, so that the engine is built before the first request."""
        text = MASK_TEXT if self.bundle.kind == "masked" else "a"
        self.bundle.predictions([text], max_new_tokens=1)

    def answer(self, texts: Sequence[str], how: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Answer each text with `{"ok": prediction}` or `{"error": [status, detail]}`."""
        bundle, decode = self._configured(how), self._decode(how)
        errors = [self._fault(text) for text in texts]
        readable = [text for text, error in zip(texts, errors, strict=True) if error is None]
        if how["options"].get("format") == "html":
            tables = iter(self._translate_markup(readable, decode, how))
            return [
                {"error": [422, error]} if error is not None else {"ok": {"source": text, **next(tables)}}
                for text, error in zip(texts, errors, strict=True)
            ]
        # As texts of their own: samples do not depend on which other texts are in the batch.
        predictions = iter(_predict(bundle, readable, decode, _text_options(how["options"])))
        payloads: list[dict[str, Any]] = []
        for text, error in zip(texts, errors, strict=True):
            if error is not None:
                payloads.append({"error": [422, error]})
            else:
                payloads.append({"ok": self._payload(text, next(predictions), align=how["align"])})
        return payloads

    def _translate_markup(
        self, texts: Sequence[str], decode: Mapping[str, Any], how: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """Translate HTML; a text has one translation and no word alignment."""
        if how["align"]:
            raise RecipeError(_('align: the format "html" has no word alignment.'))
        translations = self.markup_translator.translate(texts, options=_text_options(how["options"]), **decode)
        return [one.table() for one in translations]

    @cached_property
    def markup_translator(self) -> MarkupTranslator:
        """What translates HTML."""
        return MarkupTranslator(self.bundle)

    @cached_property
    def aligner(self) -> Aligner | OcclusionAligner:
        """What aligns words, the same way for every text."""
        return aligner_of(self.bundle)

    def stream(self, text: str, how: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the parts of a continuation as `{"delta": …}`, then the whole as `{"done": …}`."""
        bundle, decode = self._configured(how), self._decode(how)
        if (fault := self._fault(text)) is not None:
            raise DataError(fault)
        if not isinstance(bundle.task, StreamingTask):
            (answer,) = self.answer([text], how)
            yield {"done": answer["ok"]} if "ok" in answer else answer
            return
        settings = build(DecodeSettings, to_table(bundle.decode) | dict(decode), "decode.")
        parts, written, finished = bundle.task.stream(text, settings), "", False
        while True:
            try:
                delta = next(parts)
            except StopIteration as end:
                finished = bool(end.value)
                break
            written += delta
            yield {"delta": delta}
        done = {"source": text, "answer": written, "candidates": [{"text": written, "finished": finished}]}
        yield {"done": done | self._counts(text, [written])}

    def _fault(self, text: str) -> str | None:
        try:
            text.encode()
            self.bundle.task.check(text, "The text")
        except UnicodeEncodeError:
            return "The text has half of a surrogate pair, which is not valid Unicode."
        except DataError as error:
            return str(error)
        return None

    def _decode(self, how: Mapping[str, Any]) -> dict[str, Any]:
        decode = dict(how["decode"])
        try:
            json.dumps(how, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise RecipeError(_("A setting has half of a surrogate pair, which is not valid Unicode.")) from None
        if isinstance(decode.get("stop"), list):
            decode["stop"] = tuple(decode["stop"])
        build(DecodeSettings, to_table(self.bundle.decode) | decode, "decode.")  # raises RecipeError
        return decode

    def _configured(self, how: Mapping[str, Any]) -> Bundle:
        threshold = how["threshold"]
        if threshold is None:
            return self.bundle
        if not isinstance(self.bundle.task, ThresholdTask):
            raise RecipeError(_("threshold: a bundle of task {kind} has no threshold.", kind=self.bundle.kind))
        return replace(self.bundle, task=self.bundle.task.with_threshold(threshold))

    def _payload(self, text: str, prediction: Prediction, *, align: bool) -> dict[str, Any]:
        payload: dict[str, Any] = _plain(prediction)
        payload |= {"source": text, "answer": _plain(prediction.answer)}
        if self.bundle.seen_words is not None:
            payload["unseen_words"] = self.bundle.unseen_words(text)
        if is_blank(text) and not isinstance(self.bundle.task, StreamingTask):
            payload["note"] = "The text is blank."
        if isinstance(prediction, Generation):
            payload |= self._counts(text, [one.text for one in prediction.candidates])
        if align:
            payload |= self._alignment(text, prediction)
        return payload

    def _counts(self, prompt: str, continuations: Sequence[str]) -> dict[str, int]:
        """The number of tokens of a prompt and of its continuations, as clients of language models expect."""
        tokenizer = self.bundle.task.tokenizer
        return {
            "n_prompt_tokens": len(tokenizer.encode(prompt)),
            "n_new_tokens": sum(len(tokenizer.encode_continuation(one)) for one in continuations if one),
        }

    def _alignment(self, text: str, prediction: Prediction) -> dict[str, Any]:
        if not isinstance(prediction, Translations):
            raise LensError(
                _("align: a bundle of task {kind} has no cross-attention to align words with.", kind=self.bundle.kind)
            )
        answer = prediction.answer
        words = {"source_words": split_words(text).words, "target_words": split_words(answer).words}
        if is_blank(text) or is_blank(answer):
            return words | {"alignment": []}
        (links,) = self.aligner.align([text], [answer], [prediction.parts])
        return words | {"alignment": links}


def _predict(
    bundle: Bundle, texts: Sequence[str], decode: Mapping[str, Any], options: TextOptions | None
) -> Sequence[Prediction]:
    settings = build(DecodeSettings, to_table(bundle.decode) | dict(decode), "decode.")
    if settings.method == "sample":
        return [bundle.predictions([text], options=options, **decode)[0] for text in texts]
    return bundle.predictions(texts, options=options, **decode)


def _text_options(options: Mapping[str, Any]) -> TextOptions | None:
    given = {name: options[name] for name in ("glossary", "keep", "prefix") if options.get(name)}
    return TextOptions(**given) if given else None


def _plain(value: Any) -> Any:
    """The value as JSON: dataclasses as tables. `dataclasses.asdict` copies what is inside, too, and takes longer."""
    if isinstance(value, _LEAVES):
        return value
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    return {name: _plain(one) for name, one in vars(value).items()} if is_dataclass(value) else value


def _examples(bundle: Bundle) -> list[str]:
    """Texts to try, if the bundle was trained on the built-in corpus; a user's own data is not shown to clients."""
    task, languages = bundle.task, str(bundle.recipe.get("data", {}).get("builtin") or "").split("-")
    if languages == [""]:
        return []
    rows = islice(task.builtin(task.settings, languages, "test", _N_EXAMPLES, 1), _N_EXAMPLES)
    texts = [row[0][:_MAX_EXAMPLE].partition("\n")[0].strip() for row in rows]
    return [task.lens_examples.suggestion(task, text) for text in texts if text]


def _version(path: Path) -> str:
    try:
        return hashlib.sha256((path / MANIFEST).read_bytes()).hexdigest()[:12]
    except OSError:
        return ""  # `load` says what is wrong
