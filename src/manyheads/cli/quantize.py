"""`manyheads quantize`: a seq2seq bundle with int8 weights, with the measured cost."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from manyheads.cli.options import COUNT, JSON_RESULTS, MAX_COST, OVERWRITE_BUNDLE, VALID_FILES
from manyheads.cli.output import program_name, quoted
from manyheads.messages import _

if TYPE_CHECKING:
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
    from manyheads.cli.output import check_output_folder
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
    from manyheads.metrics import display_name

    change = trade_off.change
    interval = f"{change.difference:+.2f} [{change.low:+.2f}, {change.high:+.2f}]"
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
