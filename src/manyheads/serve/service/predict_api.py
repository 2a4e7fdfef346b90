"""`predict_router`: the service's own API, for bundles of every task."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response

from manyheads.answer.request import AnswerOptions, AnswerRequest
from manyheads.messages import _
from manyheads.serve.service.bundle_description import BundleDescription
from manyheads.serve.service.error_shapes import problem_responses
from manyheads.serve.service.event_stream import event_response
from manyheads.serve.service.problems import ProblemError
from manyheads.serve.service.request_bodies import BodyRoute
from manyheads.serve.service.service import Service

_MAX_TERMS = 1000  # of a glossary


class PredictRequest(BaseModel):
    """Texts to answer."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"texts": ["Two cats are sleeping."], "n_best": 2, "align": True}]},
    )

    bundle: str | None = Field(None, description="Name of the bundle; may be left out if one is served.")
    texts: str | Annotated[list[str], Field(fail_fast=True)] = Field(description="One text or several.")
    n_best: Annotated[int, Field(ge=1, le=256)] | None = Field(None, description="Number of candidates per text.")
    align: bool = Field(False, description="Add word alignments of translations.")
    stream: bool = Field(False, description="Answer with server-sent events.")
    decode: dict[str, bool | int | float | str | list[str] | None] = Field(
        default_factory=dict, description="Changes of the bundle's decoding settings."
    )
    threshold: Annotated[float, Field(ge=0, lt=1)] | None = Field(
        None, description="Leave out labels or spans that are less probable."
    )
    glossary: Annotated[dict[str, str], Field(max_length=_MAX_TERMS)] | None = Field(
        None, description="Target terms by source term; a translation has them."
    )
    keep: Annotated[list[str], Field(max_length=_MAX_TERMS)] | None = Field(
        None, description="Terms that a translation repeats unchanged."
    )
    prefix: str | None = Field(None, description="Text that a translation begins with.")
    format: Literal["text", "html"] | None = Field(None, description="Keep the tags of HTML in place.")
    abstain: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None, description="Leave translations empty whose confidence is lower."
    )

    def answer_request(self, bundle: BundleDescription) -> AnswerRequest:
        """Return the request for this bundle."""
        texts = (self.texts,) if isinstance(self.texts, str) else tuple(self.texts)
        if not texts:
            raise ProblemError(422, _("texts is empty. Give at least one text."))
        decode = {name: tuple(value) if isinstance(value, list) else value for name, value in self.decode.items()}
        if self.n_best is not None:
            decode |= _for_candidates(self.n_best, {**bundle.decode, **decode}, is_chosen="method" in decode)
        if self.abstain is not None:
            decode["abstain"] = self.abstain
        options = AnswerOptions(
            decode,
            self.threshold,
            self.align,
            self.format or "text",
            self.glossary or {},
            tuple(self.keep or ()),
            self.prefix or "",
        )
        return AnswerRequest(bundle.name, texts, options)


def _for_candidates(n_best: int, decode: Mapping[str, Any], *, is_chosen: bool) -> dict[str, Any]:
    """Return the settings that give this many candidates; a greedy search has one, a beam at most its width."""
    changes: dict[str, Any] = {"n_best": n_best}
    method, beam = decode.get("method", "beam"), decode.get("beam", 4)
    if n_best > 1 and method == "greedy" and not is_chosen:
        changes["method"] = method = "beam"
    if method == "beam" and isinstance(beam, int) and n_best > beam:
        changes["beam"] = n_best
    return changes


def predict_router(service: Service) -> APIRouter:
    """Return the routes /v1/predict and /v1/bundles."""
    statuses = (400, 401, 403, 404, 408, 413, 415, 422, 429, 503, 504)
    router = APIRouter(prefix="/v1", tags=["manyheads"], responses=problem_responses(*statuses))

    async def predict(body: PredictRequest) -> Response:
        """Translate, classify, tag or continue texts."""
        bundle = service.find(body.bundle)
        request = body.answer_request(bundle)
        if body.stream:
            return await event_response(_events(service, bundle, request), _error_event)
        predictions = ",".join(await service.predict_json(request))
        head = json.dumps({"bundle": bundle.name, "task": bundle.task, "version": bundle.version}, ensure_ascii=False)
        content = f'{head[:-1]}, "predictions": [{predictions}]}}'
        return Response(content.encode(), media_type="application/json")

    events: dict[str, Any] = {"text/event-stream": {}}
    router.add_api_route(
        "/predict", predict, methods=["POST"], responses={200: {"content": events}}, route_class_override=BodyRoute
    )

    @router.get("/bundles")
    async def bundles() -> Response:
        """List the bundles that are served."""
        return JSONResponse({"bundles": [asdict(bundle) for bundle in service.bundles.values()]})

    @router.post("/bundles/{name}/reload")
    async def reload(name: str) -> Response:
        """Load a bundle again from its folder. If it is damaged, the version that was loaded before serves on."""
        return JSONResponse(asdict(await service.reload(name)))

    return router


async def _events(service: Service, bundle: BundleDescription, request: AnswerRequest) -> AsyncIterator[dict[str, Any]]:
    service.check(request)
    if bundle.answer_form == "continuation":
        async for event in service.stream(request):
            yield event
        return
    parts = [asyncio.ensure_future(service.predict(replace(request, texts=(text,)))) for text in request.texts]
    try:
        for index, part in enumerate(parts):
            (answer,) = await part
            yield {"index": index, "done": answer}
    finally:
        for part in parts:
            part.cancel()


def _error_event(error: ProblemError) -> dict[str, Any]:
    return {"error": {"status": error.status, "detail": error.detail}}
