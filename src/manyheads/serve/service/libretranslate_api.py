"""`libretranslate_router`: translation bundles for the clients of LibreTranslate.

Parameters, answers and errors are those of LibreTranslate 1.9, as JSON, as a form or as a multipart form. Different on
purpose: the language of each text of a list is detected by itself, an unknown pair lists the pairs that are served, and
/health fails while the service is not ready.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import unescape
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse

from manyheads.answer.request import AnswerOptions, AnswerRequest
from manyheads.messages import _
from manyheads.serve.service.bundle_description import BundleDescription
from manyheads.serve.service.error_shapes import LibreTranslateError, ShapedRoute, error_responses
from manyheads.serve.service.language_pairs import Detection, LanguageDetector, LanguagePairs, language_name
from manyheads.serve.service.problems import ProblemError
from manyheads.serve.service.request_bodies import FORM, JSON, MULTIPART, body_schema, read_body
from manyheads.serve.service.service import Service
from manyheads.text.markup.markup_scanner import scan_markup

_AUTO = "auto"
_N_DETECTED = 3  # languages that /detect lists
_FRONTEND_TIMEOUT = 500  # milliseconds that a page waits for more typing before it translates
_DEFAULT_BEAM = 4
_ERRORS = error_responses(
    LibreTranslateError,
    {
        400: "A parameter is missing or wrong, or the pair of languages is not served.",
        401: "The API key is missing or wrong.",
        403: "A page of this site may not use the server.",
        408: "The body arrived too slowly.",
        413: "The text is too long, or there are too many texts.",
        415: "The body is neither JSON nor a form.",
        429: "Too many requests. Wait as long as Retry-After says.",
        501: "The server cannot detect languages.",
        503: "No worker is ready.",
        504: "The translation was not ready in time.",
    },
)

Texts = Annotated[
    str | Annotated[list[str], Field(fail_fast=True)],
    Field(description="The text, or several.", examples=["Two cats are sleeping."]),
]
_OrDefault = BeforeValidator(lambda value: value or "text")  # as LibreTranslate does for null and ""
_NotNegative = BeforeValidator(lambda value: max(0, value) if isinstance(value, int) else value)


class DetectRequest(BaseModel):
    """A text whose language is asked for."""

    model_config = ConfigDict(extra="ignore")

    q: Texts
    api_key: str | None = Field(None, description="API key, if the server needs one.")

    @property
    def texts(self) -> list[str]:
        """The texts as a list."""
        texts = [self.q] if isinstance(self.q, str) else self.q
        if not any(texts):
            raise ProblemError(400, _("Invalid request: missing q parameter"))
        return texts


class TranslateRequest(DetectRequest):
    """Texts to translate."""

    source: str = Field(description='Code of the source language; "auto": detect it.', examples=["en"])
    target: str = Field(description="Code of the target language.", examples=["zh"])
    format: Annotated[Literal["text", "html"], _OrDefault] = Field("text", description="html: keep tags in place.")
    alternatives: Annotated[int, _NotNegative] = Field(0, description="Number of alternative translations.")

    @cached_property
    def readable(self) -> list[str]:
        """The texts without the tags, attributes and scripts of HTML."""
        return [_without_tags(text) for text in self.texts] if self.format == "html" else self.texts


class DetectedLanguage(BaseModel):
    """A language and how certain it is, in percent."""

    language: str
    confidence: float = Field(ge=0, le=100)


class TranslateResponse(BaseModel):
    """Translations; lists if `q` was a list."""

    translatedText: str | list[str]  # noqa: N815 as LibreTranslate calls it
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = None  # noqa: N815
    alternatives: list[str] | list[list[str]] | None = None


class LanguageEntry(BaseModel):
    """A language and those that its texts can be translated into."""

    code: str
    name: str
    targets: list[str]


class HealthResponse(BaseModel):
    """Whether the service is ready."""

    status: Literal["ok"]


def libretranslate_router(service: Service) -> APIRouter:
    """Return the routes /translate, /detect, /languages, /frontend/settings and /health."""
    api = _LibreTranslate(service)
    router = APIRouter(tags=["LibreTranslate"], route_class=ShapedRoute)
    forms = (JSON, FORM, MULTIPART)
    router.add_api_route(
        "/translate",
        api.translate,
        methods=["POST"],
        responses=_ERRORS | {200: {"model": TranslateResponse}},
        openapi_extra=body_schema(TranslateRequest, *forms),
    )
    router.add_api_route(
        "/detect",
        api.detect,
        methods=["POST"],
        responses=_ERRORS | {200: {"model": list[DetectedLanguage]}},
        openapi_extra=body_schema(DetectRequest, *forms),
    )
    router.add_api_route(
        "/languages", api.languages, methods=["GET"], responses=_some(401, 429) | {200: {"model": list[LanguageEntry]}}
    )
    router.add_api_route("/frontend/settings", api.frontend_settings, methods=["GET"])
    router.add_api_route(
        "/health", api.health, methods=["GET"], responses=_some(503) | {200: {"model": HealthResponse}}
    )
    return router


def _some(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: _ERRORS[status] for status in statuses}


@dataclass
class _Translated:
    text: str
    alternatives: list[str] = field(default_factory=list)


class _LibreTranslate:
    """The handlers."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.detector = LanguageDetector()

    @property
    def pairs(self) -> LanguagePairs:
        return LanguagePairs.of(self.service.bundles.values())

    async def translate(self, request: Request) -> Response:
        """Translate texts."""
        wanted = await read_body(request, TranslateRequest)
        texts, pairs = wanted.texts, self.pairs
        limits = self.service.settings
        if wanted.alternatives > limits.max_beam - 1:
            raise ProblemError(
                400, _("Invalid request: alternatives parameter must be <= {max_beam}", max_beam=limits.max_beam - 1)
            )
        if len(texts) > limits.max_texts:  # before languages are detected
            raise ProblemError(
                413,
                _(
                    "q has {n_texts:,} texts; at most {max_texts:,} are allowed.",
                    n_texts=len(texts),
                    max_texts=limits.max_texts,
                ),
            )
        if (longest := max(map(len, texts))) > limits.max_text:
            raise ProblemError(
                413,
                _(
                    "A text has {longest:,} characters; at most {max_text:,} are allowed.",
                    longest=longest,
                    max_text=limits.max_text,
                ),
            )
        if pairs.code(wanted.target) is None:
            raise ProblemError(
                400, _("{language} is not supported. {pairs}", language=wanted.target[:40], pairs=pairs.shown())
            )
        is_auto = wanted.source.strip().lower() == _AUTO
        detected = await self._detect_each(wanted.readable, pairs) if is_auto else []
        sources = [one.language if one.confidence else "" for one in detected] or [wanted.source] * len(texts)
        translated = await self._translate_each(texts, sources, wanted, pairs)
        answer: dict[str, Any] = {"translatedText": [one.text for one in translated]}
        if is_auto:
            answer["detectedLanguage"] = [one.model_dump() for one in detected]
        if wanted.alternatives:
            answer["alternatives"] = [one.alternatives for one in translated]
        return JSONResponse(answer if isinstance(wanted.q, list) else {key: one for key, (one,) in answer.items()})

    async def detect(self, request: Request) -> Response:
        """Detect the language of a text, among the languages that are served."""
        wanted = await read_body(request, DetectRequest)
        pairs = self.pairs
        ranked = await self._rank(["\n".join(wanted.texts)], pairs)
        found = [_shown(one, pairs) for one in ranked[0][:_N_DETECTED]] or [_unknown(pairs)]
        return JSONResponse([one.model_dump() for one in found])

    async def languages(self) -> Response:
        """List the languages, and into which of them each can be translated."""
        pairs = self.pairs
        return JSONResponse(
            [{"code": code, "name": language_name(code), "targets": pairs.targets(code)} for code in pairs.languages]
        )

    async def frontend_settings(self, request: Request) -> Response:
        """Return what a page needs to know: limits and languages."""
        needs_key = bool(getattr(request.app.state, "needs_key", False))
        target = next((target for _source, target in self.pairs.bundles), "")
        return JSONResponse(
            {
                "charLimit": self.service.settings.max_text,
                "frontendTimeout": _FRONTEND_TIMEOUT,
                "apiKeys": needs_key,
                "keyRequired": needs_key,
                "suggestions": False,
                "filesTranslation": False,
                "supportedFilesFormat": [],
                "language": {
                    "source": {"code": _AUTO, "name": "Auto Detect"},
                    "target": {"code": target, "name": language_name(target)},
                },
            }
        )

    async def health(self) -> Response:
        """Whether every worker has loaded every bundle."""
        if not self.service.is_ready:
            raise ProblemError(503, _("The service is not ready."), {"Retry-After": "1"})
        return JSONResponse({"status": "ok"})

    async def _translate_each(
        self, texts: Sequence[str], sources: Sequence[str], wanted: TranslateRequest, pairs: LanguagePairs
    ) -> list[_Translated]:
        """Translate each text from its language; texts without a word, or in the target language, stay as they are."""
        by_bundle: dict[str, list[int]] = defaultdict(list)
        for index, (readable, source) in enumerate(zip(wanted.readable, sources, strict=True)):
            is_same = bool(source) and pairs.code(source) == pairs.code(wanted.target)
            if is_same or not source or not any(map(str.isalnum, readable)):
                continue
            by_bundle[pairs.bundle(source, wanted.target)].append(index)
        translated = [_Translated(text) for text in texts]
        for name, indices in by_bundle.items():
            request = _answer_request(self.service.bundles[name], [texts[index] for index in indices], wanted)
            for index, answer in zip(indices, await self.service.predict(request), strict=True):
                translated[index] = _translated(answer, wanted.alternatives)
        return translated

    async def _detect_each(self, texts: Sequence[str], pairs: LanguagePairs) -> list[DetectedLanguage]:
        ranked = await self._rank(texts, pairs)
        return [_shown(one[0], pairs) if one else _unknown(pairs) for one in ranked]

    async def _rank(self, texts: Sequence[str], pairs: LanguagePairs) -> list[list[Detection]]:
        languages = pairs.languages
        return await run_in_threadpool(lambda: [self.detector.rank(text, languages) for text in texts])


def _answer_request(bundle: BundleDescription, texts: Sequence[str], wanted: TranslateRequest) -> AnswerRequest:
    decode: dict[str, Any] = {}
    if wanted.alternatives and wanted.format == "text":  # HTML has one translation, as in LibreTranslate
        n_best = wanted.alternatives + 1
        beam = max(n_best, bundle.decode.get("beam", _DEFAULT_BEAM))
        decode = {"method": "beam", "beam": beam, "n_best": n_best}
    return AnswerRequest(bundle.name, tuple(texts), AnswerOptions(decode, format=wanted.format))


def _without_tags(html: str) -> str:
    return unescape(" ".join(token.raw for token in scan_markup(html) if token.kind == "text"))


def _translated(answer: dict[str, Any], n_alternatives: int) -> _Translated:
    text = str(answer["answer"])
    others = [str(candidate["text"]) for candidate in answer.get("candidates", ())] if n_alternatives else []
    different = [other for other in dict.fromkeys(others) if other not in (text, "")]
    return _Translated(text, different[:n_alternatives])


def _shown(detection: Detection, pairs: LanguagePairs) -> DetectedLanguage:
    code = pairs.code(detection.language) or detection.language
    return DetectedLanguage(language=code, confidence=float(round(100 * detection.confidence)))


def _unknown(pairs: LanguagePairs) -> DetectedLanguage:
    """Confidence 0, for a text without letters."""
    languages = pairs.languages
    return DetectedLanguage(language="en" if "en" in languages or not languages else languages[0], confidence=0.0)
