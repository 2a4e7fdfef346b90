"""`predict --json`, its shards and /v1/predict give the same fields with the same values for the same text."""

import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from answer.in_process_service import InProcessService
from manyheads.bulk.line_shards import Shard
from manyheads.bulk.shard_schedule import Outcome, WorkerTask, answer_shard, outcome_of
from manyheads.bundle import Bundle, load
from manyheads.cli.predict import predict
from manyheads.decode import DecodeSettings
from manyheads.serve.service.predict_api import predict_router
from manyheads.serve.service.problems import ProblemError
from manyheads.serve.service.service_app import _problem
from manyheads.text.tokens.seen_words import SeenWords

from lens.makers import task_of
from serve.fake_service import app_of

TASKS = ("seq2seq", "classify", "tag", "language", "masked")
TEXTS = ["The dog sleeps.", "", "A cat reads the xylophon.", " \u200b", "Two [MASK] sleep."]
HTML = ["<p>The <b>dog</b> sleeps.</p>", "", "A &amp; B <i>read</i>"]
OWN = {  # fields of a task's predictions
    "seq2seq": {"candidates", "warnings", "missing", "parts", "confidence", "abstained"},
    "classify": {"labels", "probability", "probabilities", "separator", "ngram_share", "out_of_scope"},
    "tag": {"text", "spans", "label", "probabilities"},
    "language": {"prompt", "candidates", "warnings", "n_prompt_tokens", "n_new_tokens"},
    "masked": {"text", "gaps"},
}


class InlineWorkers:
    """Answers shards in this process."""

    n_slots = 1

    def __init__(self, task: WorkerTask, n_processes: int) -> None:
        self.task, self.answer = task, task.open_answers(json.loads(json.dumps(task.spec)))
        self.queue: deque[Shard] = deque()

    def submit(self, shard: Shard) -> None:
        self.queue.append(shard)

    def wait(self) -> Sequence[Outcome]:
        shard = self.queue.pop()
        return [outcome_of(shard, answer_shard(self.task, self.answer, shard))]

    def close(self) -> None:
        pass


@pytest.fixture
def save(tmp_path: Path, untrained: Bundle) -> Callable[[str], Path]:
    """Return a function that saves a bundle of a task, with the words it has seen."""

    def of(kind: str) -> Path:
        decode = DecodeSettings(method="greedy", max_new_tokens=4)
        bundle = untrained if kind == "seq2seq" else Bundle(task_of(kind), decode, {})
        replace(bundle, decode=decode, seen_words=SeenWords.of(TEXTS[:2])).save(tmp_path / kind)
        return tmp_path / kind

    return of


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[Any], ...]]:
    """Return a function that gives the answers of `predict --json`, of its shards and of the HTTP API."""
    monkeypatch.setattr("manyheads.bulk.local_workers.LocalWorkers", InlineWorkers)

    def of(path: Path, texts: Sequence[str], words: Sequence[str], **fields: Any) -> tuple[list[Any], ...]:
        (tmp_path / "in.txt").write_text("".join(f"{text}\n" for text in texts), "utf-8")
        found = []
        for output, more in (("plain", ()), ("joined", ("--shards", str(tmp_path / "shards"), "--shard-lines", 1000))):
            arguments = [path, tmp_path / "in.txt", "--json", "-o", tmp_path / output, *words, *more]
            done = CliRunner().invoke(predict, [str(word) for word in arguments])
            assert done.exit_code == 0, done.output
            lines = [json.loads(line) for line in (tmp_path / output).read_text("utf-8").splitlines()]
            assert [line.pop("line") for line in lines] == list(range(1, len(texts) + 1))
            found.append(lines)
        client = client_of(path)
        answer = client.post("/v1/predict", json={"texts": list(texts), **fields})
        assert answer.status_code == 200, answer.text
        return (*found, answer.json()["predictions"])

    return of


def client_of(path: Path) -> TestClient:
    app = app_of(predict_router(InProcessService(m=path).service))
    app.add_exception_handler(ProblemError, _problem)
    return TestClient(app, base_url="http://127.0.0.1")


@pytest.mark.parametrize("kind", TASKS)
def test_every_task_gives_the_same_answer_everywhere(kind: str, save: Any, ask: Any) -> None:
    texts = [f"{text} [MASK]" if text.strip(" \u200b.") else text for text in TEXTS] if kind == "masked" else TEXTS
    plain, joined, http = ask(save(kind), texts, ())
    assert plain == joined == http
    always = {"source", "answer", "unseen_words"} | OWN[kind]
    is_noted = [False, kind != "language", False, kind != "language", False]  # a language model starts a new text
    for answer, text, noted in zip(plain, texts, is_noted, strict=True):
        assert set(answer) == always | ({"note"} if noted else set())
        assert answer["source"] == text
    assert plain[2]["unseen_words"] == ["A", "cat", "reads", "xylophon"]


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        (("--align",), {"align": True}),
        (("--beam", "3", "--n-best", "2"), {"n_best": 2, "decode": {"method": "beam", "beam": 3}}),
        (("--prefix", "猫", "--keep", "dog"), {"prefix": "猫", "keep": ["dog"]}),
    ],
)
def test_options_of_translations(words: Sequence[str], fields: dict[str, Any], save: Any, ask: Any) -> None:
    plain, joined, http = ask(save("seq2seq"), TEXTS, words, **fields)
    assert plain == joined == http
    if "align" in fields:
        assert {"alignment", "source_words", "target_words", "heads"} < set(plain[0])
        assert plain[0]["heads"]


@pytest.mark.parametrize("format", ["text", "html"])
def test_what_has_no_letters_is_copied(format: str, save: Any, ask: Any) -> None:
    """In the command, its shards, over HTTP and in Python."""
    texts = ["```", "123", "{name}", "- 5 %", "https://example.com/a"]
    path = save("seq2seq")
    for answers in ask(path, texts, ("--format", format), format=format):
        assert [answer["answer"] for answer in answers] == texts
    assert load(path).predict(texts) == texts


def test_html(save: Any, ask: Any) -> None:
    plain, joined, http = ask(save("seq2seq"), HTML, ("--format", "html"), format="html")
    assert plain == joined == http
    fields = {"source", "answer", "segments", "warnings", "missing", "confidence", "abstained", "unseen_words"}
    assert [set(answer) - {"note"} for answer in plain] == [fields] * len(HTML)
    assert "note" in plain[1]


@pytest.mark.parametrize("kind", ["classify", "tag"])
def test_a_threshold(kind: str, save: Any, ask: Any) -> None:
    plain, joined, http = ask(save(kind), TEXTS, ("--threshold", "0.9"), threshold=0.9)
    assert plain == joined == http


def test_a_text_that_cannot_be_read(save: Any, tmp_path: Path) -> None:
    """`predict` writes an answer with an error; over HTTP, the same line refuses the request."""
    path, text = save("masked"), "The dog sleeps."
    done = CliRunner().invoke(predict, [str(path), "--json"], input=f"{text}\n")
    error = "Line 1 has no [MASK]: write it where a token is to be predicted."
    assert done.exit_code == 1
    empty = {"answer": "", "gaps": [], "unseen_words": []}
    assert json.loads(done.stdout) == {"line": 1, "source": text, "error": error, **empty}
    refused = client_of(path).post("/v1/predict", json={"texts": text})
    assert (refused.status_code, refused.json()["detail"]) == (422, error.replace("Line 1", "The text"))
