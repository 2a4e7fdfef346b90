"""Options that several commands share."""

from pathlib import Path

import click

from manyheads.language import pick

JSON_RESULTS = click.option(
    "--json", "as_json", is_flag=True, help=pick("Print the results as JSON.", "以 JSON 格式输出结果。")
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
