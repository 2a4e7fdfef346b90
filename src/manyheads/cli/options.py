"""Options that several commands share."""

from pathlib import Path
from typing import Any

import click

from manyheads.messages import _

MAX_COUNT = 1_000_000_000


class Count(click.types.IntParamType):
    """A whole number that Python can count to; what is too small, the library reports."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Convert the text of an option."""
        number = super().convert(value, param, ctx)
        if number > MAX_COUNT:
            self.fail(_("{number} is more than {limit:,}.", number=number, limit=MAX_COUNT), param, ctx)
        return int(number)


COUNT = Count()
JSON_RESULTS = click.option("--json", "as_json", is_flag=True, help=_("Print the results as JSON."))
MAX_COST = click.option(
    "--max-cost",
    type=click.FloatRange(min=0),
    default=0.2,
    show_default=True,
    help=_("Largest accepted loss: points of a score out of 100, or percent of the nats per character."),
)
OVERWRITE_BUNDLE = click.option("--overwrite", is_flag=True, help=_("Replace an existing bundle."))
VALID_FILES = click.option(
    "--valid",
    multiple=True,
    type=click.Path(path_type=Path),
    help=_("Files with rows to measure on. [default: the validation set of the recipe]"),
)
