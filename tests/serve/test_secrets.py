"""No answer, header, log line, metric, error or saved page of a server has a word of the owner's data, or a path.

A server is asked for everything that it has a route for, while every file around its bundles is marked. A new route
fails the test until `walk` asks for it.
"""

import re
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from starlette.routing import BaseRoute, Mount, Route

from manyheads.serve.lens_page.lens_app import make_app
from manyheads.serve.lens_page.lens_session import LensSession, TraceRequest
from manyheads.serve.service.access import Access
from manyheads.serve.service.service import Service
from manyheads.serve.service.service_app import DirectRoutes, make_service_app
from manyheads.serve.service.settings import ServeSettings

from lens.makers import TEXTS
from serve.marked_bundles import (
    BROKEN,
    MARKS,
    NAMES,
    VISITOR,
    damage,
    make_bundles,
    opened_files,
    recording,
)
from serve.service_process import Answer, ServiceProcess, serving_process

SECONDS = 300  # until a survey of heads is ready, on a very busy machine
LENS = "/lens/{bundle}"
LENSES = tuple(name for name in NAMES if name != BROKEN)  # bundles whose pages are walked
PATHS = {  # that no answer contains
    "temporary files": f"{tempfile.gettempdir()}/",
    "sources": str(Path(__file__).parents[2]),
    "packages": sys.prefix,
}
Call = tuple[str, str]  # method and path of a route


def routes_of(routes: Iterable[BaseRoute], prefix: str = "") -> Iterator[Call]:
    """Yield the method and the path of each route; recent versions of FastAPI keep included routers as they are."""
    for route in routes:
        if (included := getattr(route, "original_router", None)) is not None:
            yield from routes_of(included.routes, prefix)
        elif isinstance(route, Mount):
            assert route.path == "/lens", "a mounted application of which this test knows no route"
            yield from routes_of(make_app(LensSession([])).routes, LENS)
        else:
            assert isinstance(route, Route)
            for method in sorted((route.methods or set()) - {"HEAD"}):
                yield method, prefix + route.path


def all_routes() -> set[Call]:
    app = make_service_app(Service({}, ServeSettings()), Access({}, None)).app
    return set(routes_of(cast(FastAPI, cast(DirectRoutes, app).app).routes))


@dataclass
class Walker:
    """Asks a server, and keeps all answers."""

    service: ServiceProcess
    answers: list[tuple[str, bytes]] = field(default_factory=list)  # the request, and headers with content
    asked: set[Call] = field(default_factory=set)
    answered: set[Call] = field(default_factory=set)  # with 200

    def ask(self, call: Call, body: Any = None, search: str = "", **values: object) -> Answer:
        """Send a request to a route; `values` are the parameters of its path."""
        method, path = call
        filled = re.sub(r"{(\w+)(?::\w+)?}", lambda match: quote(str(values[match[1]]), safe=""), path)
        answer = self.service.request(filled + search, body, method=method)
        headers = "".join(f"{name}: {value}\n" for name, value in answer.headers.items())
        self.answers.append((f"{method} {filled}{search}", headers.encode() + answer.content))
        self.asked.add(call)
        if answer.status == 200:
            self.answered.add(call)
        return answer

    def wait(self, call: Call, **values: object) -> Any:
        """Ask until a computation in the background is finished."""
        deadline = time.monotonic() + SECONDS
        while (answer := self.ask(call, **values).json)["state"] == "running":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return answer

    def found(self, words: Mapping[str, str]) -> dict[str, list[str]]:
        """Return the requests whose answers have these words, by the name of the word."""
        has = {
            name: [request for request, content in self.answers if word.encode() in content]
            for name, word in words.items()
        }
        return {name: requests for name, requests in has.items() if requests}


def walk(walker: Walker) -> None:
    """Ask for everything, correctly and wrongly."""
    send_texts(walker, "the cat sat")
    walk_service(walker)
    for bundle in LENSES:
        walk_lens(walker, bundle)
    for bundle in (BROKEN, "none"):
        walker.ask(("GET", f"{LENS}/"), bundle=bundle)
        walker.ask(("GET", f"{LENS}/api/model"), bundle=bundle)
    walker.ask(("GET", "/metrics"))


def with_mask(text: str) -> str:
    """Return a text that a masked model answers, too."""
    return f"{text} [MASK]"


def send_texts(walker: Walker, text: str) -> None:
    """Send a text to every route that takes one."""
    ask, text = walker.ask, with_mask(text)
    for bundle in (*NAMES, "none"):
        for fields in ({}, {"align": True, "n_best": 2}, {"stream": True}, {"format": "html"}, {"decode": {"x": 1}}):
            ask(("POST", "/v1/predict"), {"bundle": bundle, "texts": [text], **fields})
    for model in ("language", "seq2seq", "none"):
        ask(("POST", "/v1/completions"), {"model": model, "prompt": text, "max_tokens": 4})
        ask(("POST", "/v1/embeddings"), {"model": model, "input": text})
        ask(("POST", "/v1/chat/completions"), {"model": model, "messages": [{"role": "user", "content": text}]})
    for path in ("/translate", "/detect"):
        ask(("POST", path), {"q": text, "source": "en", "target": "zh", "alternatives": 2})
        ask(("POST", path), {"q": text, "source": "xx", "target": "yy"})
        ask(("POST", path), text.encode())
    ask(("POST", "/v1/predict"), text.encode())
    for bundle in LENSES:
        ask(("POST", f"{LENS}/api/trace"), {"text": text}, bundle=bundle)


def walk_service(walker: Walker) -> None:
    ask = walker.ask
    for path in (
        "/",
        "/docs",
        "/docs/start.js",
        "/openapi.json",
        "/live",
        "/ready",
        "/health",
        "/metrics",
        "/languages",
    ):
        ask(("GET", path))
    for path in ("/frontend/settings", "/v1/bundles", "/v1/models"):
        ask(("GET", path))
    for path, good in (("/static/{folder}/{name}", "playground.js"), ("/docs/{name}", "swagger-ui.css")):
        for name in (good, "none", "../bundle.py", "../report.html", "../../passwd", "/etc/passwd"):
            ask(("GET", path), name=name, folder="playground")
    for model in ("language", "none", "../seq2seq"):
        ask(("GET", "/v1/models/{model:path}"), model=model)
    for bundle in ("seq2seq", BROKEN, "none"):
        ask(("POST", "/v1/bundles/{name}/reload"), {}, name=bundle)


def walk_lens(walker: Walker, bundle: str) -> None:
    def ask(method: str, path: str, body: Any = None, search: str = "", **values: object) -> Answer:
        return walker.ask((method, LENS + path), body, search, bundle=bundle, **values)

    def wait(path: str, **values: object) -> Any:
        return walker.wait(("GET", LENS + path), bundle=bundle, **values)

    for name in ("lens.js", "none", "../lens.html", "bundle.json", "recipe.toml"):
        ask("GET", "/{folder}/{name}", folder="lens", name=name)
    ask("GET", "/")
    (info,) = ask("GET", "/api/model").json["bundles"]
    text = TEXTS.get(bundle, TEXTS["language"])
    for wrong in ({}, {"text": ""}, {"text": text, "bundle": "b"}, {"text": text, "step": 10}, {"text": "a" * 20_001}):
        ask("POST", "/api/trace", wrong)
    wait("/api/heads")
    wait("/api/timeline")
    heads = [(one["name"], number) for one in info["attentions"] for number in range(one["n_heads"])]
    for attention, number in heads:
        ask("GET", "/api/heads/{attention}/{number:int}/examples", attention=attention, number=number)
    attention, number = heads[0]
    place = {"attention": attention, "number": number}
    wait("/api/heads/{attention}/{number:int}/effect", **place)
    trace = ask("POST", "/api/trace", {"text": text}).json
    id = trace["id"]
    ask("POST", "/api/ablate", {"trace": id, "heads": [f"{attention}/{number}"]})
    ask("POST", "/api/importance", {"trace": id})
    ask("POST", "/api/contrast", contrast(trace))
    ask("GET", "/api/traces/{id}/heads/{attention}/{number:int}/{kind}", id=id, kind="weights", **place)
    ask("GET", "/api/traces/{id}/walk/{attention}/{number:int}/{query:int}", id=id, query=0, **place)
    for form in ("svg", "png", "pdf", "gif"):
        picture = "/api/traces/{id}/picture/{attention}/{number:int}"
        ask("GET", picture, search=f"?format={form}", id=id, **place)
    ask("GET", "/api/traces/{id}/page.html", id=id)
    ask("GET", "/api/traces/{id}/page.html", id=TraceRequest("a", with_mask(VISITOR)).id())  # a guess


def contrast(trace: dict[str, Any]) -> dict[str, Any]:
    """Return a question that a model can answer: why its first token, or its label, and not the next best."""
    output = trace["output"]
    if tokens := output.get("tokens"):
        return {"trace": trace["id"], "position": output["first"], "instead": tokens[0]["alternatives"][1]["id"]}
    return {"trace": trace["id"], "position": 0, "instead": "b"}


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_bundles(tmp_path_factory.mktemp("marked"))


def walked(bundles: dict[str, Path], folder: Path, *options: str) -> tuple[Walker, Walker, str, set[Path]]:
    """Let one visitor send marked texts and another one walk; return both, the log and the files that were opened."""
    root = bundles["seq2seq"].parents[1]
    names = [f"{name}={path}" for name, path in bundles.items()]
    environment = recording(folder, root)
    weights = bundles[BROKEN] / "weights.safetensors"
    sound = weights.read_bytes()
    with serving_process(*names, log=folder / "log", environment=environment, options=("--log", *options)) as service:
        first, second = Walker(service), Walker(service)
        damage(bundles[BROKEN])
        send_texts(first, VISITOR)
        walk(second)
    weights.write_bytes(sound)
    return first, second, (folder / "log").read_text("utf-8"), opened_files(folder)


def test_a_server_shows_nothing_of_the_owner(bundles: dict[str, Path], tmp_path: Path) -> None:
    first, second, log, opened = walked(bundles, tmp_path)
    assert second.asked == all_routes()
    # Chats are not offered, and no bundle gives vectors.
    assert second.asked - second.answered == {("POST", "/v1/chat/completions"), ("POST", "/v1/embeddings")}
    assert first.found(MARKS | PATHS) == {}
    assert second.found(MARKS | PATHS | {"another visitor": VISITOR}) == {}
    assert [word for word in (*MARKS.values(), *PATHS.values(), VISITOR) if word in log] == []
    assert opened  # the recorder works
    assert [path for path in opened if not any(path.is_relative_to(folder) for folder in bundles.values())] == []


def test_a_server_that_shares_examples_shows_them(bundles: dict[str, Path], tmp_path: Path) -> None:
    """The walker finds what is shown, in every place where it can be."""
    _, walker, _, opened = walked(bundles, tmp_path, "--share-examples")
    found = walker.found(MARKS)
    shown = [*found["valid"], *found["secret"]]
    for name in LENSES:
        for route in ("api/model", "api/heads/.*/examples", "api/traces/.*/page.html"):
            assert any(re.fullmatch(f"GET /lens/{name}/{route}", request) for request in shown), (name, route)
    assert {path.name for path in opened} >= {"passwd", "seq2seq-valid.tsv"}
