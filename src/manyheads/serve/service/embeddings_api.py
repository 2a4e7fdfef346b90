"""`embeddings_router`: embed bundles for the clients of OpenAI's embeddings API."""

import base64
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse

from manyheads.answer.request import AnswerOptions, AnswerRequest
from manyheads.messages import _
from manyheads.serve.service.completions_api import find_model
from manyheads.serve.service.error_shapes import OpenAiError, OpenAiProblemError, ShapedRoute, error_responses
from manyheads.serve.service.request_bodies import JSON, body_schema, read_body
from manyheads.serve.service.service import Service

_ERRORS = error_responses(
    OpenAiError,
    {
        400: "A parameter is missing, wrong or not supported, or a text is empty.",
        401: "The API key is missing or wrong.",
        403: "A page of this site may not use the server.",
        404: "There is no such model.",
        408: "The body arrived too slowly.",
        413: "A text is too long, or there are too many.",
        415: "The body is not JSON.",
        429: "Too many requests. Wait as long as Retry-After says.",
        503: "No worker is ready.",
        504: "The vectors were not ready in time.",
    },
)


class EmbeddingRequest(BaseModel):
    """Texts to embed."""

    model_config = ConfigDict(extra="forbid")

    model: str = Field(description="Name of an embed bundle.")
    input: (
        str
        | Annotated[list[str], Field(fail_fast=True)]
        | Annotated[list[int], Field(fail_fast=True)]
        | Annotated[list[Annotated[list[int], Field(fail_fast=True)]], Field(fail_fast=True)]
    ) = Field(description="A text, or several. Token ids are not supported.", examples=["Two cats are sleeping."])
    encoding_format: Literal["float", "base64"] | None = Field(
        "float", description="Numbers, or the base64 of little-endian float32 numbers."
    )
    dimensions: int | None = Field(None, description="Not supported, unless it is the number that the model has.")
    user: str | None = Field(None, description="Has no effect.")

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts; none of them is empty."""
        texts = [self.input] if isinstance(self.input, str) else self.input
        found = tuple(text for text in texts if isinstance(text, str))
        if len(found) != len(texts) or not found:
            _refuse("input", _("input must be a text or a list of texts. Token ids are not supported."))
        if empty := [number for number, text in enumerate(found) if not text.strip()]:
            _refuse("input", _("input[{number}] is empty. Leave it out: it has no vector.", number=empty[0]))
        return found


class Embedding(BaseModel):
    """The vector of one text."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingUsage(BaseModel):
    """Numbers of tokens."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingResponse(BaseModel):
    """The vectors of all texts."""

    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: EmbeddingUsage


def embeddings_router(service: Service) -> APIRouter:
    """Return the route /v1/embeddings."""
    router = APIRouter(prefix="/v1", tags=["OpenAI"], route_class=ShapedRoute)

    async def embed(request: Request) -> Response:
        """Embed texts."""
        wanted = await read_body(request, EmbeddingRequest, strict=True)
        bundles = [bundle for bundle in service.bundles.values() if bundle.answer_form == "vector"]
        bundle = find_model(bundles, wanted.model, _("This server has no embed bundle."))
        answers = await service.predict(AnswerRequest(bundle.name, wanted.texts, AnswerOptions({})))
        if error := next((answer["error"] for answer in answers if "error" in answer), None):
            _refuse("input", error)
        width = len(answers[0]["answer"])
        if wanted.dimensions not in (None, width):
            _refuse("dimensions", _("The vectors of this model have {width:,} numbers. Leave it out.", width=width))
        n_tokens = sum(answer["n_tokens"] for answer in answers)
        data = [
            {"object": "embedding", "index": index, "embedding": _encoded(answer["answer"], wanted.encoding_format)}
            for index, answer in enumerate(answers)
        ]
        usage = {"prompt_tokens": n_tokens, "total_tokens": n_tokens}
        return JSONResponse({"object": "list", "data": data, "model": bundle.name, "usage": usage})

    router.add_api_route(
        "/embeddings",
        embed,
        methods=["POST"],
        responses=_ERRORS | {200: {"model": EmbeddingResponse}},
        openapi_extra=body_schema(EmbeddingRequest, JSON),
    )
    return router


def _encoded(vector: list[float], encoding: str | None) -> list[float] | str:
    return base64.b64encode(np.array(vector, "<f4").tobytes()).decode() if encoding == "base64" else vector


def _refuse(param: str, message: Any) -> None:
    raise OpenAiProblemError(400, message, param)
