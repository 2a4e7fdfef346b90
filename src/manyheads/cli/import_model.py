"""`manyheads import`: read somebody else's model into a bundle."""

from pathlib import Path

import click

from manyheads.messages import _


@click.command(
    name="import",
    short_help=_("Import a model from a local folder."),
    help=_("""Read the model in FOLDER, as transformers or sentence-transformers write it, into a bundle.

        Needed are config.json, model.safetensors and a tokenizer (tokenizer.json or the files before it). Nothing is
        downloaded, no pickle is read and no code in the folder is run. The bundle computes the same as the original;
        predict, lens, heads, walk, serve and the others take it like any other, and a recipe can start from it with
        init_from.

        \b
        Example:
          manyheads import all-MiniLM-L6-v2 -o minilm
          manyheads lens minilm "The old man the boat."
        """),
)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help=_("The bundle to write; it must not exist."),
)
def import_(folder: Path, output: Path) -> None:
    """Import a model."""
    if output.exists():
        raise click.UsageError(_("{output} already exists. Name a new folder.", output=output))

    from manyheads.interop import import_huggingface

    bundle = import_huggingface(folder)
    bundle.save(output)
    model = bundle.task.model
    n_heads = sum(attention.heads.n_heads for attention in model.attentions())
    click.echo(
        _(
            "Wrote {output}: task {kind}, {n_heads:,} heads, {n_parameters:,} parameters. Look inside: {command}",
            output=str(output),
            kind=bundle.kind,
            n_heads=n_heads,
            n_parameters=model.n_parameters,
            command=f"manyheads lens {output}",
        )
    )
