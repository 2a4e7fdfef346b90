"""Clients from PyPI against a real server with real (tiny) bundles: libretranslatepy and openai."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.error import HTTPError

import openai
import pytest
from libretranslatepy import LibreTranslateAPI
from openai import OpenAI

from manyheads import bundle as bundles

from serve.service_process import ServiceProcess, serving_process

CHINESE = "两只猫在睡觉。"
ENGLISH = "Two cats are sleeping."
KEY = "a-key-for-these-tests-only"


@pytest.fixture
def libretranslate(service: ServiceProcess) -> LibreTranslateAPI:
    return LibreTranslateAPI(service.address)


@pytest.fixture
def client(service: ServiceProcess) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{service.address}v1", api_key="not needed", max_retries=0) as opened:
        yield opened


def error_of(caught: pytest.ExceptionInfo[HTTPError]) -> str:
    with caught.value as answer:
        return str(json.loads(answer.read())["error"])


def test_libretranslatepy_gets_what_the_bundle_answers(
    libretranslate: LibreTranslateAPI, trained: Callable[[str], Path]
) -> None:
    (expected,) = bundles.load(trained("seq2seq")).predict([CHINESE])
    assert libretranslate.translate(CHINESE, "zh", "en") == expected
    assert libretranslate.translate(CHINESE, "zh-Hans", "en-US") == expected
    assert libretranslate.translate(CHINESE, "auto", "en") == expected
    assert libretranslate.translate(ENGLISH, "auto", "en") == ENGLISH


def test_libretranslatepy_detects_and_lists_languages(libretranslate: LibreTranslateAPI) -> None:
    assert libretranslate.detect(CHINESE)[0]["language"] == "zh"
    assert libretranslate.detect(ENGLISH)[0]["language"] == "en"
    assert libretranslate.languages() == [
        {"code": "en", "name": "English", "targets": ["en"]},
        {"code": "zh", "name": "Chinese", "targets": ["en", "zh"]},
    ]


def test_libretranslatepy_gets_errors_as_from_libretranslate(libretranslate: LibreTranslateAPI) -> None:
    with pytest.raises(HTTPError) as caught:
        libretranslate.translate(CHINESE, "zh", "fr")
    assert caught.value.code == 400
    assert error_of(caught) == "fr is not supported. Supported: zh → en."
    with pytest.raises(HTTPError) as caught:
        libretranslate.translate("猫" * 20_001, "zh", "en")
    assert caught.value.code == 413
    assert "20,001 characters" in error_of(caught)


def test_tags_of_html_stay(service: ServiceProcess) -> None:
    fields = {"q": f'<p class="a">{CHINESE}</p><br/>', "source": "auto", "target": "en", "format": "html"}
    answer = service.request("/translate", fields).json
    assert re.fullmatch(r'<p class="a">[^<>]+</p><br/>', answer["translatedText"])
    assert answer["detectedLanguage"]["language"] == "zh"


def test_alternatives_of_a_list(service: ServiceProcess) -> None:
    fields = {"q": [CHINESE, "狗在跑。", "！？"], "source": "zh", "target": "en", "alternatives": 2}
    answer = service.request("/translate", fields).json
    assert [type(text) for text in answer["translatedText"]] == [str] * 3
    assert answer["translatedText"][2] == "！？"
    assert [len(texts) for texts in answer["alternatives"]] == [2, 2, 0]
    for text, others in zip(answer["translatedText"], answer["alternatives"], strict=True):
        assert len({text, *others}) == 1 + len(others)


def test_the_openai_client_gets_what_the_bundle_continues(client: OpenAI, trained: Callable[[str], Path]) -> None:
    prompts = ["猫", "他喜欢"]
    expected = bundles.load(trained("language")).predict(prompts, method="greedy", max_new_tokens=12)
    answer = client.completions.create(model="language", prompt=prompts, temperature=0, max_tokens=12)
    assert [choice.text for choice in answer.choices] == expected
    assert [choice.index for choice in answer.choices] == [0, 1]
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert 0 < answer.usage.completion_tokens <= 2 * 12 + 2  # of the text, tokenized again


def test_a_seed_repeats_samples_and_another_does_not(client: OpenAI) -> None:
    def sampled(seed: int) -> list[str]:
        answer = client.completions.create(model="language", prompt="猫", max_tokens=20, n=3, seed=seed)
        return [choice.text for choice in answer.choices]

    assert sampled(7) == sampled(7)
    assert sampled(7) != sampled(8)
    assert len(set(sampled(7))) == 3


@pytest.mark.parametrize("temperature", [0, 0.8])
def test_a_stream_is_the_completion_in_parts(client: OpenAI, temperature: float) -> None:
    whole = client.completions.create(
        model="language", prompt="他", max_tokens=15, temperature=temperature, seed=3, echo=True
    )
    with client.completions.create(
        model="language",
        prompt="他",
        max_tokens=15,
        temperature=temperature,
        seed=3,
        echo=True,
        stream=True,
        stream_options={"include_usage": True},
    ) as stream:
        chunks = list(stream)
    assert "".join(chunk.choices[0].text for chunk in chunks[:-1]) == whole.choices[0].text
    assert len(chunks) > 4
    assert chunks[-2].choices[0].finish_reason == whole.choices[0].finish_reason
    assert chunks[-1].usage == whole.usage


def test_a_stop_text_ends_a_completion_and_a_stream(client: OpenAI) -> None:
    free = client.completions.create(model="language", prompt="他", max_tokens=40, temperature=0).choices[0].text
    stop = free[3:5]
    expected = free[: free.index(stop)]
    whole = client.completions.create(model="language", prompt="他", max_tokens=40, temperature=0, stop=stop)
    assert (whole.choices[0].text, whole.choices[0].finish_reason) == (expected, "stop")
    with client.completions.create(
        model="language", prompt="他", max_tokens=40, temperature=0, stop=[stop], stream=True
    ) as stream:
        chunks = list(stream)
    assert "".join(chunk.choices[0].text for chunk in chunks) == expected
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_a_stream_that_is_closed_early_leaves_the_server_working(client: OpenAI) -> None:
    for _ in range(40):  # more than may be open at once
        with client.completions.create(model="language", prompt="他", max_tokens=500, stream=True) as stream:
            assert next(iter(stream)).choices[0].index == 0
    assert client.completions.create(model="language", prompt="他", max_tokens=1).choices


def test_models(client: OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["language"]
    assert client.models.retrieve("language").owned_by == "manyheads"


def test_the_openai_client_understands_errors(client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        client.completions.create(model="seq2seq", prompt="a")
    assert missing.value.code == "model_not_found"
    assert "Models: language." in missing.value.message
    with pytest.raises(openai.BadRequestError) as refused:
        client.completions.create(model="language", prompt="a", logprobs=3)
    assert refused.value.param == "logprobs"
    with pytest.raises(openai.BadRequestError, match="at most 1,024"):
        client.completions.create(model="language", prompt="a", max_tokens=5000)


def test_both_clients_send_their_key(trained: Callable[[str], Path], tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"tests: {KEY}\n")
    bundles_served = [f"{task}={trained(task)}" for task in ("seq2seq", "language")]
    options = ("--keys", str(tmp_path / "keys"))
    with serving_process(*bundles_served, log=tmp_path / "log", options=options) as service:
        known, unknown = LibreTranslateAPI(service.address, KEY), LibreTranslateAPI(service.address, "wrong")
        assert isinstance(known.translate(CHINESE, "zh", "en"), str)
        assert known.detect(CHINESE)[0]["language"] == "zh"
        assert known.languages() == unknown.languages()
        assert service.request("/frontend/settings").json["keyRequired"] is True
        with pytest.raises(HTTPError) as caught:
            unknown.translate(CHINESE, "zh", "en")
        assert caught.value.code == 401
        assert "not valid" in error_of(caught)
        form = f'--x\r\nContent-Disposition: form-data; name="api_key"\r\n\r\n{KEY}\r\n--x--\r\n'.encode()
        answer = service.request("/detect", form, {"Content-Type": "multipart/form-data; boundary=x"})
        assert (answer.status, answer.json) == (400, {"error": "Invalid request: missing q parameter"})
        with OpenAI(base_url=f"{service.address}v1", api_key=KEY, max_retries=0) as client:
            assert client.completions.create(model="language", prompt="他", max_tokens=1).choices
        with (
            OpenAI(base_url=f"{service.address}v1", api_key="wrong", max_retries=0) as client,
            pytest.raises(openai.AuthenticationError) as refused,
        ):
            client.models.list()
        assert refused.value.code == "invalid_api_key"
