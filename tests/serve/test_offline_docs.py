"""/docs in a browser that can reach nothing but this machine."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from manyheads.serve import offline_docs
from manyheads.serve.completions_api import completions_router
from manyheads.serve.libretranslate_api import libretranslate_router
from manyheads.serve.offline_docs import CONTENT_SECURITY_POLICY, docs_router

from serve.fake_service import FakeService, app_of, client_of, listening, translator, writer

DARK = "rgb(28, 32, 34)"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    service = FakeService(translator("en", "zh"), writer()).service
    with listening(app_of(docs_router(service), libretranslate_router(service), completions_router(service))) as found:
        yield found


class Visit:
    """A page of /docs, and everything it asked for or complained about."""

    def __init__(self, browser: Browser, address: str, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page: Page = self.context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(f"{address}/docs")
        self.page.locator(".opblock").first.wait_for()

    def wait_for_darkness(self, is_dark: bool) -> None:
        self.page.locator("html.dark-mode" if is_dark else "html:not(.dark-mode)").wait_for()
        background = self.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert (background == DARK) is is_dark


def test_every_route_is_shown_without_a_request_to_another_server(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    shown = visit.page.locator(".opblock-summary-path").all_inner_texts()
    paths = {re.sub(r"[\u200b\s]", "", path) for path in shown}
    assert {"/translate", "/detect", "/languages", "/v1/completions", "/v1/models"} <= paths
    visit.page.locator(".opblock", has_text="/v1/completions").locator(".opblock-summary-control").click()
    visit.page.locator(".opblock-body", has_text="Continue prompts.").wait_for()
    assert visit.page.locator(".errors-wrapper").count() == 0
    outside = [url for url in visit.requests if not url.startswith((address, "data:", "blob:"))]
    assert outside == []
    assert visit.complaints == []
    visit.context.close()


def test_a_request_can_be_tried_on_the_page(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    block = visit.page.locator(".opblock", has_text="/languages")
    block.locator(".opblock-summary-control").click()
    block.get_by_role("button", name="Try it out").click()
    block.get_by_role("button", name="Execute").click()
    answer = block.locator(".responses-table.live-responses-table").inner_text()
    assert '"code": "en"' in answer
    assert visit.complaints == []
    visit.context.close()


@pytest.mark.parametrize(("scheme", "is_dark"), [("dark", True), ("light", False)])
def test_the_page_follows_the_color_scheme(browser: Browser, address: str, scheme: Any, is_dark: bool) -> None:
    visit = Visit(browser, address, color_scheme=scheme)
    visit.wait_for_darkness(is_dark)
    visit.page.emulate_media(color_scheme="light" if is_dark else "dark")
    visit.wait_for_darkness(not is_dark)
    assert visit.complaints == []
    visit.context.close()


def test_the_page_fits_a_phone(browser: Browser, address: str) -> None:
    visit = Visit(browser, address, viewport={"width": 390, "height": 844})
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 390
    visit.context.close()


def test_the_policy_of_the_page_allows_only_this_server() -> None:
    client = client_of(docs_router(FakeService().service))
    answer = client.get("/docs")
    assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert "http" not in CONTENT_SECURITY_POLICY
    assert "script-src 'self';" in CONTENT_SECURITY_POLICY
    assert re.findall(r'(?:src|href)="(?!docs/|openapi\.json|data:)', answer.text) == []
    assert client.get("/docs/swagger-ui.css").headers["content-type"].startswith("text/css")


def test_only_files_of_the_page_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    offline_docs._read.cache_clear()
    service = FakeService().service
    with pytest.raises(offline_docs.ProblemError, match="no such file"):
        client_of(docs_router(service)).get("/docs/redoc.standalone.js")
    monkeypatch.setattr(offline_docs, "_PACKAGE", "no_such_package")
    with pytest.raises(offline_docs.ProblemError, match=r'pip install "manyheads\[serve\]"'):
        client_of(docs_router(service)).get("/docs/swagger-ui.css")
