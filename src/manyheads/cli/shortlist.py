"""`manyheads shortlist`: a translator that thinks of the likely words alone, measured before it is trusted."""

from pathlib import Path
from typing import Any

import click

from manyheads.cli.program import program_name


@click.command(short_help="Think of likely words alone: faster, measured. 只考虑可能的词：更快，先测后用。")
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The new bundle. [default: BUNDLE-shortlist]")
@click.option(
    "--train", multiple=True, type=click.Path(path_type=Path), help="Pairs to learn from, instead of the recipe's."
)
@click.option(
    "--valid", multiple=True, type=click.Path(path_type=Path), help="Pairs to measure by, instead of the recipe's."
)
@click.option("--train-sample", type=int, default=30_000, show_default=True, help="How many pairs to learn from.")
@click.option("--valid-sample", type=int, default=1000, show_default=True, help="How many sentences to measure by.")
@click.option("--words", type=int, default=50, show_default=True, help="Words that each token of a source brings.")
@click.option("--frequent", type=int, default=100, show_default=True, help="Words that are always thought of.")
@click.option("--overwrite", is_flag=True, help="Replace a bundle that is there already.")
@click.option("--json", "as_json", is_flag=True, help="What was measured, as JSON.")
def shortlist(
    bundle: Path,
    output: Path | None,
    train: tuple[Path, ...],
    valid: tuple[Path, ...],
    train_sample: int,
    valid_sample: int,
    words: int,
    frequent: int,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Learn which words are written for which, and write a bundle that thinks of these alone. 学习候选词表。

    The attention heads that align best tell, over the training text, which token stands for which. A sentence is then
    translated with the likeliest words of its own tokens and the most frequent ones, instead of the whole vocabulary.
    The valid set is translated before and after; more than 0.2 BLEU lost is refused, with the figure. The larger the
    vocab_size, the more is gained, most of all where sentences come one by one. `predict --no-shortlist` leaves it out.

    \b
    Example · 例:
      manyheads shortlist runs/mail/bundle
      manyheads predict runs/mail/bundle-shortlist letters.en -o letters.de
    """
    import json

    from manyheads.bundle import load
    from manyheads.cli.output import check_output_folder
    from manyheads.compress.shortlisting import ShortlistSettings, add_shortlist
    from manyheads.lens.aligner import require_cross_attention
    from manyheads.lens.row_sample import train_rows, valid_rows

    settings = ShortlistSettings(words=words, frequent=frequent)
    out = output or bundle.with_name(f"{bundle.name}-shortlist")
    check_output_folder(out, bundle, overwrite=overwrite)
    loaded = load(bundle)
    require_cross_attention(loaded, str(bundle))
    rows = valid_rows(loaded, valid_sample, valid)
    short, found = add_shortlist(loaded, str(bundle), train_rows(loaded, train_sample, train), rows, settings)
    short.save(out)
    if as_json:
        payload: dict[str, Any] = {"bundle": str(out), **(short.shortlist_cost or {})}
        click.echo(json.dumps(payload, indent=2))
        return
    click.echo(f"Learnt from {found.n_pairs:,} pairs by {', '.join(found.heads)}.")
    click.echo(f"A sentence thinks of {found.mean_tokens:,.0f} words of {found.vocab_size:,}, at the mean.")
    for name, trade_off in (("One by one", found.alone), ("All together", found.together)):
        click.echo(
            f"{name}: BLEU {trade_off.before:.2f} → {trade_off.after:.2f} "
            f"({-trade_off.bleu_drop:+.2f} [{trade_off.low:+.2f}, {trade_off.high:+.2f}], {trade_off.n_sentences} sentences), "
            f"{trade_off.speedup:.2f} × as fast, {trade_off.identical:.0%} of the translations are the same"
        )
    click.echo(f"\nWith a shortlist · 带候选词表:   {out}")
    click.echo(f"Try next · 接下来:   {program_name()} predict {out} YOUR-FILE")
