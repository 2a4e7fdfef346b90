"""Bodies of requests: `read_body` takes JSON, a form or a query, `BodyRoute` one JSON body, as a pydantic model.

FastAPI reads either JSON or a form. LibreTranslate's server takes both, and its own client sends forms.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from python_multipart.multipart import parse_options_header
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request

from manyheads.messages import _
from manyheads.serve.service.problems import ProblemError

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
JSON = "application/json"
_MAX_FIELDS = 1000
_MAX_VALUES = 5000  # of a JSON object
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_MAX_HEAD = 1000  # bytes before the content of a field of a multipart form
_MAX_SHOWN = 300  # characters of what was wrong

Model = TypeVar("Model", bound=BaseModel)


async def read_body(request: Request, model: type[Model], *, strict: bool = False) -> Model:
    """Return the parameters of a request; raise a ProblemError if they are missing or wrong.

    A parameter that a form has several times becomes a list. `strict` refuses "3" where 3 is expected.
    """
    parsed, parameters = parse_options_header(request.headers.get("content-type", "").encode("latin-1"))
    kind, charset = parsed.decode("latin-1"), parameters.get(b"charset", b"utf-8").decode("latin-1").lower()
    if charset not in ("utf-8", "utf8", "us-ascii"):  # some of Python's codecs fail, or give text that is not Unicode
        raise ProblemError(415, _("The charset {charset!r} is not supported. Send UTF-8.", charset=charset[:40]))
    if kind == JSON or kind.endswith("+json"):
        fields = _read_json(await request.body())
    elif kind == FORM:
        fields = _merged(read_form(await request.body()), request)
    elif kind == MULTIPART:
        fields = _merged(await _read_multipart(request), request)
    elif not await request.body():
        fields = _merged([], request)
    else:
        raise ProblemError(
            415,
            _(
                "A body of type {kind} is not supported. Send {json} or {form}.",
                kind=kind[:80] or _("(none)"),
                json=JSON,
                form=FORM,
            ),
        )
    try:
        return model.model_validate(fields, strict=strict)
    except ValidationError as error:
        raise ProblemError(400, _described(error)) from None


def read_json(body: bytes) -> Any:
    """Return the content of a JSON body; raise ValueError if it is not JSON, a ProblemError if it has too many values.

    Values are counted before any is made, and before the validation, which describes what is wrong with each.
    """
    # Commas outside of strings. A quotation mark inside of one follows a backslash.
    if len(body) > _MAX_VALUES:
        n_values = (body.count(b'"') - body.count(b'\\"')) // 2
        if n_values <= _MAX_VALUES:
            n_values = _STRING.sub(b"", body).count(b",")
        if n_values > _MAX_VALUES:
            raise ProblemError(
                413,
                _(
                    "The body has {n_values:,} values; at most {max_values:,} are allowed.",
                    n_values=n_values,
                    max_values=_MAX_VALUES,
                ),
            )
    return from_json(body)


def body_schema(model: type[BaseModel], *kinds: str) -> dict[str, Any]:
    """Return what the OpenAPI document says about a body that `read_body` reads."""
    schema = model.model_json_schema()
    schema = _inlined(schema, schema.pop("$defs", {}))  # references would be resolved from the root of the document
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}}


def _inlined(schema: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inlined(one, definitions) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    return {name: _inlined(one, definitions) for name, one in schema.items()}


def multipart_field(body: bytes, content_type: str, name: str) -> str | None:
    """Return one short field of a multipart form, for code that cannot wait for `read_body`; None if there is none.

    It runs before a key is checked, so it takes time in proportion to the body whatever is in it.
    """
    boundary = re.search(r'boundary="?([^";,\s]{1,70})', content_type[:_MAX_HEAD])
    if boundary is None:
        return None
    wanted = re.compile(rb'[;\s]name="?' + re.escape(name.encode()) + rb'"?\s*(?:;|\r|$)')
    for part in body.split(b"--" + boundary[1].encode("utf-8", "replace"), _MAX_FIELDS)[1:]:
        head, _separator, value = part[: 2 * _MAX_HEAD].partition(b"\r\n\r\n")
        if len(head) < _MAX_HEAD and wanted.search(head):
            return value.removesuffix(b"\r\n").decode("utf-8", "replace").strip()
    return None


def _read_json(body: bytes) -> dict[str, Any]:
    try:
        content = read_json(body)
    except ValueError as error:  # too deep and half a surrogate pair, too
        raise ProblemError(400, _("The body is not valid JSON ({error}).", error=str(error)[:80])) from None
    if not isinstance(content, dict):
        raise ProblemError(400, _('The body is not a JSON object such as {"q": "…"}.'))
    return content


def read_form(body: bytes) -> list[tuple[str, str]]:
    """Return the fields of a form; raise a ProblemError if it has too many or is not UTF-8."""
    try:
        # curl sends UTF-8 as it is, browsers send it percent-encoded.
        text = body.decode()
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
    except UnicodeDecodeError:
        raise ProblemError(400, _("The form is not valid UTF-8.")) from None
    except ValueError:
        raise ProblemError(400, _("The form has more than {n_fields} fields.", n_fields=_MAX_FIELDS)) from None


async def _read_multipart(request: Request) -> list[tuple[str, str]]:
    n_bytes = len(await request.body())  # which the service has limited
    try:
        async with request.form(max_files=1, max_fields=_MAX_FIELDS, max_part_size=max(1, n_bytes)) as form:
            items = form.multi_items()
    except HTTPException as error:
        raise ProblemError(400, _("The form cannot be read ({detail}).", detail=str(error.detail)[:80])) from None
    except UnicodeDecodeError:
        raise ProblemError(400, _("The form is not valid UTF-8.")) from None
    fields = []
    for name, value in items:
        if isinstance(value, UploadFile):
            raise ProblemError(400, _("{name} is a file. Send its text as a field.", name=name[:40]))
        fields.append((name, value))
    return fields


def _merged(fields: Iterable[tuple[str, str]], request: Request) -> dict[str, Any]:
    """Return the fields of a form, and of the query those that the form does not have."""
    merged: dict[str, Any] = {}
    for name, value in fields:
        if name not in merged:
            merged[name] = value
        else:
            merged[name] = [*merged[name], value] if isinstance(merged[name], list) else [merged[name], value]
    return {**request.query_params, **merged}


def _described(error: ValidationError) -> str:
    """Say what is wrong in one line, without the values, which may be text of users."""
    faults: Iterable[Mapping[str, Any]] = error.errors(include_url=False, include_context=False, include_input=False)
    lines = []
    for fault in faults:
        first, *rest = fault["loc"] or ("body",)
        name = ".".join([str(first)[:40], *(str(part) for part in rest if isinstance(part, int))])
        if fault["type"] == "missing":
            lines.append(_("missing {name} parameter", name=name))
        elif fault["type"] == "extra_forbidden":
            lines.append(_("unknown parameter {name}", name=name))
        else:
            lines.append(f"{name}: {fault['msg']}")
    return _("Invalid request: {faults}", faults="; ".join(dict.fromkeys(lines)))[:_MAX_SHOWN]


class BodyRoute(APIRoute):
    """A route of an endpoint with one parameter, a pydantic model of the body.

    FastAPI documents it like any other. Its resolution of dependencies, of which there are none here, takes a fifth of
    the HTTP process' time for a short text.
    """

    async def answer(self, request: Request) -> Any:
        """Call the endpoint with the body."""
        body = await request.body()
        return await self.endpoint(_validated(self.body_model, body, request.headers.get("content-type", "")))

    @cached_property
    def body_model(self) -> type[BaseModel]:
        """The model of the body."""
        (parameter,) = inspect.signature(self.endpoint).parameters.values()
        model: type[BaseModel] = parameter.annotation
        return model

    def get_route_handler(self) -> Callable[[Request], Any]:
        """Return the handler."""
        return self.answer


def _validated(model: type[BaseModel], body: bytes, content_type: str) -> BaseModel:
    """Return the body as a model; raise what FastAPI would raise."""
    kind = content_type.partition(";")[0].strip().lower()
    is_json = kind.startswith("application/") and (kind == "application/json" or kind.endswith("+json"))
    if not body or not is_json:
        raise RequestValidationError([{"type": "missing", "loc": ("body",), "msg": "Field required"}])
    try:
        return model.model_validate(read_json(body))
    except ValidationError as error:
        faults = [{**fault, "loc": ("body", *fault["loc"])} for fault in error.errors(include_url=False)]
        raise RequestValidationError(faults) from None
    except ValueError:  # not UTF-8, a number with too many digits, too deeply nested, half a surrogate pair
        raise HTTPException(400) from None
