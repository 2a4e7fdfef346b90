"""`completions_router`: language bundles for the clients of OpenAI's completions API.

What cannot be done (log-probabilities, penalties, a suffix …) is refused with an error that says so.
"""

import secrets
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse

from manyheads.answer.request import AnswerOptions, AnswerRequest
from manyheads.messages import _
from manyheads.serve.service.bundle_description import BundleDescription
from manyheads.serve.service.error_shapes import (
    OpenAiError,
    OpenAiProblemError,
    ShapedRoute,
    error_responses,
    openai_error,
)
from manyheads.serve.service.event_stream import event_response
from manyheads.serve.service.problems import ProblemError
from manyheads.serve.service.request_bodies import JSON, body_schema, read_body
from manyheads.serve.service.service import Service

_MAX_STOPS = 4  # as OpenAI allows
_N_SEEDS = 2**31  # of DecodeSettings
_ERRORS = error_responses(
    OpenAiError,
    {
        400: "A parameter is missing, wrong or not supported.",
        401: "The API key is missing or wrong.",
        403: "A page of this site may not use the server.",
        404: "There is no such model.",
        408: "The body arrived too slowly.",
        413: "A prompt is too long, or there are too many.",
        415: "The body is not JSON.",
        429: "Too many requests. Wait as long as Retry-After says.",
        503: "No worker is ready.",
        504: "The completion was not ready in time.",
    },
)


class StreamOptions(BaseModel):
    """Options of a stream."""

    model_config = ConfigDict(extra="forbid")

    include_usage: bool | None = Field(None, description="Send a last event with the number of tokens.")
    include_obfuscation: bool | None = Field(None, description="Has no effect.")


class CompletionRequest(BaseModel):
    """Prompts to continue."""

    model_config = ConfigDict(extra="forbid")

    model: str = Field(description="Name of a language bundle.")
    prompt: (
        str
        | Annotated[list[str], Field(fail_fast=True)]
        | Annotated[list[int], Field(fail_fast=True)]
        | Annotated[list[Annotated[list[int], Field(fail_fast=True)]], Field(fail_fast=True)]
    ) = Field("", description="The prompt, or several. Token ids are not supported.", examples=["To be, or not"])
    max_tokens: Annotated[int, Field(ge=0)] | None = Field(16, description="The most tokens of a completion.")
    temperature: Annotated[float, Field(ge=0, le=2)] | None = Field(1.0, description="0: the most probable token.")
    top_p: Annotated[float, Field(ge=0, le=1)] | None = Field(
        1.0, description="Sample from the smallest set of tokens with this total probability."
    )
    n: Annotated[int, Field(ge=1)] | None = Field(1, description="Number of completions of each prompt.")
    stop: str | list[str] | None = Field(None, description="A completion ends before the first of these texts.")
    seed: int | None = Field(None, description="The same seed gives the same completions.")
    stream: bool | None = Field(False, description="Answer with server-sent events.")
    stream_options: StreamOptions | None = Field(None, description="Options of a stream.")
    echo: bool | None = Field(False, description="Begin each completion with its prompt.")
    user: str | None = Field(None, description="Has no effect.")
    best_of: int | None = Field(None, description="Not supported, unless it equals n.")
    logprobs: int | None = Field(None, description="Not supported.")
    suffix: str | None = Field(None, description="Not supported.")
    logit_bias: dict[str, float] | None = Field(None, description="Not supported.")
    presence_penalty: float | None = Field(None, description="Not supported, unless it is 0.")
    frequency_penalty: float | None = Field(None, description="Not supported, unless it is 0.")

    def check(self) -> None:
        """Refuse what this server cannot do."""
        if self.logprobs is not None:
            _refuse("logprobs", _("Log-probabilities of tokens are not available. Leave logprobs out."))
        if self.best_of is not None and self.best_of != (self.n or 1):
            _refuse(
                "best_of", _("best_of is not supported. Leave it out; the completions of n > 1 are the best first.")
            )
        if self.suffix:
            _refuse(
                "suffix", _("The models of this server continue a prompt; they cannot insert text before a suffix.")
            )
        if self.logit_bias:
            _refuse("logit_bias", _("{name} is not supported. Leave it out.", name="logit_bias"))
        if self.presence_penalty:
            _refuse("presence_penalty", _("{name} is not supported. Leave it out.", name="presence_penalty"))
        if self.frequency_penalty:
            _refuse("frequency_penalty", _("{name} is not supported. Leave it out.", name="frequency_penalty"))
        if self.stream_options is not None and not self.stream:
            _refuse("stream_options", _("stream_options is only allowed if stream is true."))
        if len(self.stops) > _MAX_STOPS or "" in self.stops:
            _refuse("stop", _("stop takes at most {n_texts} texts, none of them empty.", n_texts=_MAX_STOPS))

    @property
    def stops(self) -> list[str]:
        """The stop texts as a list."""
        return [self.stop] if isinstance(self.stop, str) else self.stop or []

    @property
    def prompts(self) -> list[str]:
        """The prompts as a list."""
        prompts = [self.prompt] if isinstance(self.prompt, str) else self.prompt
        texts = [prompt for prompt in prompts if isinstance(prompt, str)]
        if len(texts) != len(prompts) or not texts:
            _refuse("prompt", _("prompt must be a text or a list of texts. Token ids are not supported."))
        return texts

    @property
    def is_greedy(self) -> bool:
        """Whether each token is the most probable one."""
        return self.temperature == 0 or self.top_p == 0

    def decode(self) -> dict[str, Any]:
        """Return the changes of the bundle's decoding settings."""
        decode: dict[str, Any] = {"max_new_tokens": 16 if self.max_tokens is None else self.max_tokens}
        decode["stop"] = tuple(self.stops)
        if self.is_greedy:
            return decode | {"method": "greedy", "n_best": 1}
        seed = secrets.randbelow(_N_SEEDS) if self.seed is None else self.seed % _N_SEEDS
        return decode | {
            "method": "sample",
            "temperature": 1.0 if self.temperature is None else self.temperature,
            "top_p": 1.0 if self.top_p is None else self.top_p,
            "n_best": self.n or 1,
            "seed": seed,
        }


class CompletionChoice(BaseModel):
    """One completion."""

    text: str
    index: int
    logprobs: None = None
    finish_reason: Literal["stop", "length"] | None


class CompletionUsage(BaseModel):
    """Numbers of tokens."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class CompletionResponse(BaseModel):
    """The completions of all prompts."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    system_fingerprint: str
    choices: list[CompletionChoice]
    usage: CompletionUsage | None = None


class ModelEntry(BaseModel):
    """A language bundle."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(BaseModel):
    """All language bundles."""

    object: Literal["list"]
    data: list[ModelEntry]


def completions_router(service: Service) -> APIRouter:
    """Return the routes /v1/completions and /v1/models."""
    router = APIRouter(prefix="/v1", tags=["OpenAI"], route_class=ShapedRoute)

    async def complete(request: Request) -> Response:
        """Continue prompts."""
        wanted = await read_body(request, CompletionRequest, strict=True)
        wanted.check()
        bundle = find_model(_language_bundles(service), wanted.model)
        completion = _Completion(service, bundle, wanted, tuple(wanted.prompts))
        if not wanted.stream:
            return JSONResponse(await completion.whole())
        return await event_response(completion.events(), lambda error: {"error": openai_error(error)})

    router.add_api_route(
        "/completions",
        complete,
        methods=["POST"],
        responses=_ERRORS | {200: {"model": CompletionResponse, "content": {"text/event-stream": {}}}},
        openapi_extra=body_schema(CompletionRequest, JSON),
    )

    @router.post("/chat/completions", include_in_schema=False)
    async def chat() -> Response:
        """Say that the models of this server do not chat."""
        raise OpenAiProblemError(404, _("Chat completions are not supported. Use /v1/completions with a prompt."))

    @router.get("/models", responses={200: {"model": ModelList}})
    async def models() -> Response:
        """List the bundles that continue or embed texts."""
        return JSONResponse({"object": "list", "data": [_entry(bundle) for bundle in _models(service)]})

    @router.get("/models/{model:path}", responses={200: {"model": ModelEntry}, 404: _ERRORS[404]})
    async def model(model: str) -> Response:
        """Describe one of them."""
        return JSONResponse(_entry(find_model(_models(service), model)))

    return router


@dataclass
class _Completion:
    """A request and its answer, whole or in parts."""

    service: Service
    bundle: BundleDescription
    wanted: CompletionRequest
    prompts: tuple[str, ...]

    def __post_init__(self) -> None:
        self.head = {
            "id": f"cmpl-{secrets.token_hex(12)}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": self.bundle.name,
            "system_fingerprint": f"fp_{self.bundle.version}",
        }
        self.n = self.wanted.n or 1
        limits = self.service.settings
        if self.n > limits.max_beam:
            _refuse("n", _("n = {n}: this server allows at most {most}.", n=self.n, most=limits.max_beam))
        if len(self.prompts) > limits.max_texts:
            n_prompts, most = len(self.prompts), limits.max_texts
            text = _("{n_prompts:,} prompts: this server allows at most {most:,}.", n_prompts=n_prompts, most=most)
            _refuse("prompt", text)
        if self.wanted.stream and len(self.prompts) * self.n > limits.max_streams:
            n, most = len(self.prompts) * self.n, limits.max_streams
            _refuse("n", _("A stream of {n:,} completions: at most {most} are allowed.", n=n, most=most))
        self.decode = self.wanted.decode()

    async def whole(self) -> dict[str, Any]:
        """Return all completions."""
        request = AnswerRequest(self.bundle.name, self.prompts, AnswerOptions(self.decode))
        answers = await self.service.predict(request)
        choices: list[dict[str, Any]] = []
        for prompt, answer in zip(self.prompts, answers, strict=True):
            candidates = answer["candidates"]
            for number in range(self.n):
                candidate = candidates[min(number, len(candidates) - 1)]  # greedy decoding finds one
                text = prompt + candidate["text"] if self.wanted.echo else candidate["text"]
                choices.append(_choice(text, len(choices), "stop" if candidate["finished"] else "length"))
        return {**self.head, "choices": choices, "usage": _usage(answers)}

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the parts of all completions, one completion after the other, then the usage if it is asked for."""
        answers, index = [], 0
        extra = {"usage": None} if self._wants_usage else {}
        deadline = time.monotonic() + self.service.settings.timeout
        for prompt in self.prompts:
            for number in range(self.n):
                if time.monotonic() > deadline:
                    raise ProblemError(504, _("The completions were not ready in time."))
                request = AnswerRequest(self.bundle.name, (prompt,), AnswerOptions(self._decode_of(number)))
                if self.wanted.echo:
                    yield {**self.head, "choices": [_choice(prompt, index, None)], **extra}
                async with aclosing(self.service.stream(request)) as parts:  # type: ignore[type-var]
                    async for part in parts:
                        if "delta" in part:
                            yield {**self.head, "choices": [_choice(part["delta"], index, None)], **extra}
                        else:
                            answers.append(part["done"])
                            reason = self._finish_reason(part["done"])
                            yield {**self.head, "choices": [_choice("", index, reason)], **extra}
                index += 1
        if self._wants_usage:
            yield {**self.head, "choices": [], "usage": _usage(answers, self.n)}

    @property
    def _wants_usage(self) -> bool:
        return bool(self.wanted.stream_options and self.wanted.stream_options.include_usage)

    def _decode_of(self, number: int) -> dict[str, Any]:
        """The settings of the n-th completion: a stream has one, so each has a seed of its own."""
        seed = {"seed": (self.decode["seed"] + number) % _N_SEEDS} if "seed" in self.decode else {}
        return {**self.decode, "n_best": 1, **seed}

    def _finish_reason(self, answer: dict[str, Any]) -> str:
        candidates = answer.get("candidates")
        if candidates:
            return "stop" if candidates[0]["finished"] else "length"
        return "length" if answer["n_new_tokens"] >= self.decode["max_new_tokens"] else "stop"


def _choice(text: str, index: int, finish_reason: str | None) -> dict[str, Any]:
    return {"text": text, "index": index, "logprobs": None, "finish_reason": finish_reason}


def _usage(answers: Sequence[dict[str, Any]], n_per_prompt: int = 1) -> dict[str, int]:
    """Count tokens; a prompt counts once, however many completions it has."""
    n_prompt = sum(answer["n_prompt_tokens"] for answer in answers) // n_per_prompt
    n_new = sum(answer["n_new_tokens"] for answer in answers)
    return {"prompt_tokens": n_prompt, "completion_tokens": n_new, "total_tokens": n_prompt + n_new}


def _language_bundles(service: Service) -> list[BundleDescription]:
    return [bundle for bundle in service.bundles.values() if bundle.answer_form == "continuation"]


def _models(service: Service) -> list[BundleDescription]:
    return [bundle for bundle in service.bundles.values() if bundle.answer_form in ("continuation", "vector")]


def find_model(bundles: Sequence[BundleDescription], name: str, missing: str = "") -> BundleDescription:
    """Return the bundle with this name; the error lists those that there are."""
    found = {bundle.name: bundle for bundle in bundles}
    if name not in found:
        names = ", ".join(found)
        served = _("Models: {names}.", names=names) if found else missing or _("This server has no language bundle.")
        text = _("The model {name!r} does not exist. {served}", name=name[:80], served=served)
        raise OpenAiProblemError(404, text, "model", "model_not_found")
    return found[name]


def _entry(bundle: BundleDescription) -> dict[str, Any]:
    return {"id": bundle.name, "object": "model", "created": bundle.created, "owned_by": "manyheads"}


def _refuse(param: str, message: str) -> None:
    raise OpenAiProblemError(400, message, param)
