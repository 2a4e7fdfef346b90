"""The lens pages of a server: where they are, and what opens them."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount
from starlette.testclient import TestClient

from manyheads.errors import BundleError
from manyheads.serve.lens_page import lens_app, lens_model, lens_session
from manyheads.serve.service.lens_pages import LensPages
from manyheads.serve.service.service import Service
from manyheads.serve.service.settings import ServeSettings

from own_thread import in_own_thread
from serve.fake_service import translator


class TwoBundles:
    """What the pages ask of a service."""

    find = Service.find

    def __init__(self) -> None:
        self.bundles = {name: translator("zh", "en", name) for name in ("first", "second")}
        self.pool = SimpleNamespace(folders={"first": "/secret/run/bundle", "second": "/secret/other"})
        self.settings = ServeSettings(host="192.0.2.7", allowed_hosts=("mh.example",))


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was opened: the folder, the secret of its session and the hosts of its page."""
    found: list[Any] = []

    def open_served(path: Path, name: str, *, share_examples: bool) -> Any:
        if name == "second":
            raise BundleError(f"{path} is damaged.")
        return path

    def make_app(session: Any, hosts: set[str]) -> Any:
        found.append((*session, hosts))
        return PlainTextResponse("page")

    monkeypatch.setattr(lens_model.LensModel, "open_served", open_served)
    monkeypatch.setattr(lens_session, "LensSession", lambda bundles, secret=b"": (bundles[0], secret))
    monkeypatch.setattr(lens_app, "make_app", make_app)
    return found


def client_of(service: TwoBundles, *, is_enabled: bool = True) -> TestClient:
    pages = in_own_thread(lambda: LensPages(cast(Service, service), is_enabled=is_enabled))()
    return TestClient(Starlette(routes=[Mount("/lens", pages)]), follow_redirects=False)


def test_the_root_leads_to_the_first_bundle(opens: list[Any]) -> None:
    client = client_of(TwoBundles())
    for path, target in (("/lens/", "/lens/first/"), ("/lens/second", "/lens/second/")):
        answer = client.get(path)
        assert (answer.status_code, answer.headers["location"]) == (307, target)
    assert opens == []


def test_a_bundle_is_opened_once_for_each_version_and_with_a_secret_of_its_own(opens: list[Any]) -> None:
    service = TwoBundles()
    client = client_of(service)
    for _ in range(2):
        assert client.get("/lens/first/").text == "page"
    ((path, secret, hosts),) = opens
    assert (path, hosts) == (Path("/secret/run/bundle"), {"192.0.2.7", "mh.example"})
    assert len(secret) >= 16
    service.bundles["first"] = replace(service.bundles["first"], version="another")
    assert client.get("/lens/first/").text == "page"
    assert len({opened[1] for opened in opens}) == 2


def test_what_cannot_be_opened_is_named_without_its_folder(opens: list[Any]) -> None:
    client = client_of(TwoBundles())
    damaged, unknown = client.get("/lens/second/"), client.get("/lens/third/")
    assert (damaged.status_code, unknown.status_code) == (503, 404)
    assert "is damaged" in damaged.json()["detail"] and "/secret" not in damaged.text
    assert "there is no bundle 'third'" in unknown.json()["detail"]


def test_a_server_that_needs_keys_has_no_pages(opens: list[Any]) -> None:
    answer = client_of(TwoBundles(), is_enabled=False).get("/lens/first/")
    assert answer.status_code == 404
    assert "manyheads lens BUNDLE" in answer.json()["detail"]
    assert opens == []
