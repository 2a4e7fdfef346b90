"""`manyheads shortlist`: a translator that thinks of the likely words alone, measured before it is trusted."""

from pathlib import Path
from typing import Any

import click

from manyheads.cli.program import program


@click.command(short_help="Think of likely words alone: faster, measured. 只考虑可能的词：更快，先测后用。")
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The new bundle. [default: BUNDLE-shortlist]")
@click.option(
    "--train", multiple=True, type=click.Path(path_type=Path), help="Pairs to learn from, instead of the recipe's."
)
@click.option(
    "--valid", multiple=True, type=click.Path(path_type=Path), help="Pairs to measure by, instead of the recipe's."
)
@click.option("--sample", type=int, default=30_000, show_default=True, help="How many pairs to learn from.")
@click.option("--measure", type=int, default=1000, show_default=True, help="How many sentences to measure by.")
@click.option("--words", type=int, default=50, show_default=True, help="Words that each piece of a source brings.")
@click.option("--frequent", type=int, default=100, show_default=True, help="Words that are always thought of.")
@click.option("--overwrite", is_flag=True, help="Replace a bundle that is there already.")
@click.option("--json", "as_json", is_flag=True, help="What was measured, as JSON.")
def shortlist(
    bundle: Path,
    output: Path | None,
    train: tuple[Path, ...],
    valid: tuple[Path, ...],
    sample: int,
    measure: int,
    words: int,
    frequent: int,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Learn which words are written for which, and write a bundle that thinks of these alone. 学习候选词表。

    The attention heads that align best tell, over the training text, which piece stands for which. A sentence is then
    translated with the likeliest words of its own pieces and the most frequent ones, instead of the whole vocabulary.
    The valid set is translated before and after; more than 0.2 BLEU lost is refused, with the figure. The larger the
    vocabulary, the more is gained, most of all where sentences come one by one. `predict --no-shortlist` leaves it out.

    \b
    Example · 例:
      manyheads shortlist runs/mail/bundle
      manyheads predict runs/mail/bundle-shortlist letters.en -o letters.de
    """
    import json

    from manyheads.bundle import load
    from manyheads.cli.output import refuse_other_bundle
    from manyheads.lens.aligner import refuse_without_cross
    from manyheads.lens.sampling import train_rows, valid_rows
    from manyheads.lens.shortlisting import ShortlistSettings, shorten

    settings = ShortlistSettings(words=words, frequent=frequent)
    out = output or bundle.with_name(f"{bundle.name}-shortlist")
    refuse_other_bundle(out, bundle, overwrite=overwrite)
    loaded = load(bundle)
    refuse_without_cross(loaded, str(bundle))
    rows = valid_rows(loaded, measure, valid)
    short, found = shorten(loaded, str(bundle), train_rows(loaded, sample, train), rows, settings)
    short.save(out)
    if as_json:
        facts: dict[str, Any] = {"bundle": str(out), **(short.shortened or {})}
        click.echo(json.dumps(facts, indent=2))
        return
    click.echo(f"Learnt from {found.n_pairs:,} pairs by {', '.join(found.heads)}.")
    click.echo(f"A sentence thinks of {found.mean_words:,.0f} words of {found.vocabulary:,}, at the mean.")
    for name, trade in (("One by one", found.alone), ("All together", found.together)):
        click.echo(
            f"{name}: BLEU {trade.before:.2f} → {trade.after:.2f} "
            f"({-trade.lost:+.2f} [{trade.low:+.2f}, {trade.high:+.2f}], {trade.n_sentences} sentences), "
            f"{trade.speed:.2f} × as fast, {trade.same:.0%} of the translations are the same"
        )
    click.echo(f"\nWith a shortlist · 带候选词表:   {out}")
    click.echo(f"Try next · 接下来:   {program()} predict {out} YOUR-FILE")
