"""`manyheads evaluate`: score a bundle."""

from collections.abc import Iterable
from pathlib import Path

import click


@click.command(short_help="Score a model, with intervals. 给模型评分（含置信区间）。")
@click.argument("bundle", type=click.Path(path_type=Path))
@click.argument("data", nargs=-1, type=click.Path(path_type=Path))
@click.option("--source-column", help="Column of the source, in a .tsv, .csv, .jsonl or .parquet.")
@click.option("--target-column", help="Column of the reference, in the same.")
@click.option("--json", "as_json", is_flag=True, help="Scores as JSON.")
def evaluate(
    bundle: Path, data: tuple[Path, ...], source_column: str | None, target_column: str | None, as_json: bool
) -> None:
    """Translate a test set and print the scorecard. 翻译测试集并打印评分表。

    DATA is two parallel files, or one .tsv, .csv, .jsonl or .parquet, plain or compressed (.gz, .zst); without it,
    the test set of the bundle's own recipe is used.

    \b
    Example · 例:
      manyheads evaluate runs/quickstart/bundle
      manyheads evaluate runs/mail/bundle test.en test.de
    """
    import json
    from dataclasses import asdict

    from rich.console import Console
    from rich.progress import Progress

    from manyheads.bundle import load
    from manyheads.cli.show import make_console, show_losses, show_samples, show_scores
    from manyheads.errors import DataError
    from manyheads.recipe import Corpus, Recipe, score
    from manyheads.text.readers import read_pairs

    loaded = load(bundle, device="auto")
    tests: dict[str, Iterable[tuple[str, str]]]
    if data:
        name = " + ".join(file.name for file in data)
        tests = {name: read_pairs(data, source_column=source_column, target_column=target_column)}
    else:
        recipe = Recipe.from_table(loaded.recipe)
        try:
            tests = dict(Corpus(recipe.data, recipe.seed, recipe.clean).tests())
        except DataError as error:
            raise DataError(f"{error} Or name a test set: manyheads evaluate {bundle} SOURCE TARGET.") from None

    cards = {}
    with Progress(console=Console(stderr=True), transient=True) as bars:
        for name, pairs in tests.items():
            listed = list(pairs)
            bar = bars.add_task(name, total=len(listed))
            cards[name] = score(
                loaded.task,
                listed,
                loaded.decode,
                lambda done, bar=bar: bars.advance(bar, done),  # type: ignore[misc]
            )
    scores = {name: card.scores for name, card in cards.items()}
    if as_json:
        facts = {
            name: {
                "n_sentences": len(card.samples),
                "n_cut_off": card.n_cut_off,
                "n_too_long": card.n_too_long,
                "scores": [asdict(one) for one in card.scores],
            }
            for name, card in cards.items()
        }
        click.echo(json.dumps(facts, indent=2))
        return
    console = make_console(plain=False)
    for name, card in cards.items():
        console.print(f"{name}: the first three of {len(card.samples):,} sentences", style="bold", markup=False)
        show_samples(card.samples[:3], console)
        show_losses(card.n_cut_off, card.n_too_long, console)
    show_scores(scores, console)
