"""The benchmarks of the HTTP service: the load generator measures what it says, and the reports say what was found."""

import asyncio
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from own_thread import in_own_thread

SERVE = Path(__file__).parents[2] / "benchmarks" / "serve"


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SERVE))


@pytest.fixture
def load() -> ModuleType:
    import load

    return load


@pytest.fixture
def stub() -> Iterator[int]:
    """A server that answers after 2 ms, one request at a time, and lets 8 wait."""
    command = [sys.executable, str(SERVE / "stub.py"), "--seconds", "0.002", "--queue", "8"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield int(process.stdout.readline())
    process.terminate()
    process.wait(10)
    process.stdout.close()


def test_percentiles_are_values_that_were_measured(load: ModuleType) -> None:
    values = [float(value) for value in range(100, 0, -1)]
    assert load.percentile(values, 0.5) == 50
    assert load.percentile(values, 0.99) == 99
    assert load.percentile(values, 1.0) == 100
    assert load.percentile([3.0], 0.99) == 3
    with pytest.raises(ValueError, match="no values"):
        load.percentile([], 0.5)


def test_a_response_is_parsed_from_any_pieces() -> None:
    from http_client import ResponseParser

    whole = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
    chunked = b"HTTP/1.1 429 Too Many\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"
    for content, status, body in ((whole, 200, b"hello"), (chunked, 429, b"abcde")):
        for size in (1, 7, 1000):
            parser, found = ResponseParser(), []
            for first in range(0, len(content), size):
                response = parser.feed(content[first : first + size])
                if response is not None:
                    found.append(response)
            assert [(one.status, one.body) for one in found] == [(status, body)]


@in_own_thread
def test_a_response_that_never_ends_is_lost() -> None:
    from http_client import LostError, connect

    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(half, "127.0.0.1", 0)
        async with server:
            connection = await connect(server.sockets[0].getsockname()[1])
            with pytest.raises(LostError):
                await connection.ask(b"GET / HTTP/1.1\r\n\r\n")

    asyncio.run(run())


def test_arrivals_have_the_rate_and_are_reproducible(load: ModuleType) -> None:
    arrivals = list(load.poisson(100, 50, seed=3))
    assert arrivals == list(load.poisson(100, 50, seed=3)) == sorted(arrivals)
    assert arrivals[-1] < 50
    assert 4700 < len(arrivals) < 5300


@in_own_thread
def test_a_closed_loop_sends_every_request_once(load: ModuleType, stub: int) -> None:
    texts = [f"text {number}" for number in range(60)]
    answered: Counter[str] = Counter()

    def check(request: Any, response: Any) -> None:
        answered.update(prediction["answer"] for prediction in response.json()["predictions"])

    requests = load.prepare(stub, "/v1/predict", texts, 3)
    samples = asyncio.run(load.closed_loop(stub, requests, 4, 60, check=check))
    summary = load.summarize(samples)
    assert summary["statuses"] == {"200": 20}
    assert answered == Counter(text.upper() for text in texts)
    assert samples.n_texts == 60
    assert summary["milliseconds"]["p50"] >= 2  # the server needs at least that long


@in_own_thread
def test_an_open_loop_counts_from_the_arrival_and_sees_refusals(load: ModuleType, stub: int) -> None:
    requests = load.prepare(stub, "/v1/predict", ["a"] * 600)
    samples = asyncio.run(load.open_loop(stub, requests, 3000, 60, n_connections=32))
    summary = load.summarize(samples)
    assert sum(summary["statuses"].values()) == 600
    assert summary["statuses"]["429"] > 0 and summary["statuses"]["200"] > 0
    assert set(summary["statuses"]) == {"200", "429"}
    assert "milliseconds_429" in summary


def test_memory_growth_ignores_the_warm_up() -> None:
    from process_tree import growth

    steady = [(float(second), 50 if second < 5 else 100) for second in range(100)]
    assert growth(steady) == 0
    growing = [(float(second), 100 + second) for second in range(100)]
    assert growth(growing) == pytest.approx(0.7, abs=0.1)
    with pytest.raises(ValueError, match="at least 2"):
        growth([(0.0, 1)])


def test_attacks_are_reproducible_bounded_and_of_every_kind() -> None:
    from malformed import KINDS, draw_attack

    attacks = [draw_attack(random.Random(seed), 1234) for seed in range(2000)]
    assert attacks == [draw_attack(random.Random(seed), 1234) for seed in range(2000)]
    assert len({attack.kind for attack in attacks}) == len(KINDS)
    assert max(sum(map(len, attack.parts)) for attack in attacks) < 1_500_000
    assert all(attack.parts and all(attack.parts) for attack in attacks)


@pytest.mark.parametrize(
    ("received", "fault"),
    [
        (b"", None),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n{}", None),
        (b"HTTP/1.1 500 Internal Server Error\r\n\r\n{}", "status 500"),
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n{}", "status 503"),
        (b"HTTP/1.1 200 OK\r\n\r\n{}", "status 200"),
        (b'HTTP/1.1 422 X\r\n\r\nTraceback (most recent call last):\n  File "x"', "a traceback"),
        (b"hello", "the answer is not HTTP"),
    ],
)
def test_faults_are_noticed(received: bytes, fault: str | None) -> None:
    from malformed import Attack, fault_of

    assert fault_of(Attack("test", (b"a",)), received) == fault


def test_a_deadline_is_no_fault_of_a_valid_request() -> None:
    from malformed import Attack, fault_of

    late = b"HTTP/1.1 504 Gateway Timeout\r\n\r\n{}"
    assert fault_of(Attack("test", (b"a",)), late) == "status 504"
    assert fault_of(Attack("test", (b"a",), may_be_fine=True), late) is None


def test_differences_tell_rounding_from_other_answers() -> None:
    from fault_steady import differences

    one = {"answer": "a", "candidates": [{"score": -1.0}], "parts": []}
    assert list(differences(one, one)) == []
    assert list(differences(one, one | {"candidates": [{"score": -1.0000001}]})) == [(".candidates[].score", True)]
    assert list(differences(one, one | {"candidates": [{"score": -1.1}]})) == [(".candidates[].score", False)]
    assert list(differences(one, one | {"answer": "b"})) == [(".answer", False)]
    assert list(differences(one, one | {"parts": ["x"]})) == [(".parts", False)]
    assert list(differences(one, {"answer": "a", "parts": []})) == [(".candidates", False)]


def test_every_system_gets_the_same_texts() -> None:
    from systems import requests_for

    texts = [f"text {number}" for number in range(5)]
    for name in ("manyheads", "CTranslate2 FastAPI", "LibreTranslate"):
        requests = requests_for(name, 80, texts, 2)
        assert [request.n_texts for request in requests] == [2, 2, 1]
        assert [text in requests[number // 2].content.decode() for number, text in enumerate(texts)] == [True] * 5


def test_the_page_says_which_goals_were_not_met() -> None:
    from serve_tables import page

    stamp = {"date": "today", "machine": "this", "load": 1.0, "command": "python x"}
    drains = {
        **stamp, "passed": False, "drains": 3, "sent_before": 100, "under_way": 20, "lost": 1, "wrong": 0,
        "seconds_median": 0.5, "seconds_max": 0.7, "left_over": 0, "after": {},
    }  # fmt: skip
    assert "**Failed.**" in page({"drains": drains})
    assert "**1 were lost**" in page({"drains": drains})
    assert "Passed." in page({"drains": drains | {"passed": True}})


def test_a_widened_model_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    import base_size
    import torch

    from manyheads.model import ModelSettings, Transformer

    for name, value in (("WIDTH", 32), ("INNER", 48), ("LAYERS", 3)):
        monkeypatch.setattr(base_size, name, value)
    torch.manual_seed(1)
    settings = ModelSettings(
        vocab_size=40, width=16, n_encoder_layers=1, n_decoder_layers=2, feed_forward_width=24, n_heads=2,
        positions="rotary", norm_placement="pre", tie_source_target=True, tie_output=True, dropout=0.0,
    )  # fmt: skip
    small = Transformer(settings).eval()
    for parameter in small.parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, 0.5, 0.2)
    larger = Transformer(base_size.widen_settings(settings)).eval()
    base_size.widen_weights(small, larger)
    source, target = torch.randint(4, 40, (2, 7)), torch.randint(4, 40, (2, 5))
    with torch.no_grad():
        assert torch.allclose(small(source, target), larger(source, target), atol=1e-4)
    with pytest.raises(ValueError, match=r"model.positions = 'none'"):
        base_size.widen_settings(ModelSettings(vocab_size=40, positions="none", tie_output=True))


def test_ratios_are_medians_over_rounds_against_the_best_peer_of_each() -> None:
    from serve_tables import against_best

    rounds = {
        "a peer": [{"speed": 10.0}, {"speed": 40.0}, {"speed": 10.0}],
        "manyheads": [{"speed": 20.0}, {"speed": 60.0}, {"speed": 10.0}],
        "another": [{"speed": 5.0}, {"speed": 20.0}, {"speed": 100.0}],
    }
    assert against_best(rounds, max, "speed") == 1.5  # of 2, 1.5 and 0.1
    assert against_best(rounds, min, "speed") == 3.0  # of 4, 3 and 1
