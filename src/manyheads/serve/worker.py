"""A worker process: it loads the bundles, and answers batches of texts with one thread.

Messages are JSON over a pipe. To a worker: `{"id", "predict": how, "texts"}`, `{"id", "stream": how, "texts"}`,
`{"cancel": id}`, `{"id", "load": name, "path"}`. From it: `{"ready": bundles}`, `{"failed": error}`,
`{"id", "answers"}`, `{"id", "delta"}`, `{"id", "done"}`, `{"id", "loaded"}`, `{"id", "error"}`. An error is
`[status, detail]`. An answer is `{"ok": JSON}` or `{"error": …}`: the JSON of a prediction is a string, which the
service sends on as it is.

A worker ends when its pipe is closed. It ignores SIGINT and SIGTERM, which the service handles for all.
"""

import json
import logging
import os
import signal
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import torch

from manyheads.errors import ManyheadsError
from manyheads.serve.answering import AnsweringBundle
from manyheads.serve.private_data import without_path

logger = logging.getLogger(__name__)
_END: dict[str, Any] = {}
_NICENESS = 10  # the service, which refuses requests that are too many, comes before the workers if all cores are busy


def run_worker(connection: Connection, folders: Mapping[str, str], *, share_examples: bool = False) -> None:
    """Serve batches until the pipe is closed; `folders` are the bundles by name."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = "1"  # of the native engine
    torch.set_num_threads(1)
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    try:
        bundles = {
            name: AnsweringBundle.open(name, Path(folder), share_examples=share_examples)
            for name, folder in folders.items()
        }
        for bundle in bundles.values():
            bundle.warm_up()
    except (ManyheadsError, OSError, MemoryError) as error:
        _send(connection, {"failed": [500, str(error) or type(error).__name__]})
        return
    _send(connection, {"ready": [bundle.served for bundle in bundles.values()]})
    _Worker(connection, bundles, share_examples=share_examples).run()


class _Worker:
    """Answers messages one after the other; streams advance by one piece between them."""

    def __init__(
        self, connection: Connection, bundles: dict[str, AnsweringBundle], *, share_examples: bool = False
    ) -> None:
        self.connection, self.bundles, self.share_examples = connection, bundles, share_examples
        self.messages: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self.streams: dict[int, Iterator[dict[str, Any]]] = {}

    def run(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()
        while True:
            if not self.streams or not self.messages.empty():
                message = self.messages.get()
                if message is _END:
                    return
                self._handle(message)
            for number in list(self.streams):
                self._advance(number)

    def _read(self) -> None:
        """Read messages in a thread, so that the service never waits for a full pipe."""
        try:
            while True:
                self.messages.put(json.loads(self.connection.recv_bytes()))
        except (EOFError, OSError):
            self.messages.put(_END)

    def _handle(self, message: dict[str, Any]) -> None:
        if "cancel" in message:
            self.streams.pop(message["cancel"], None)
        elif "load" in message:
            self._load(message)
        elif "stream" in message:
            how = json.loads(message["stream"])
            self.streams[message["id"]] = self.bundles[how["bundle"]].stream(message["texts"][0], how)
        else:
            how = json.loads(message["predict"])
            answers = self._answer(self.bundles[how["bundle"]], message["texts"], how)
            _send(self.connection, {"id": message["id"], "answers": answers})

    def _answer(self, bundle: AnsweringBundle, texts: Sequence[str], how: Mapping[str, Any]) -> list[dict[str, Any]]:
        try:
            return [_written(answer) for answer in bundle.answer(texts, how)]
        except ManyheadsError as error:
            return [{"error": [422, str(error)]} for _ in texts]
        except Exception as error:
            if len(texts) > 1:  # only the text that fails is to get an error
                return [answer for text in texts for answer in self._answer(bundle, [text], how)]
            return [{"error": _bug(error)}]

    def _advance(self, number: int) -> None:
        try:
            event = next(self.streams[number], None)
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
            bundle = AnsweringBundle.open(name, path, share_examples=self.share_examples)
            bundle.warm_up()
        except (ManyheadsError, OSError, MemoryError) as error:
            _send(self.connection, {"id": message["id"], "error": [422, without_path(error, path, name)]})
            return
        self.bundles[name] = bundle
        _send(self.connection, {"id": message["id"], "loaded": bundle.served})


def _written(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer with its prediction as JSON."""
    return {"ok": json.dumps(answer["ok"], ensure_ascii=False, allow_nan=False)} if "ok" in answer else answer


def _bug(error: Exception) -> list[Any]:
    """Log where an error was raised, but not its message, which may contain text of users."""
    places = "".join(traceback.format_list(traceback.extract_tb(error.__traceback__)))
    logger.error("A bug in manyheads: %s at\n%s", type(error).__name__, places)
    return [500, f"This is a bug in manyheads: {type(error).__name__}. The log of the server shows where."]


def _send(connection: Connection, message: Mapping[str, Any]) -> None:
    try:
        connection.send_bytes(json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    except (BrokenPipeError, ConnectionError):
        os._exit(0)  # the service has ended
