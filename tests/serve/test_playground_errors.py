"""When something goes wrong in the playground: one clear line, and nothing that was typed is lost."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Route, expect

from serve.axe import serious_faults
from serve.conftest import OpenPlay
from serve.playground_pages import CAT, TEXTS
from serve.service_process import serving_process

KEY = "a-key-for-these-tests"
ATTACK = "<img src=x onerror=alert(1)>\"'</script><script>document.title='owned'</script>&amp;"


def test_the_key_is_asked_for_once_and_a_server_that_is_gone_is_reported(
    playground: OpenPlay, trained: Callable[[str], Path], tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"{KEY}\n")
    with serving_process(f"tag={trained('tag')}", log=tmp_path / "log", options=("--keys", str(keys))) as service:
        opened = playground(address=service.address)
        opened.allow("401|ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET")
        page = opened.page
        page.goto(service.address)
        expect(page.get_by_role("alert")).to_have_text("This server needs an API key.")
        page.get_by_label("API key").fill("wrong-key-wrong-key")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_have_text("The server does not accept this key.")
        page.get_by_label("API key").fill(KEY)
        page.get_by_role("button", name="Use this key").click()
        opened.answer(TEXTS["tag"])
        expect(page.locator("mark.play-entity").first).to_be_visible()
        command = opened.open_part("curl").locator("code").text_content() or ""
        assert "$MANYHEADS_KEY" in command and KEY not in command
        expect(page.get_by_role("link", name="Lens")).to_have_count(0)  # a server with keys has no lens page
        page.reload()
        expect(page.locator("mark.play-entity").first).to_be_visible()
        assert KEY not in page.url
    opened.field.fill("Anna is in Paris.")
    expect(page.get_by_role("alert")).to_have_text(
        re.compile("No answer from the server.*previous result is still shown")
    )
    expect(page.locator("mark.play-entity").first).to_be_visible()
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    assert opened.field.input_value() == "Anna is in Paris."


def test_a_busy_server_is_asked_again_after_a_countdown(playground: OpenPlay) -> None:
    opened = playground()
    opened.allow("429")
    page = opened.start()
    asked = []

    def refuse_once(route: Route) -> None:
        asked.append(route)
        if len(asked) > 1:
            route.continue_()
            return
        problem = {"title": "Too Many Requests", "status": 429, "detail": "The queue is full."}
        headers = {"Retry-After": "30"}
        route.fulfill(status=429, json=problem, content_type="application/problem+json", headers=headers)

    page.route("**/v1/predict", refuse_once)
    opened.stop_clock()
    opened.field.fill("猫")
    page.clock.run_for(300)
    expect(page.get_by_role("alert")).to_have_text(re.compile("^The queue is full. Trying again in (30|29) s.$"))
    opened.field.fill(CAT)  # while it waits, nothing is sent
    page.clock.run_for(10_000)
    expect(page.get_by_role("alert")).to_have_text(re.compile("Trying again in (20|19) s.$"))
    assert len(asked) == 1
    page.clock.run_for(21_000)
    expect(opened.output.locator(".play-word").first).to_be_visible()
    expect(page.get_by_role("alert").filter(has_text="Trying")).to_have_count(0)
    assert opened.bodies[-1]["texts"] == [CAT]


def test_the_detail_of_a_problem_is_shown_as_it_is(playground: OpenPlay) -> None:
    opened = playground()
    opened.allow("status of 4(13|22)")
    page = opened.start()
    opened.answer(CAT)
    opened.field.fill("猫" * 20_001)
    alert = page.get_by_role("alert").filter(has_text="20,001")
    expect(alert).to_have_text(re.compile("20,001 characters; at most 20,000 are allowed. The previous result"))
    assert serious_faults(page) == []
    opened.answer(CAT)
    expect(alert).to_have_count(0)
    beam = opened.open_part("Options")
    beam.get_by_label("Search").select_option("beam")
    beam.get_by_label("Beam size").fill("200")
    expect(page.get_by_role("alert").filter(has_text="decode.beam = 200")).to_be_visible()
    beam.get_by_label("Beam size").fill("0")
    expect(page.get_by_text("Beam size must be a number from 1 to 256.")).to_be_visible()
    beam.get_by_label("Beam size").fill("2")
    expect(page.get_by_role("alert").filter(has_text=re.compile("."))).to_have_count(0)


@pytest.mark.parametrize("answer", ["", "<html>", '{"bundle": "x"}'])
def test_an_answer_that_is_none_is_reported(playground: OpenPlay, answer: str) -> None:
    opened = playground()
    opened.allow("status of 502")
    page = opened.start()
    status = 200 if answer.startswith("{") else 502
    page.route("**/v1/predict", lambda route: route.fulfill(status=status, body=answer))
    opened.field.fill(CAT)
    said = "has no prediction" if status == 200 else "The server answered with status 502."
    expect(page.get_by_role("alert").filter(has_text=said)).to_be_visible()


def test_a_stream_that_breaks_keeps_what_was_written(playground: OpenPlay) -> None:
    opened = playground()
    page = opened.start("language")
    body = 'data: {"delta": "猫"}\n\ndata: {"delta": "在"}\n\n'
    page.route("**/v1/predict", lambda route: route.fulfill(content_type="text/event-stream", body=body))
    opened.field.fill("一只")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert").filter(has_text="No answer from the server.")).to_be_visible()
    expect(opened.words).to_have_text("一只猫在")
    failed = 'data: {"delta": "狗"}\n\ndata: {"error": {"status": 504, "detail": "Too slow."}}\n\ndata: [DONE]\n\n'
    page.route("**/v1/predict", lambda route: route.fulfill(content_type="text/event-stream", body=failed))
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("alert").filter(has_text="Too slow.")).to_be_visible()
    expect(opened.words).to_have_text("一只狗")


@pytest.mark.parametrize("task", ["seq2seq", "tag", "classify"])
def test_text_stays_text(playground: OpenPlay, task: str) -> None:
    opened = playground()
    page = opened.start(task)
    opened.answer(ATTACK)
    page.get_by_role("button", name="中文").click()
    expect(page.locator("#app img")).to_have_count(0)
    assert page.title() == f"{task} · manyheads"
    assert opened.field.input_value() == ATTACK


def test_an_address_of_an_unknown_bundle_leads_to_the_first(playground: OpenPlay) -> None:
    opened = playground()
    page = opened.start("nothing", lang="fr", surprise="1")
    expect(page.get_by_role("heading", level=1)).to_have_text("seq2seq")
    opened.expect_state(bundle="seq2seq", lang="en")
