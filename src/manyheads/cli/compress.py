"""`manyheads quantize` and `shortlist`: a smaller or faster seq2seq bundle, with the measured cost."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from manyheads.cli.options import COUNT, JSON_RESULTS, MAX_COST, OVERWRITE_BUNDLE, VALID_FILES
from manyheads.cli.rendering.output import program_name, quoted
from manyheads.messages import _

if TYPE_CHECKING:
    from manyheads.compress.shortlisting import ShortlistReport
    from manyheads.compress.trade_off import TradeOff


_PATH = click.Path(path_type=Path)


@click.command(
    short_help=_("Quantize a seq2seq bundle to int8, with the measured cost."),
    help=_("""Quantize the weights of a seq2seq bundle to int8, measure the cost, and write the result as a bundle.

        The validation set is translated before and after. A loss of more than --max-cost is refused. The new bundle is
        about a quarter of the size and is used like any other. Only seq2seq bundles can be quantized.

        \b
        Example:
          manyheads quantize runs/mail/bundle
          manyheads predict runs/mail/bundle-int8 letters.en -o letters.de
        """),
)
@click.argument("bundle", type=_PATH)
@click.option("-o", "--output", type=_PATH, help=_("The new bundle. [default: BUNDLE-int8]"))
@VALID_FILES
@click.option(
    "--sample",
    type=COUNT,
    default=1000,
    show_default=True,
    help=_("Number of sentences to measure on."),
)
@MAX_COST
@OVERWRITE_BUNDLE
@JSON_RESULTS
def quantize(
    bundle: Path,
    output: Path | None,
    valid: tuple[Path, ...],
    sample: int,
    max_cost: float,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Quantize a bundle."""
    import json
    from dataclasses import asdict

    from manyheads.bundle import load
    from manyheads.cli.rendering.output import check_output_folder
    from manyheads.cli.train import echo_table
    from manyheads.compress.quantization import quantize as quantize_bundle
    from manyheads.lens.scored_rows import valid_rows

    out = output or bundle.with_name(f"{bundle.name}-int8")
    check_output_folder(out, bundle, overwrite=overwrite)
    loaded = load(bundle)
    compressed = quantize_bundle(loaded, valid_rows(loaded, sample, valid), max_cost)
    compressed.bundle.save(out)
    before, after = (sum(file.stat().st_size for file in folder.iterdir()) for folder in (bundle, out))
    if as_json:
        payload: dict[str, Any] = {
            "bundle": str(out),
            "bytes": [before, after],
            "engine": compressed.report.engine,
            "trade_off": asdict(compressed.trade_off),
        }
        click.echo(json.dumps(payload, indent=2))
        return
    click.echo(f"{compressed.report.engine}: {describe_trade_off(compressed.trade_off)}")
    sizes = _("{after:.1f} MB, was {before:.1f} MB", after=after / 1e6, before=before / 1e6)
    click.echo()
    echo_table(
        [
            (_("Quantized bundle:"), f"{out} ({sizes})"),
            (_("Try next:"), f"{program_name()} predict {quoted(out)} " + _("YOUR-FILE")),
        ]
    )


def describe_trade_off(trade_off: "TradeOff") -> str:
    """Describe the cost and the speed of a compressed bundle in one line."""
    from manyheads.metrics import display_name, format_change

    change = trade_off.change
    interval = " ".join(format_change(change.difference, change.low, change.high)).strip()
    cost = _(
        "{name} {before:.2f} → {value:.2f} ({interval}, validation n = {n_texts:,})",
        name=display_name(change.name),
        before=change.before,
        value=change.value,
        interval=interval,
        n_texts=change.n_texts,
    )
    speed = _("{speedup:.2f} × as fast", speedup=trade_off.speedup)
    if trade_off.identical is None:
        return _("{cost}, {speed}", cost=cost, speed=speed)
    identical = _("{identical:.0%} of outputs identical", identical=trade_off.identical)
    return _("{cost}, {speed}, {identical}", cost=cost, speed=speed, identical=identical)


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
    from manyheads.cli.rendering.output import check_output_folder
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
