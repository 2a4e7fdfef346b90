"""A worker process: it loads the bundles, and answers batches of texts with one thread.

Messages are JSON over a socket. To a worker: `{"id", "predict": key, "texts"}`, `{"id", "stream": key, "texts"}`,
`{"cancel": id}`, `{"id", "load": name, "path"}`. From it: `{"ready": bundles}`, `{"failed": error}`,
`{"id", "answers"}`, `{"id", "delta"}`, `{"id", "done"}`, `{"id", "loaded"}`, `{"id", "error"}`. The key is that of an
`AnswerRequest`. An error is `[status, detail]`, in the language of the request. An answer is `{"ok": JSON}` or
`{"error": …}`: the JSON of an answer is a string, which the service sends on as it is.

A long text, which has the field "seconds", is answered by a forked copy of the process, which shares the weights: the
operating system divides the core between it and the batches that follow, and it can be cancelled. If the copy dies, the
service is told `{"id", "stopped"}`. Where a process cannot be forked, the text is answered like others.

A worker ends when its socket is closed. It ignores SIGINT and SIGTERM, which the service handles for all.
"""

import json
import logging
import math
import os
import signal
import socket
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import torch

from manyheads.answer.answer import answer_fields
from manyheads.answer.request import AnswerRequest
from manyheads.errors import ManyheadsError
from manyheads.language import Language, choose, using
from manyheads.messages import _
from manyheads.serve.private_data import without_path
from manyheads.serve.service.served_answerer import ServedAnswerer

logger = logging.getLogger(__name__)
_NICENESS = 10  # the service, which refuses requests that are too many, comes before the workers if all cores are busy
_LONG_NICENESS = 5  # more, for a long text


def run_worker(
    given: socket.socket, folders: Mapping[str, str], *, share_examples: bool = False, language: Language = "en"
) -> None:
    """Serve batches until the socket is closed; `folders` are the bundles by name.

    `language` is that of an error while the bundles are loaded.
    """
    choose(language)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = "1"  # of the native engine
    torch.set_num_threads(1)
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    connection = Connection(given.detach())
    try:
        answerers = {
            name: ServedAnswerer.open(name, Path(folder), share_examples=share_examples)
            for name, folder in folders.items()
        }
        for answerer in answerers.values():
            answerer.warm_up()
    except (ManyheadsError, OSError, MemoryError) as error:
        _send(connection, {"failed": [500, str(error) or type(error).__name__]})
        return
    choose("en")  # the log is in English, whoever started the server
    _send(connection, {"ready": [asdict(answerer.description) for answerer in answerers.values()]})
    _Worker(connection, answerers, share_examples=share_examples).run()


class _Worker:
    """Answers messages one after the other; streams advance by one piece between them."""

    def __init__(
        self, connection: Connection, answerers: dict[str, ServedAnswerer], *, share_examples: bool = False
    ) -> None:
        self.connection, self.answerers, self.share_examples = connection, answerers, share_examples
        self.streams: dict[int, tuple[Language, Iterator[dict[str, Any]]]] = {}
        self.copies: dict[int, tuple[int, Connection]] = {}  # process ids and pipes of long texts

    def run(self) -> None:
        try:
            while True:
                pipes = {pipe: number for number, (_pid, pipe) in self.copies.items()}
                for ready in wait([self.connection, *pipes], 0 if self.streams else None):
                    if ready is self.connection:
                        self._handle(json.loads(self.connection.recv_bytes()))
                    elif (number := pipes[ready]) in self.copies:  # type: ignore[index]
                        self._finish_copy(number)
                for number in list(self.streams):
                    self._advance(number)
        except (EOFError, OSError):
            for number in list(self.copies):
                self._end_copy(number)

    def _handle(self, message: dict[str, Any]) -> None:
        if "cancel" in message:
            self.streams.pop(message["cancel"], None)
            if message["cancel"] in self.copies:
                self._end_copy(message["cancel"])
        elif "load" in message:
            self._load(message)
        elif "stream" in message:
            request = AnswerRequest.from_key(message["stream"], message["texts"])
            events = self.answerers[request.bundle].stream(request.texts[0], request.options)
            self.streams[message["id"]] = request.language, events
        elif "seconds" in message and hasattr(os, "fork"):
            self._fork(message)
        else:
            _send(self.connection, self._predict(message))

    def _predict(self, message: dict[str, Any]) -> dict[str, Any]:
        request = AnswerRequest.from_key(message["predict"], message["texts"])
        with using(request.language):
            return {"id": message["id"], "answers": self._answer(request)}

    def _fork(self, message: dict[str, Any]) -> None:
        """Answer a long text in a copy of this process, which ends at the latest when nobody waits any more."""
        ours, theirs = Pipe(duplex=False)
        try:
            pid = os.fork()
        except OSError:  # no memory, or too many processes
            _send(self.connection, self._predict(message))
            return
        if pid:
            theirs.close()
            self.copies[message["id"]] = pid, ours
            return
        try:
            self.connection.close()  # otherwise the service would not notice the end of this worker
            ours.close()
            signal.alarm(math.ceil(message["seconds"]))
            os.nice(_LONG_NICENESS)
            _send(theirs, self._predict(message))
        finally:
            os._exit(0)  # without what Python does at the end, which belongs to the worker

    def _finish_copy(self, number: int) -> None:
        try:
            answer = self.copies[number][1].recv_bytes()
        except (EOFError, OSError):
            answer = json.dumps({"id": number, "stopped": True}).encode()
        self._end_copy(number)
        self.connection.send_bytes(answer)

    def _end_copy(self, number: int) -> None:
        pid, pipe = self.copies.pop(number)
        pipe.close()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    def _answer(self, request: AnswerRequest) -> list[dict[str, Any]]:
        """Answer each text with `{"ok": JSON}` or `{"error": [status, detail]}`."""
        answerer = self.answerers[request.bundle]
        try:
            answers = answerer.answers(request.texts, request.options)
            return [
                {"error": [422, answer.error]}
                if answer.error
                else {"ok": json.dumps(answer_fields(answer, answerer.bundle), ensure_ascii=False, allow_nan=False)}
                for answer in answers
            ]
        except ManyheadsError as fault:
            error = [422, str(fault)]
        except Exception as fault:
            if len(request.texts) > 1:  # only the text that fails is to get an error
                return [answer for text in request.texts for answer in self._answer(replace(request, texts=(text,)))]
            error = _bug(fault)
        return [{"error": error}] * len(request.texts)

    def _advance(self, number: int) -> None:
        language, events = self.streams[number]
        with using(language):
            try:
                event = next(events, None)
            except ManyheadsError as error:
                event = {"error": [422, str(error)]}
            except Exception as error:
                event = {"error": _bug(error)}
        if event is None or "delta" not in event:
            del self.streams[number]
        if event is not None:
            _send(self.connection, {"id": number, **event})

    def _load(self, message: dict[str, Any]) -> None:
        name, path = message["load"], Path(message["path"])
        try:
            answerer = ServedAnswerer.open(name, path, share_examples=self.share_examples)
            answerer.warm_up()
        except (ManyheadsError, OSError, MemoryError) as error:
            _send(self.connection, {"id": message["id"], "error": [422, without_path(error, path, name)]})
            return
        self.answerers[name] = answerer
        _send(self.connection, {"id": message["id"], "loaded": asdict(answerer.description)})


def _bug(error: Exception) -> list[Any]:
    """Log where an error was raised, but not its message, which may contain text of users."""
    places = "".join(traceback.format_list(traceback.extract_tb(error.__traceback__)))
    logger.error("A bug in manyheads: %s at\n%s", type(error).__name__, places)
    name = type(error).__name__
    return [500, _("This is a bug in manyheads: {error}. The log of the server shows where.", error=name)]


def _send(connection: Connection, message: Mapping[str, Any]) -> None:
    try:
        connection.send_bytes(json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    except (BrokenPipeError, ConnectionError):
        os._exit(0)  # the service has ended
