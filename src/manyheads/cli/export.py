"""`manyheads export`: write a bundle in the format of another library."""

from pathlib import Path

import click

from manyheads.language import pick


@click.command(
    short_help=pick("Export a bundle to another format.", "将模型包导出为其他格式。"),
    help=pick(
        """Write BUNDLE as a CTranslate2 model, with its SentencePiece model, into a new folder.

        Weights are float32. CTranslate2 can quantize them when it loads the model. Its greedy search generates the same
        tokens as manyheads; its beam search uses another stopping rule and length penalty.

        \b
        Example:
          manyheads export runs/quickstart/bundle --format ctranslate2 -o quickstart-ct2
        """,
        """将 BUNDLE 写成 CTranslate2 模型，连同 SentencePiece 分词模型，存入一个新文件夹。

        权重为 float32，可在 CTranslate2 加载时量化。贪心搜索的结果与 manyheads 一致；束搜索的停止条件和长度惩罚不同。

        \b
        示例：
          manyheads export runs/quickstart/bundle --format ctranslate2 -o quickstart-ct2
        """,
    ),
)
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "format_",
    type=click.Choice(["ctranslate2"]),
    required=True,
    help=pick("The format to write.", "目标格式。"),
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help=pick("The folder to write; it must not exist.", "要写入的文件夹，不能已存在。"),
)
def export(bundle: Path, format_: str, output: Path) -> None:
    """Export a bundle."""
    from manyheads.bundle import load
    from manyheads.interop import export_bundle

    if output.exists():
        raise click.UsageError(
            pick(f"{output} already exists. Name a new folder.", f"{output} 已存在。请指定一个新文件夹。")
        )
    export_bundle(load(bundle, engine="torch"), output)
    click.echo(
        pick(
            f"Wrote {output} ({format_}). Load it: ctranslate2.Translator({str(output)!r})",
            f"已写入 {output}（{format_}）。加载方法：ctranslate2.Translator({str(output)!r})",
        )
    )
