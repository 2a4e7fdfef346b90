"""`manyheads export`: write a bundle in the format of another library."""

from pathlib import Path

import click

from manyheads.messages import _


@click.command(
    short_help=_("Export a bundle to another format."),
    help=_("""Write BUNDLE in the format of another library.

        \b
        hf           a folder that transformers loads, with its tokenizer and a model card; every task
        ctranslate2  a CTranslate2 model with its SentencePiece model; seq2seq
        argos        a package of Argos Translate, a file OUT.argosmodel; translation

        Weights are float32. What a format cannot express is refused, naming every difference. Greedy search generates
        the same tokens as manyheads; beam search of other libraries has another stopping rule and length penalty.

        \b
        Example:
          manyheads export runs/quickstart/bundle --to ctranslate2 -o quickstart-ct2
        """),
)
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "--format",
    "target",
    type=click.Choice(["hf", "ctranslate2", "argos"]),
    required=True,
    help=_("The format to write."),
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help=_("The folder or file to write; it must not exist."),
)
def export(bundle: Path, target: str, output: Path) -> None:
    """Export a bundle."""
    from manyheads.bundle import load
    from manyheads.interop import EXPORTS

    if output.exists():
        raise click.UsageError(_("{output} already exists. Name a new folder.", output=output))
    write, hint = EXPORTS[target]
    write(load(bundle, engine="torch"), output)
    click.echo(
        _(
            "Wrote {output} ({format}). Load it: {hint}",
            output=str(output),
            format=target,
            hint=hint.format(output=str(output)),
        )
    )
