"""`manyheads export`: write a bundle in the format of another library."""

from pathlib import Path

import click

from manyheads.messages import _


@click.command(
    short_help=_("Export a bundle to another format."),
    help=_("""Write BUNDLE as a CTranslate2 model, with its SentencePiece model, into a new folder.

        Weights are float32. CTranslate2 can quantize them when it loads the model. Its greedy search generates the same
        tokens as manyheads; its beam search uses another stopping rule and length penalty.

        \b
        Example:
          manyheads export runs/quickstart/bundle --format ctranslate2 -o quickstart-ct2
        """),
)
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "format_",
    type=click.Choice(["ctranslate2"]),
    required=True,
    help=_("The format to write."),
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help=_("The folder to write; it must not exist."),
)
def export(bundle: Path, format_: str, output: Path) -> None:
    """Export a bundle."""
    from manyheads.bundle import load
    from manyheads.interop import export_bundle

    if output.exists():
        raise click.UsageError(_("{output} already exists. Name a new folder.", output=output))
    export_bundle(load(bundle, engine="torch"), output)
    click.echo(
        _(
            "Wrote {output} ({format}). Load it: ctranslate2.Translator({output!r})",
            output=str(output),
            format=format_,
        )
    )
