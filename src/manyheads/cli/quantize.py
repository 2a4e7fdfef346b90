"""`manyheads quantize`: a seq2seq bundle with int8 weights, with the measured cost."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from manyheads.cli.options import COUNT, JSON_RESULTS, MAX_COST, OVERWRITE_BUNDLE, VALID_FILES
from manyheads.cli.output import program_name, quoted
from manyheads.language import pick

if TYPE_CHECKING:
    from manyheads.compress.trade_off import TradeOff

_PATH = click.Path(path_type=Path)


@click.command(
    short_help=pick(
        "Quantize a seq2seq bundle to int8, with the measured cost.", "把 seq2seq 模型包量化为 int8，并测量代价。"
    ),
    help=pick(
        """Quantize the weights of a seq2seq bundle to int8, measure the cost, and write the result as a bundle.

        The validation set is translated before and after. A loss of more than --max-cost is refused. The new bundle is
        about a quarter of the size and is used like any other. Only seq2seq bundles can be quantized.

        \b
        Example:
          manyheads quantize runs/mail/bundle
          manyheads predict runs/mail/bundle-int8 letters.en -o letters.de
        """,
        """把 seq2seq 模型包的权重量化为 int8，测量代价，并写成新的模型包。

        量化前后各翻译一遍验证集；损失超过 --max-cost 则拒绝。新模型包约为原大小的四分之一，用法与普通模型包相同。
        只有 seq2seq 模型包可以量化。

        \b
        例：
          manyheads quantize runs/mail/bundle
          manyheads predict runs/mail/bundle-int8 letters.en -o letters.de
        """,
    ),
)
@click.argument("bundle", type=_PATH)
@click.option(
    "-o", "--output", type=_PATH, help=pick("The new bundle. [default: BUNDLE-int8]", "新的模型包。[默认：BUNDLE-int8]")
)
@VALID_FILES
@click.option(
    "--sample",
    type=COUNT,
    default=1000,
    show_default=True,
    help=pick("Number of sentences to measure on.", "用于测量的句子数。"),
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
    sizes = pick(
        f"{after / 1e6:.1f} MB, was {before / 1e6:.1f} MB", f"{after / 1e6:.1f} MB，原为 {before / 1e6:.1f} MB"
    )
    click.echo("\n" + pick("Quantized bundle:  ", "量化后的模型包：  ") + f"{out} ({sizes})")
    click.echo(pick("Try next:          ", "接下来：          ") + f"{program_name()} predict {quoted(out)} YOUR-FILE")


def describe_trade_off(trade_off: "TradeOff") -> str:
    """Describe the cost and the speed of a compressed bundle in one line."""
    change = trade_off.change
    cost = f"{change.name} {change.before:.2f} → {change.value:.2f} "
    texts = f"{pick('validation', '验证集')} n = {change.n_texts:,}"
    cost += f"({change.difference:+.2f} [{change.low:+.2f}, {change.high:+.2f}], {texts})"
    speed = pick(f"{trade_off.speedup:.2f} × as fast", f"速度为 {trade_off.speedup:.2f} 倍")
    if trade_off.identical is None:
        return pick(f"{cost}, {speed}", f"{cost}，{speed}")
    identical = pick(f"{trade_off.identical:.0%} of outputs identical", f"{trade_off.identical:.0%} 的输出不变")
    return pick(f"{cost}, {speed}, {identical}", f"{cost}，{speed}，{identical}")
