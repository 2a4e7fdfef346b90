"""/docs in a browser that can reach nothing but this machine."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from manyheads.serve.service import offline_docs
from manyheads.serve.service.completions_api import completions_router
from manyheads.serve.service.libretranslate_api import libretranslate_router
from manyheads.serve.service.offline_docs import CONTENT_SECURITY_POLICY, docs_router

from serve.fake_service import FakeService, app_of, client_of, listening, translator, writer

DARK = "rgb(28, 32, 34)"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    service = FakeService(translator("en", "zh"), writer()).service
    with listening(app_of(docs_router(service), libretranslate_router(service), completions_router(service))) as found:
        yield found


def expect_darkness(page: Page, is_dark: bool) -> None:
    page.locator("html.dark-mode" if is_dark else "html:not(.dark-mode)").wait_for()
    background = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (background == DARK) is is_dark


def test_routes_are_read_and_tried_without_a_request_to_another_server(browser: Browser, address: str) -> None:
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    requests: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{address}/docs")
    page.locator(".opblock").first.wait_for()
    expect_darkness(page, True)
    page.emulate_media(color_scheme="light")
    expect_darkness(page, False)
    page.emulate_media(color_scheme="dark")
    expect_darkness(page, True)
    shown = page.locator(".opblock-summary-path").all_inner_texts()
    paths = {re.sub(r"[\u200b\s]", "", path) for path in shown}
    assert {"/translate", "/detect", "/languages", "/v1/completions", "/v1/models"} <= paths
    page.locator(".opblock", has_text="/v1/completions").locator(".opblock-summary-control").click()
    page.locator(".opblock-body", has_text="Continue prompts.").wait_for()
    assert page.locator(".errors-wrapper").count() == 0

    block = page.locator(".opblock", has_text="/languages")
    block.locator(".opblock-summary-control").click()
    block.get_by_role("button", name="Try it out").click()
    block.get_by_role("button", name="Execute").click()
    answer = block.locator(".responses-table.live-responses-table").inner_text()
    assert '"code": "en"' in answer
    assert [url for url in requests if not url.startswith((address, "data:", "blob:"))] == []
    assert complaints == []

    page.set_viewport_size({"width": 390, "height": 844})  # a phone
    page.reload()
    page.locator(".opblock").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    expect_darkness(page, True)  # a page that starts in the dark, and one that starts in the light
    page.emulate_media(color_scheme="light")
    page.reload()
    expect_darkness(page, False)
    context.close()


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
