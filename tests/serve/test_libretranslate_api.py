"""LibreTranslate's API with a service that reverses texts; the real client is in test_clients.py."""

from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from manyheads.answer.request import AnswerOptions, AnswerRequest
from manyheads.serve.service.libretranslate_api import libretranslate_router
from manyheads.serve.service.problems import ProblemError

from serve.fake_service import FakeService, client_of, translator, writer


@pytest.fixture
def service() -> FakeService:
    return FakeService(translator("en", "zh"), translator("zh", "en"), translator("en", "de"), writer(), max_beam=8)


@pytest.fixture
def client(service: FakeService) -> TestClient:
    return client_of(libretranslate_router(service.service))


def post(client: TestClient, path: str = "/translate", status: int = 200, **fields: Any) -> Any:
    answer = client.post(path, json=fields)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


def test_a_text_is_translated_by_the_bundle_of_its_pair(client: TestClient, service: FakeService) -> None:
    assert post(client, q="abc", source="en", target="de") == {"translatedText": "cba"}
    assert post(client, q="abc", source="zh-CN", target="en-US") == {"translatedText": "cba"}
    assert service.asked == [AnswerRequest("en-de", ("abc",)), AnswerRequest("zh-en", ("abc",))]


def test_a_list_is_answered_by_lists(client: TestClient, service: FakeService) -> None:
    answer = post(client, q=["ab", "😀", "cd"], source="en", target="zh", alternatives=1)
    assert answer == {"translatedText": ["ba", "😀", "dc"], "alternatives": [["ba 1"], [], ["dc 1"]]}
    (request,) = service.asked  # one call for all, without the text that has nothing to translate
    assert request.texts == ("ab", "cd")
    assert post(client, q=["ab"], source="en", target="zh") == {"translatedText": ["ba"]}


def test_alternatives_are_other_translations(client: TestClient, service: FakeService) -> None:
    answer = post(client, q="abc", source="en", target="zh", alternatives=3)
    assert answer == {"translatedText": "cba", "alternatives": ["cba 1", "cba 3"]}  # one candidate is the same
    post(client, q="abc", source="en", target="zh", alternatives=5)
    assert [request.options.decode for request in service.asked] == [
        {"method": "beam", "beam": 4, "n_best": 4},
        {"method": "beam", "beam": 6, "n_best": 6},
    ]


@pytest.mark.parametrize("given", [0, -3, "0"])
def test_without_alternatives_the_answer_has_none(client: TestClient, service: FakeService, given: object) -> None:
    assert post(client, q="abc", source="en", target="zh", alternatives=given) == {"translatedText": "cba"}
    assert service.asked[0].options.decode == {}


@pytest.mark.parametrize(("given", "format"), [("html", "html"), ("text", "text"), (None, "text"), ("", "text")])
def test_the_format_is_an_option_of_the_request(
    client: TestClient, service: FakeService, given: str | None, format: str
) -> None:
    post(client, q="<b>abc</b>", source="en", target="zh", format=given)
    assert service.asked[0].options == AnswerOptions(format=format)


def test_the_source_language_is_detected(client: TestClient) -> None:
    answer = post(client, q="Where is the station?", source="auto", target="zh")
    assert answer["translatedText"] == "?noitats eht si erehW"
    assert answer["detectedLanguage"]["language"] == "en"
    assert 50 < answer["detectedLanguage"]["confidence"] <= 100


def test_the_language_of_each_text_of_a_list_is_detected(client: TestClient, service: FakeService) -> None:
    answer = post(client, q=["车站在哪里？", "Where is the station?", "😀"], source="auto", target="en")
    assert answer["translatedText"] == ["？里哪在站车", "Where is the station?", "😀"]
    assert [one["language"] for one in answer["detectedLanguage"]] == ["zh", "en", "en"]
    assert answer["detectedLanguage"][2]["confidence"] == 0
    assert [request.texts for request in service.asked] == [("车站在哪里？",)]


def test_tags_of_html_have_no_language_and_no_words(client: TestClient, service: FakeService) -> None:
    texts = [
        '<p class="these words are English">车站在哪里？</p>',
        "<br><!-- a comment -->",
        "<script>let it</script>&#36710;站",
    ]
    answer = post(client, q=texts, source="auto", target="en", format="html", alternatives=2)
    assert [one["language"] for one in answer["detectedLanguage"]] == ["zh", "en", "zh"]
    assert answer["detectedLanguage"][1]["confidence"] == 0
    (request,) = service.asked
    assert request.texts == (texts[0], texts[2])
    assert request.options.decode == {}  # HTML has no alternatives
    assert answer["alternatives"] == [[], [], []]


def test_a_text_in_the_target_language_stays_as_it_is(client: TestClient, service: FakeService) -> None:
    assert post(client, q="abc", source="zh", target="zh-Hans") == {"translatedText": "abc"}
    answer = post(client, q="abc", source="de", target="de", alternatives=2)
    assert answer == {"translatedText": "abc", "alternatives": []}
    assert service.asked == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"source": "en", "target": "zh"}, "Invalid request: missing q parameter"),
        ({"q": "", "source": "en", "target": "zh"}, "Invalid request: missing q parameter"),
        ({"q": [], "source": "en", "target": "zh"}, "Invalid request: missing q parameter"),
        ({"q": "a", "target": "zh"}, "Invalid request: missing source parameter"),
        ({"q": "a", "source": "en"}, "Invalid request: missing target parameter"),
        ({"q": "a", "source": "en", "target": "fr"}, "fr is not supported. Supported: en → de, en → zh, zh → en."),
        ({"q": "a", "source": "fr", "target": "zh"}, "fr is not supported. Supported: en → de, en → zh, zh → en."),
        ({"q": "a", "source": "de", "target": "zh"}, "de → zh is not supported. Supported: en → de, en → zh, zh → en."),
        ({"q": "a", "source": "auto", "target": "xx"}, "xx is not supported. Supported: en → de, en → zh, zh → en."),
        (
            {"q": "a", "source": "en", "target": "zh", "alternatives": 8},
            "Invalid request: alternatives parameter must be <= 7",
        ),
        (
            {"q": "a", "source": "en", "target": "zh", "format": "pdf"},
            "Invalid request: format: Input should be 'text' or 'html'",
        ),
        (
            {"q": ["a", 1], "source": "en", "target": "zh"},
            "Invalid request: q: Input should be a valid string; q.1: Input should be a valid string",
        ),
    ],
)
def test_faults_are_one_line(client: TestClient, fields: dict[str, Any], message: str) -> None:
    assert post(client, status=400, **fields) == {"error": message}


def test_too_many_texts_are_refused_before_languages_are_detected(client: TestClient, service: FakeService) -> None:
    service.settings = replace(service.settings, max_texts=2)
    answer = post(client, status=413, q=["a"] * 3, source="auto", target="zh")
    assert answer == {"error": "q has 3 texts; at most 2 are allowed."}


def test_unknown_parameters_are_ignored_as_by_libretranslate(client: TestClient) -> None:
    assert post(client, q="abc", source="en", target="zh", other=1, api_key="k") == {"translatedText": "cba"}


@pytest.mark.parametrize(
    ("status", "expected"), [(404, 404), (413, 413), (422, 400), (429, 429), (503, 503), (504, 504)]
)
def test_errors_of_the_service_have_the_shape_of_libretranslate(
    client: TestClient, service: FakeService, status: int, expected: int
) -> None:
    service.error = ProblemError(status, "One line.", {"Retry-After": "2"})
    answer = client.post("/translate", json={"q": "abc", "source": "en", "target": "zh"})
    assert (answer.status_code, answer.json()) == (expected, {"error": "One line."})
    assert answer.headers["retry-after"] == "2"


def test_detect(client: TestClient) -> None:
    for q in ("车站在哪里？", ["车站", "在哪里？"]):
        found = post(client, "/detect", q=q)
        assert found[0]["language"] == "zh"
        assert found[0]["confidence"] > 90
        assert {one["language"] for one in found} <= {"en", "de", "zh"}
    assert post(client, "/detect", q="123") == [{"language": "en", "confidence": 0.0}]
    assert post(client, "/detect", 400) == {"error": "Invalid request: missing q parameter"}


def test_the_code_of_a_detected_language_is_the_one_that_is_served() -> None:
    client = client_of(libretranslate_router(FakeService(translator("en-GB", "zh-Hans")).service))
    assert post(client, "/detect", q="车站在哪里？")[0]["language"] == "zh-Hans"
    answer = post(client, q="Where is the station?", source="auto", target="zh")
    assert answer["detectedLanguage"]["language"] == "en-GB"


def test_languages(client: TestClient) -> None:
    assert client.get("/languages").json() == [
        {"code": "de", "name": "German", "targets": ["de"]},
        {"code": "en", "name": "English", "targets": ["de", "en", "zh"]},
        {"code": "zh", "name": "Chinese", "targets": ["en", "zh"]},
    ]


def test_a_server_without_translation_bundles_says_so() -> None:
    client = client_of(libretranslate_router(FakeService(writer()).service))
    assert client.get("/languages").json() == []
    expected = {"error": "zh is not supported. This server has no translation bundle."}
    assert post(client, status=400, q="a", source="en", target="zh") == expected
    assert client.get("/frontend/settings").json()["language"]["target"] == {"code": "", "name": ""}


def test_frontend_settings(client: TestClient, service: FakeService) -> None:
    settings = client.get("/frontend/settings").json()
    assert settings["charLimit"] == service.settings.max_text
    assert settings["language"]["source"]["code"] == "auto"
    assert settings["language"]["target"] == {"code": "zh", "name": "Chinese"}
    assert settings["supportedFilesFormat"] == []


def test_health_is_false_while_the_service_is_not_ready(client: TestClient, service: FakeService) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    service.is_ready = False
    answer = client.get("/health")
    assert (answer.status_code, answer.json()) == (503, {"error": "The service is not ready."})
