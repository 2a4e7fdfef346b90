"""Options that several commands share."""

from pathlib import Path
from typing import Any

import click

from manyheads.language import pick

MAX_COUNT = 1_000_000_000


class Count(click.types.IntParamType):
    """A whole number that Python can count to; what is too small, the library reports."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Convert the text of an option."""
        number = super().convert(value, param, ctx)
        if number > MAX_COUNT:
            self.fail(pick(f"{number} is more than {MAX_COUNT:,}.", f"{number} 超过了 {MAX_COUNT:,}。"), param, ctx)
        return int(number)


COUNT = Count()
JSON_RESULTS = click.option(
    "--json", "as_json", is_flag=True, help=pick("Print the results as JSON.", "以 JSON 格式输出结果。")
)
MAX_COST = click.option(
    "--max-cost",
    type=click.FloatRange(min=0),
    default=0.2,
    show_default=True,
    help=pick(
        "Largest accepted loss: points of a score out of 100, or percent of the nats per character.",
        "可接受的最大损失：百分制得分的分数，或每字符奈特的百分比。",
    ),
)
OVERWRITE_BUNDLE = click.option(
    "--overwrite", is_flag=True, help=pick("Replace an existing bundle.", "覆盖已有的模型包。")
)
VALID_FILES = click.option(
    "--valid",
    multiple=True,
    type=click.Path(path_type=Path),
    help=pick(
        "Files with rows to measure on. [default: the validation set of the recipe]",
        "用于测量的数据文件。[默认：配方中的验证集]",
    ),
)
