"""The service as a process: answers, errors, workers that die, ends and reloads."""

import json
import os
import resource
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from manyheads.bundle import load

from serve.service_process import ServiceProcess, serving_process

TEXTS = {
    "seq2seq": ["猫在睡觉。", "老师昨天买了书。", "", "两个孩子看见了猫。" * 3],
    "classify": ["这本书很好。", "太差了！", ""],
    "tag": ["Ada lives in Paris.", "nothing here", ""],
    "language": ["从前", "", "老师"],
    "masked": ["猫在[MASK]觉。"],
}
Trained = Callable[[str], Path]


@pytest.mark.parametrize("task", TEXTS)
def test_answers_are_those_of_the_bundle(service: ServiceProcess, trained: Trained, task: str) -> None:
    bundle = load(trained(task))
    predictions = service.predict(TEXTS[task], bundle=task)
    expected = [json.loads(json.dumps(_answer(one.answer))) for one in bundle.predictions(TEXTS[task])]
    assert [one["answer"] for one in predictions] == expected
    assert [one["source"] for one in predictions] == TEXTS[task]


def _answer(answer: Any) -> Any:
    return [vars(one) for one in answer] if isinstance(answer, tuple) else answer


def test_batched_answers_are_those_of_single_requests(service: ServiceProcess) -> None:
    texts = [
        f"{first}{second}" for first in ("猫", "老师", "孩子们", "") for second in ("睡觉。", "昨天买了一本书。", "！")
    ]
    together = service.predict(texts, bundle="seq2seq")
    with ThreadPoolExecutor(8) as threads:
        alone = list(threads.map(lambda text: service.predict(text, bundle="seq2seq")[0], texts))
    assert [one["answer"] for one in alone] == [one["answer"] for one in together]
    # A second search after a loop runs in PyTorch, whose sums depend on the batch in the last bits.
    scores = [[one["candidates"][0]["log_probability"] for one in answers] for answers in (alone, together)]
    assert scores[0] == pytest.approx(scores[1], rel=1e-5)


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        ({"texts": "a"}, 422, "bundle: several bundles are served. Give one of seq2seq"),
        ({"bundle": "none", "texts": "a"}, 404, "there is no bundle 'none'. Served: seq2seq"),
        ({"bundle": "tag", "texts": []}, 422, "texts is empty"),
        ({"bundle": "tag", "texts": 3}, 422, "texts"),
        ({"bundle": "tag", "texts": ["a", None]}, 422, "texts"),
        ({"bundle": "tag", "texts": "a", "beem": 3}, 422, "beem: Extra inputs are not permitted"),
        ({"bundle": "seq2seq", "texts": "a", "decode": {"beem": 3}}, 422, "decode.beem is not a setting. Did you mean"),
        ({"bundle": "seq2seq", "texts": "a", "decode": {"beam": 1000}}, 422, "this server allows at most 32"),
        (b'{"bundle": "tag", "texts": "a", "decode": {"stop": %s}}' % (b"[" * 953 + b"]" * 953), 400, "not too deeply"),
        (b'{"bundle": "tag", "texts": "a", "decode": {"stop": %s}}' % (b"[" * 100 + b"]" * 100), 422, "decode.stop"),
        ({"bundle": "tag", "texts": [1] * 300_000}, 413, "The body has 300,000 values; at most 5,000 are allowed"),
        ({"bundle": "tag", "texts": "a", "align": True}, 422, "align: a bundle of task tag has no cross-attention"),
        ({"bundle": "seq2seq", "texts": "a", "threshold": 0.5}, 422, "threshold: a bundle of task seq2seq has no"),
        ({"bundle": "masked", "texts": "a"}, 422, r"has no [MASK]"),
        ({"bundle": "tag", "texts": "x" * 20_001}, 413, "texts[0] has 20,001 characters; at most 20,000 are allowed"),
        ({"bundle": "tag", "texts": ["x"] * 1001}, 413, "1,001 texts; at most 1,000 are allowed"),
        ({"bundle": "tag", "texts": "\ud800"}, 400, "The body is not valid"),
        ({"bundle": "language", "texts": "a", "decode": {"stop": ["\ud800"]}}, 400, "The body is not valid"),
        ({"bundle": "language", "texts": "a", "decode": {"stop": ["a"] * 17}}, 422, "at most 16"),
        (b"{", 400, "The body is not valid"),
        (b'{"texts": "\xff"}', 400, "The body is not valid: send JSON"),
        (b"[" * 100_000, 400, "The body is not valid: send JSON"),
        (b"x" * 1_000_001, 413, "at most 1,000,000 bytes"),
    ],
)
def test_bad_requests_get_one_clear_line(service: ServiceProcess, body: Any, status: int, detail: str) -> None:
    answer = service.request("/v1/predict", body, {"Content-Type": "application/json"})
    assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
    assert detail in answer.json["detail"]
    assert "\n" not in answer.json["detail"]
    assert answer.json["status"] == status


def test_a_body_that_is_not_declared_as_json_is_refused(service: ServiceProcess) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = service.request("/v1/predict", b'{"bundle": "tag", "texts": "a"}', headers)
    assert (answer.status, answer.headers["content-type"]) == (415, "application/problem+json")
    assert "Content-Type: application/json" in answer.json["detail"]


def test_a_hostile_form_is_refused_at_once(service: ServiceProcess) -> None:
    body = b"--b\r\nContent-Disposition: form-data" + b";" * 40_000
    started = time.monotonic()
    answer = service.request("/detect", body, {"Content-Type": "multipart/form-data; boundary=b"})
    assert answer.status == 400
    assert time.monotonic() - started < 5  # it took 12 s with a parser of e-mails


def test_a_bad_text_does_not_harm_the_others_of_its_batch(service: ServiceProcess) -> None:
    def ask(text: str) -> int:
        return service.request("/v1/predict", {"bundle": "masked", "texts": text}).status

    with ThreadPoolExecutor(8) as threads:
        statuses = list(threads.map(ask, ["猫[MASK]", "no mask"] * 8))
    assert statuses == [200, 422] * 8


def test_unknown_paths_and_methods(service: ServiceProcess) -> None:
    for path, method, status in (("/nope", "GET", 404), ("/v1/predict", "GET", 405), ("/static/../x", "GET", 404)):
        answer = service.request(path, method=method)
        assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")


def test_other_sites_may_not_use_the_server(service: ServiceProcess) -> None:
    body = {"bundle": "tag", "texts": "a"}
    for headers, status in (
        ({"Host": "evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": service.address.rstrip("/")}, 200),
    ):
        answer = service.request("/v1/predict", body, headers)
        assert answer.status == status
        assert "access-control-allow-origin" not in answer.headers
    for path in ("model", "heads", "timeline", "heads/encoder.0.self/0/effect"):  # GETs that start a computation
        for site in ("cross-site", "same-site"):
            assert service.request(f"/lens/tag/api/{path}", headers={"Sec-Fetch-Site": site}).status == 403


def test_health_metrics_and_bundles(service: ServiceProcess, trained: Trained) -> None:
    assert service.request("/live").json == {"status": "live"}
    assert service.request("/ready").json == {"status": "ready", "workers": 2, "workers_ready": 2}
    before = service.metric("manyheads_texts_total")
    service.predict(["a", "b"], bundle="tag")
    assert service.metric("manyheads_texts_total") == before + 2
    bundles = {one["name"]: one for one in service.request("/v1/bundles").json["bundles"]}
    assert list(bundles) == list(TEXTS)
    assert bundles["seq2seq"]["languages"] == ["zh", "en"]
    assert bundles["classify"]["labels"] == list(load(trained("classify")).task.labels)  # type: ignore[attr-defined]


def test_no_text_of_users_is_logged(trained: Trained, tmp_path: Path) -> None:
    with serving_process(str(trained("tag")), log=tmp_path / "log", options=("--log",)) as own:
        own.predict("my secret")
        own.request("/v1/predict", {"texts": "my secret", "decode": {"my secret": 1}})
        own.request("/my-secret?my-secret=1")
    log = (tmp_path / "log").read_text()
    assert '"path": "/v1/predict", "status": 200' in log
    assert "secret" not in log


def test_a_killed_worker_is_replaced_and_its_texts_are_answered(service: ServiceProcess) -> None:
    n_restarts = service.metric("manyheads_worker_restarts")
    stop, statuses = threading.Event(), []

    def ask() -> None:
        while not stop.is_set():
            statuses.append(service.request("/v1/predict", {"bundle": "seq2seq", "texts": ["猫在睡觉。"] * 8}).status)

    with ThreadPoolExecutor(4) as threads:
        for _ in range(4):
            threads.submit(ask)
        time.sleep(0.2)
        for _ in range(3):
            victim = service.workers()[0]
            os.kill(victim, signal.SIGKILL)
            _wait(lambda victim=victim: victim not in service.workers() and service.request("/ready").status == 200)
        stop.set()
    assert set(statuses) == {200}
    assert service.metric("manyheads_worker_restarts") == n_restarts + 3


def _wait(is_done: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not is_done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _post(body: bytes) -> bytes:
    head = ("POST /v1/predict HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json")
    return "\r\n".join([*head, f"Content-Length: {len(body)}", "", ""]).encode() + body


def test_a_request_whose_client_disconnects_is_cancelled(service: ServiceProcess) -> None:
    cancelled = service.metric("manyheads_cancelled_total")
    body = json.dumps({"bundle": "seq2seq", "texts": ["猫在睡觉。" * 40] * 500}).encode()
    with socket.create_connection((service.host, service.port)) as client:
        client.sendall(_post(body))
        _wait(lambda: service.metric("manyheads_queue_texts_waiting") > 0)
    _wait(lambda: service.metric("manyheads_cancelled_total") == cancelled + 1)
    _wait(lambda: service.metric("manyheads_queue_texts_waiting") == 0, 5)


def test_a_full_queue_answers_429_at_once(trained: Trained, tmp_path: Path) -> None:
    with serving_process(str(trained("seq2seq")), log=tmp_path / "log", options=("--queue", "64")) as own:
        body = {"texts": ["猫在睡觉。" * 10] * 40}
        with ThreadPoolExecutor(12) as threads:
            answers = list(threads.map(lambda _: own.request("/v1/predict", body), range(36)))
        refused = [one for one in answers if one.status == 429]
        assert refused
        assert {one.status for one in answers} == {200, 429}
        assert all(int(one.headers["retry-after"]) >= 1 for one in refused)
        assert "The queue is full" in refused[0].json["detail"]


def test_a_request_has_a_deadline(trained: Trained, tmp_path: Path) -> None:
    options = ("--timeout", "0.3")
    with serving_process(str(trained("seq2seq")), log=tmp_path / "log", options=options) as own:
        body = {"texts": ["猫在睡觉。" * 100] * 40, "decode": {"beam": 32, "method": "beam"}}
        answer = own.request("/v1/predict", body)
        assert answer.status == 504
        # The batch that a worker has begun is not interrupted; what had not been begun is dropped.
        _wait(lambda: own.request("/v1/predict", {"texts": "猫"}).status == 200)
        assert own.metric("manyheads_batch_texts_sum") < 40


def test_keys_are_needed_and_limited(trained: Trained, tmp_path: Path) -> None:
    key = "k" * 32
    environment = {"MANYHEADS_API_KEYS": f"reporting:{key}"}
    options = ("--rate", "2", "--log")
    bundle = str(trained("tag"))
    with serving_process(bundle, log=tmp_path / "log", environment=environment, options=options) as own:
        body = {"texts": "a"}
        for headers in ({}, {"Authorization": f"Bearer {key}x"}, {"X-API-Key": ""}):
            refused = own.request("/v1/predict", body, headers)
            assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert own.request("/v1/predict", body, {"Authorization": f"Bearer {key}"}).status == 200
        assert own.request("/v1/predict", body, {"X-API-Key": key}).status == 200
        assert own.request("/v1/predict", body, {"X-API-Key": key}).status == 429
        assert own.request("/live").status == 200
        assert own.request("/lens/").status == 404
    log = (tmp_path / "log").read_text()
    assert '"key": "reporting"' in log
    assert key not in log


@pytest.mark.parametrize(
    ("options", "last"), [((), 429), (("--proxy", "127.0.0.2"), 429), (("--proxy", "127.0.0.1"), 200)]
)
def test_a_forwarded_address_counts_only_from_a_proxy_that_was_named(
    trained: Trained, tmp_path: Path, options: tuple[str, ...], last: int
) -> None:
    with serving_process(str(trained("tag")), log=tmp_path / "log", options=("--rate", "3", *options)) as own:
        statuses = [
            own.request("/v1/predict", {"texts": "a"}, {"X-Forwarded-For": f"10.0.0.{number}"}).status
            for number in range(4)
        ]
    assert statuses == [200, 200, 200, last]


def test_sigterm_ends_the_server_after_the_requests_under_way(trained: Trained, tmp_path: Path) -> None:
    with serving_process(str(trained("seq2seq")), log=tmp_path / "log") as own, ThreadPoolExecutor(8) as threads:
        body = {"texts": ["猫在睡觉。" * 10] * 60}
        answers = [threads.submit(own.request, "/v1/predict", body) for _ in range(8)]
        _wait(lambda: own.metric("manyheads_queue_texts_waiting") > 0)
        workers = own.workers()
        own.process.send_signal(signal.SIGTERM)
        assert [one.result().status for one in answers] == [200] * 8
        assert own.process.wait(60) == 0
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


def test_ctrl_c_twice_ends_the_server(trained: Trained, tmp_path: Path) -> None:
    with serving_process(str(trained("seq2seq")), log=tmp_path / "log") as own, ThreadPoolExecutor(1) as threads:
        asked = threads.submit(own.request, "/v1/predict", {"texts": ["猫在睡觉。" * 10] * 400})
        _wait(lambda: own.metric("manyheads_queue_texts_waiting") > 0)
        for _ in range(2):
            own.process.send_signal(signal.SIGINT)
            time.sleep(0.3)
        assert own.process.wait(30) is not None
        asked.exception()  # its request may be lost: the second Ctrl-C says so


def test_a_server_in_the_background_outlives_ctrl_c(trained: Trained, tmp_path: Path) -> None:
    """A shell starts a job with `&` and SIGINT ignored; Ctrl-C is meant for what runs in the foreground."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with serving_process(str(trained("tag")), log=tmp_path / "log") as own:
            own.process.send_signal(signal.SIGINT)
            time.sleep(0.3)
            assert own.request("/ready").status == 200
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_worker_that_could_not_be_started_is_tried_again(trained: Trained, tmp_path: Path) -> None:
    with serving_process(str(trained("tag")), log=tmp_path / "log") as own:
        limits = resource.prlimit(own.process.pid, resource.RLIMIT_NOFILE)
        (worker,) = own.workers()
        resource.prlimit(own.process.pid, resource.RLIMIT_NOFILE, (5, limits[1]))
        os.kill(worker, signal.SIGKILL)
        _wait(lambda: "could not be started" in (tmp_path / "log").read_text())
        resource.prlimit(own.process.pid, resource.RLIMIT_NOFILE, limits)
        own.wait_until_ready()
        assert own.predict("a")


def test_a_bundle_is_reloaded_and_a_damaged_one_is_not(trained: Trained, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    shutil.copytree(trained("tag"), folder)
    with serving_process(f"own={folder}", log=tmp_path / "log", workers=2) as own:
        (before,) = own.request("/v1/bundles").json["bundles"]
        shutil.rmtree(folder)
        shutil.copytree(trained("classify"), folder)
        answer = own.request("/v1/bundles/own/reload", b"")
        assert (answer.status, answer.json["task"]) == (200, "classify")
        assert answer.json["version"] != before["version"]
        assert {tuple(own.predict("很好")[0]["labels"]) for _ in range(6)} == {tuple(own.predict("很好")[0]["labels"])}
        weights = folder / "weights.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
        damaged = own.request("/v1/bundles/own/reload", b"")
        assert damaged.status == 422
        assert "is still served" in damaged.json["detail"]
        assert own.predict("很好")[0]["labels"]
        assert own.request("/ready").status == 200
        assert own.request("/v1/bundles/none/reload", b"").status == 404


def test_slow_clients_are_disconnected(trained: Trained, tmp_path: Path) -> None:
    options = ("--read-timeout", "0.5")
    with serving_process(str(trained("tag")), log=tmp_path / "log", options=options) as own:
        address = (own.host, own.port)
        with socket.create_connection(address, timeout=20) as slow_headers:
            slow_headers.sendall(b"POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\n")
            assert slow_headers.recv(1000) == b""
        with socket.create_connection(address, timeout=20) as slow_body:
            slow_body.sendall(b"POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{")
            assert b"408 Request Timeout" in slow_body.recv(1000)
        with socket.create_connection(address, timeout=20) as endless:
            endless.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
            with pytest.raises(OSError):
                for _ in range(1000):
                    endless.sendall(b"X-Header: " + b"x" * 8000 + b"\r\n")
        assert own.predict("a")


KEYS = {"MANYHEADS_API_KEYS": f"heavy:{'h' * 32},light:{'l' * 32}"}
HEAVY, LIGHT = {"X-API-Key": "h" * 32}, {"X-API-Key": "l" * 32}


def test_long_texts_of_one_client_do_not_hold_up_others(trained: Trained, tmp_path: Path) -> None:
    with (
        serving_process(str(trained("seq2seq")), log=tmp_path / "log", environment=KEYS) as own,
        ThreadPoolExecutor(2) as threads,
    ):
        body = {"texts": ["Two cats. " * 1990] * 48}
        long = [threads.submit(own.request, "/v1/predict", body, HEAVY) for _ in range(2)]
        _wait(lambda: own.metric("manyheads_queue_texts_waiting", LIGHT) > 0)
        for number in range(20):
            answer = own.request("/v1/predict", {"texts": f"猫在睡觉。{number}"}, LIGHT)
            assert answer.status == 200
        # The second request may be refused and, on a slow machine, the first reach its deadline. Neither is answered.
        assert all(one.result().status in (429, 504) for one in long if one.done()), "long texts were answered first"
        assert own.workers()
        own.process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        own.process.send_signal(signal.SIGINT)  # do not wait for the long texts
        for one in long:
            one.exception()


def test_a_stopped_worker_does_not_stop_the_service(trained: Trained, tmp_path: Path) -> None:
    with (
        serving_process(str(trained("seq2seq")), log=tmp_path / "log", options=("--timeout", "1")) as own,
        ThreadPoolExecutor(1) as threads,
    ):
        (worker,) = own.workers()
        os.kill(worker, signal.SIGSTOP)
        body = {"texts": "a", "glossary": {str(number): "x" * 900 for number in range(900)}}  # more than a socket holds
        asked = threads.submit(own.request, "/v1/predict", body)
        _wait(lambda: own.metric("manyheads_texts_total") == 1)  # the service answers this beside it
        assert asked.result().status == 504
        _wait(lambda: worker not in own.workers() and own.request("/ready").status == 200)
        assert own.predict("猫")
