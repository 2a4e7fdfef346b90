"""What the library logs while a test runs."""

import logging
from collections.abc import Callable, Iterator

import pytest

Messages = Callable[[], list[str]]


@pytest.fixture
def messages(caplog: pytest.LogCaptureFixture) -> Iterator[Messages]:
    """Return a function that gives all lines so far, from INFO on."""
    logger = logging.getLogger("manyheads")
    propagate, logger.propagate = logger.propagate, True  # the command line turns it off
    caplog.set_level(logging.INFO, "manyheads")
    yield lambda: [record.getMessage() for record in caplog.records]
    logger.propagate = propagate
