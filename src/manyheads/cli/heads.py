"""`manyheads heads`: what every head of a bundle does, told by numbers."""

from pathlib import Path

import click

from manyheads.cli.heads_cards import CardOptions, show_heads, show_timeline

_FILES = click.Path(path_type=Path)


@click.command(short_help="Say what every head does, by numbers. 用数据说明每个注意力头的作用。")
@click.argument("bundle", type=_FILES)
@click.option("--gold", multiple=True, type=_FILES, help="Trees (.conllu), or source, target and links; one each.")
@click.option("--text", multiple=True, type=_FILES, help="Text to watch heads on; of pairs give both sides.")
@click.option("--sample", type=click.IntRange(min=2), help="How many texts to watch. [default: 300; timeline: 60]")
@click.option("--lower-case", is_flag=True, help="Read gold text in lower case, as the model was trained.")
@click.option("--timeline", is_flag=True, help="BUNDLE is a run: when did each role appear in training?")
@click.option("--svg", type=_FILES, help="Draw the heads and how alike they are, or the timeline, to this file.")
@click.option("--json", "as_json", is_flag=True, help="Every figure with interval, baseline and control, as JSON.")
@click.option("--all", "show_all", is_flag=True, help="Every head in the table, not only the best and the worst.")
def heads(
    bundle: Path,
    gold: tuple[Path, ...],
    text: tuple[Path, ...],
    sample: int | None,
    lower_case: bool,
    timeline: bool,
    svg: Path | None,
    as_json: bool,
    show_all: bool,
) -> None:
    """Say what every head of BUNDLE does: a role card each. 为每个注意力头写一张角色卡。

    Roles are given by published definitions, each figure beside a fixed baseline and the same model randomly
    initialised, with an interval over texts; a head that does nothing nameable is "unknown". A bundle of the built-in
    corpus brings its own gold; others take the valid text they were trained by, --text or --gold: CoNLL-U trees of the
    text that is read, or word alignments: source words, target words and links, as three files.

    \b
    Example · 例:
      manyheads heads runs/quickstart/bundle
      manyheads heads runs/mail/bundle --gold trees.conllu --json
      manyheads heads runs/mail/bundle --gold words.en --gold words.de --gold links.txt
      manyheads heads runs/quickstart --timeline --svg timeline.svg
    """
    options = CardOptions(gold, text, sample, lower_case, svg, as_json, show_all)
    if timeline:
        show_timeline(bundle, options)
    else:
        show_heads(bundle, options)
