"""`manyheads shortlist`: a seq2seq bundle that scores only likely target tokens, with the measured cost."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from manyheads.cli.options import COUNT, JSON_RESULTS, MAX_COST, OVERWRITE_BUNDLE, VALID_FILES
from manyheads.cli.output import program_name, quoted
from manyheads.messages import _

if TYPE_CHECKING:
    from manyheads.compress.shortlisting import ShortlistReport

_PATH = click.Path(path_type=Path)


@click.command(
    short_help=_("Score only likely tokens: faster, with the measured cost."),
    help=_("""Learn which target tokens each source token allows, and write a bundle that scores only these.

        The attention heads that align best link the tokens of the training data. A sentence is then translated with
        the tokens linked to its own tokens and the most frequent ones instead of the whole vocabulary. The validation
        set is translated before and after; a loss of more than --max-cost is refused. The speedup grows with the
        vocabulary and is largest for single sentences. `predict --no-shortlist` does not use the shortlist.

        \b
        Example:
          manyheads shortlist runs/mail/bundle
          manyheads predict runs/mail/bundle-shortlist letters.en -o letters.de
        """),
)
@click.argument("bundle", type=_PATH)
@click.option(
    "-o",
    "--output",
    type=_PATH,
    help=_("The new bundle. [default: BUNDLE-shortlist]"),
)
@click.option(
    "--train",
    multiple=True,
    type=_PATH,
    help=_("Files with pairs to learn from. [default: the training set of the recipe]"),
)
@VALID_FILES
@click.option(
    "--train-sample",
    type=COUNT,
    default=30_000,
    show_default=True,
    help=_("Number of pairs to learn from."),
)
@click.option(
    "--valid-sample",
    type=COUNT,
    default=1000,
    show_default=True,
    help=_("Number of sentences to measure on."),
)
@click.option(
    "--words",
    type=COUNT,
    default=50,
    show_default=True,
    help=_("Target tokens allowed by each source token."),
)
@click.option(
    "--frequent",
    type=COUNT,
    default=100,
    show_default=True,
    help=_("Frequent target tokens that are always allowed."),
)
@MAX_COST
@OVERWRITE_BUNDLE
@JSON_RESULTS
def shortlist(
    bundle: Path,
    output: Path | None,
    train: tuple[Path, ...],
    valid: tuple[Path, ...],
    train_sample: int,
    valid_sample: int,
    words: int,
    frequent: int,
    max_cost: float,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Add a shortlist to a bundle."""
    import json

    from manyheads.bundle import load
    from manyheads.cli.output import check_output_folder
    from manyheads.cli.train import echo_table
    from manyheads.compress.shortlisting import ShortlistSettings, add_shortlist
    from manyheads.lens.aligner import require_cross_attention
    from manyheads.lens.scored_rows import train_rows, valid_rows

    settings = ShortlistSettings(words=words, frequent=frequent)
    out = output or bundle.with_name(f"{bundle.name}-shortlist")
    check_output_folder(out, bundle, overwrite=overwrite)
    loaded = load(bundle)
    require_cross_attention(loaded, str(bundle))
    rows = valid_rows(loaded, valid_sample, valid)
    compressed = add_shortlist(loaded, str(bundle), train_rows(loaded, train_sample, train), rows, settings, max_cost)
    compressed.bundle.save(out)
    if as_json:
        payload: dict[str, Any] = {"bundle": str(out), **(compressed.bundle.shortlist_cost or {})}
        click.echo(json.dumps(payload, indent=2))
        return
    _show_report(compressed.report)
    click.echo()
    echo_table(
        [
            (_("Bundle with shortlist:"), str(out)),
            (_("Try next:"), f"{program_name()} predict {quoted(out)} " + _("YOUR-FILE")),
        ]
    )


def _show_report(report: "ShortlistReport") -> None:
    from manyheads.cli.quantize import describe_trade_off
    from manyheads.cli.train import echo_table

    heads = ", ".join(report.heads)
    click.echo(_("Learned from {n_pairs:,} pairs with the heads {heads}.", n_pairs=report.n_pairs, heads=heads))
    click.echo(
        _(
            "Average shortlist: {mean_tokens:,.0f} of {vocab_size:,} tokens per sentence.",
            mean_tokens=report.mean_tokens,
            vocab_size=report.vocab_size,
        )
    )
    echo_table(
        [
            (_("Single sentences:"), describe_trade_off(report.single)),
            (_("One batch:"), describe_trade_off(report.batch)),
        ],
        gap=1,
    )
