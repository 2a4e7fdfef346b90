"""A service whose requests are answered in this process, by the code of a worker."""

import json
from pathlib import Path
from typing import Any

from manyheads.answer.request import AnswerRequest
from manyheads.serve.service.problems import ProblemError
from manyheads.serve.service.served_answerer import ServedAnswerer
from manyheads.serve.service.service import Service
from manyheads.serve.service.worker import _Worker

from serve.fake_service import FakeService


class InProcessService(FakeService):
    """Sends what a worker would get as JSON, and reads what it answers."""

    find, check, _check_decode = Service.find, Service.check, Service._check_decode

    def __init__(self, **folders: Path) -> None:
        answerers = {name: ServedAnswerer.open(name, path, share_examples=True) for name, path in folders.items()}
        super().__init__(*(answerer.description for answerer in answerers.values()))
        self._worker = _Worker(None, answerers)  # type: ignore[arg-type]

    async def predict_json(self, request: AnswerRequest) -> list[str]:
        self.check(request)  # type: ignore[misc]
        message = json.loads(json.dumps({"id": 1, "predict": request.key, "texts": request.texts}))
        answers = self._worker._predict(message)["answers"]
        for answer in answers:
            if "error" in answer:
                raise ProblemError(*answer["error"])
        return [answer["ok"] for answer in answers]

    async def predict(self, request: AnswerRequest) -> list[dict[str, Any]]:
        return [json.loads(answer) for answer in await self.predict_json(request)]
