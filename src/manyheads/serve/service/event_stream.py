"""Server-sent events: each is one JSON value, and the last is `[DONE]`, as clients of OpenAI expect."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.responses import StreamingResponse

from manyheads.messages import Message
from manyheads.serve.service.problems import ProblemError

_LATE = Message("The stream was not finished in time.")


async def event_response(
    events: AsyncIterator[dict[str, Any]], error_event: Callable[[ProblemError], dict[str, Any]]
) -> StreamingResponse:
    """Return a response of events. A request that is refused before the first has its own status; later it is one."""
    try:
        first = await anext(events)
    except TimeoutError:
        raise ProblemError(504, _LATE) from None

    async def sent() -> AsyncIterator[str]:
        yield _line(first)
        try:
            async for event in events:
                yield _line(event)
        except ProblemError as error:
            yield _line(error_event(error))
        except TimeoutError:
            yield _line(error_event(ProblemError(504, _LATE)))
        yield "data: [DONE]\n\n"

    return StreamingResponse(sent(), media_type="text/event-stream")


def _line(content: dict[str, Any]) -> str:
    return f"data: {json.dumps(content, ensure_ascii=False)}\n\n"
