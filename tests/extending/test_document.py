"""docs/how-to/extending.md shows the code that these tests run."""

from pathlib import Path

import pytest

from extending import test_engine, test_model_parts, test_table_format, test_task

DOCUMENT = Path(__file__).parents[2] / "docs" / "how-to" / "extending.md"


@pytest.mark.parametrize(
    "source",
    [
        test_model_parts._NORM,
        test_model_parts._SCORE_FORM,
        test_engine.PARROT,
        test_task.TASK,
        test_table_format.INI,
    ],
)
def test_code_in_the_document_is_the_code_that_is_tested(source: str) -> None:
    assert source.strip() in DOCUMENT.read_text("utf-8")
