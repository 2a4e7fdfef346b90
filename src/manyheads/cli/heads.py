"""`manyheads heads show|example|importance|prune|timeline`: what heads do, how much depends on them, pruning."""

import difflib
from pathlib import Path
from typing import Any

import click

from manyheads.cli.options import JSON_RESULTS, MAX_COST, MAX_COUNT, OVERWRITE_BUNDLE, VALID_FILES
from manyheads.messages import _

_PATH = click.Path(path_type=Path)
_N_ROWS = 200


class _Heads(click.Group):
    """The subcommands in order; `heads BUNDLE` means `heads show BUNDLE`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None:
            from manyheads.settings import did_you_mean

            if similar := difflib.get_close_matches(args[0], self.commands, n=1):
                hint = did_you_mean(args[0], similar)
                ctx.fail(_("There is no command {name!r}. {hint}", name=args[0], hint=hint))
            args = ["show", *args]
        return super().resolve_command(ctx, args)


@click.group(
    cls=_Heads,
    short_help=_("Show what each attention head does; prune heads."),
    help=_("""Show what each attention head does, how important it is, and prune those that are not needed.

        `manyheads heads BUNDLE` is short for `manyheads heads show BUNDLE`.

        \b
        Example:
          manyheads heads show runs/quickstart/bundle
          manyheads heads example runs/quickstart/bundle
          manyheads heads importance runs/mail/bundle
          manyheads heads prune runs/mail/bundle --share 0.4
          manyheads heads timeline runs/quickstart --svg timeline.svg
        """),
)
def heads() -> None:
    """Run one of the subcommands."""


_SAMPLE_ROWS = click.option(
    "--sample",
    type=click.IntRange(2, MAX_COUNT),
    default=_N_ROWS,
    show_default=True,
    help=_("Number of rows to measure on."),
)


@heads.command(
    short_help=_("Show a role card for every head."),
    help=_("""Show the role of every head, by published definitions.

        Each statistic is shown beside its best baseline (a fixed offset, or the neighboring words) and the best head of
        untrained models, with a 95 % interval over texts. One half of the texts selects roles, the other confirms them.
        Heads that match no definition are labeled "unknown". A bundle trained on the built-in corpus has gold
        annotation. Other bundles use their validation text, --text, or --gold: CoNLL-U trees, or word alignments in
        three files (source words, target words, links).

        \b
        Example:
          manyheads heads show runs/quickstart/bundle
          manyheads heads show runs/mail/bundle --gold words.en --gold words.de --gold links.txt --lowercase
        """),
)
@click.argument("bundle", type=_PATH)
@click.option(
    "--gold",
    multiple=True,
    type=_PATH,
    help=_("Gold annotation: .conllu trees, or source words, target words and links."),
)
@click.option(
    "--text",
    multiple=True,
    type=_PATH,
    help=_("Text to observe heads on; for pairs give both sides."),
)
@click.option(
    "--lowercase",
    is_flag=True,
    help=_("Lower-case the gold text, for a model trained on lower-cased text."),
)
@click.option(
    "--sample",
    type=click.IntRange(2, MAX_COUNT),
    default=300,
    show_default=True,
    help=_("Number of texts."),
)
@click.option(
    "--svg",
    type=_PATH,
    help=_("Draw the roles and the similarity of heads to this file."),
)
@click.option(
    "--all",
    "show_all",
    is_flag=True,
    help=_("List every head, not only the clearest and the least confident."),
)
@JSON_RESULTS
def show(bundle: Path, **options: Any) -> None:
    """Show the role cards of a bundle."""
    from manyheads.cli.rendering.role_cards import CardOptions, show_roles

    show_roles(bundle, CardOptions(**options))


@heads.command(
    short_help=_("Find a head whose absence changes an answer."),
    help=_("""Find a head whose absence is seen at once, and print the commands that show it.

        Short held-out texts are answered without each head, one attention after another from the last one. The best
        example replaces one word of the answer by another.

        \b
        Example:
          manyheads heads example runs/quickstart/bundle
        """),
)
@click.argument("bundle", type=_PATH)
@JSON_RESULTS
def example(bundle: Path, as_json: bool) -> None:
    """Show one head whose absence changes an answer."""
    from manyheads.cli.rendering.head_results import show_example

    show_example(bundle, as_json=as_json)


@heads.command(
    short_help=_("Measure how important every head is."),
    help=_("""Measure how much log-probability answers lose without each head, in nats per answer.

        The head's output is replaced by zero, by its mean over all texts, or by its output at another text (resample).
        The answers are the references of the bundle's validation rows; models without references are measured by their
        own answers. Brackets hold 95 % intervals over these rows.

        --by gradient adds the importance by gradient, which is faster, and how far both rankings agree. --by score adds
        the change of the task's score, of single heads and of whole attentions; generated text is decoded greedily.

        \b
        Example:
          manyheads heads importance runs/mail/bundle
          manyheads heads importance runs/mail/bundle --by gradient --by score
          manyheads heads importance runs/mail/bundle --sample 500 --json
        """),
)
@click.argument("bundle", type=_PATH)
@click.option(
    "--by",
    "also_by",
    multiple=True,
    type=click.Choice(["gradient", "score"]),
    help=_("Also measure importance in this way; can be repeated."),
)
@_SAMPLE_ROWS
@VALID_FILES
@JSON_RESULTS
def importance(bundle: Path, also_by: tuple[str, ...], sample: int, valid: tuple[Path, ...], as_json: bool) -> None:
    """Measure the importance of every head."""
    from manyheads.cli.rendering.head_importance import measure_importance

    measure_importance(bundle, also_by, sample, valid, as_json=as_json)


@heads.command(
    short_help=_("Remove a share of the heads, with the measured cost."),
    help=_("""Remove a share of the heads and write a smaller, faster bundle with its measured cost.

        One half of the sample chooses the heads, another half of the same size measures the cost. A loss of more than
        --max-cost is refused, and nothing is written. The pruned bundle is an ordinary bundle. Its scores and speed at
        each number of heads are written beside it, as numbers (.curve.json) and as a picture (.curve.svg).

        \b
        Example:
          manyheads heads prune runs/mail/bundle --share 0.4
          manyheads heads prune runs/mail/bundle --share 0.6 --method gates --fine-tune 300 -o runs/mail/small
          manyheads heads prune runs/mail/bundle --share 0.5 --fine-tune 1500 --learning-rate 0.0015
        """),
)
@click.argument("bundle", type=_PATH)
@click.option(
    "--share",
    type=float,
    required=True,
    help=_("Share of all heads to remove, such as 0.4."),
)
@click.option(
    "--method",
    type=click.Choice(["greedy", "gates", "gradient"]),
    default="greedy",
    show_default=True,
    help=_(
        "How to choose heads: by the loss without them, by gates learned in training, or by the gradient (fastest)."
    ),
)
@_SAMPLE_ROWS
@VALID_FILES
@click.option(
    "--fine-tune",
    type=click.IntRange(1, MAX_COUNT),
    metavar="STEPS",
    help=_("Fine-tune for this many steps after pruning."),
)
@click.option(
    "--learning-rate",
    type=float,
    help=_("Peak learning rate of --fine-tune. [default: a fifth of the recipe's]"),
)
@click.option(
    "--gate-steps",
    type=click.IntRange(1, MAX_COUNT),
    default=300,
    show_default=True,
    help=_("Training steps of --method gates."),
)
@click.option(
    "--train",
    "train_files",
    multiple=True,
    type=_PATH,
    help=_("Training files. [default: those of the recipe]"),
)
@click.option(
    "-o",
    "--output",
    type=_PATH,
    help=_("The new bundle. [default: BUNDLE-pruned]"),
)
@MAX_COST
@OVERWRITE_BUNDLE
@JSON_RESULTS
def prune(bundle: Path, **options: Any) -> None:
    """Prune a bundle."""
    from manyheads.cli.rendering.head_results import PruneOptions, prune_bundle

    prune_bundle(bundle, PruneOptions(**options))


@heads.command(
    short_help=_("Show when each role appeared in training."),
    help=_("""Show when the role of each head appeared in a run.

        The run must have been trained with train.keep_all_snapshots = true. The statistics of every snapshot are
        written to heads.jsonl in the folder of the run.

        \b
        Example:
          manyheads heads timeline runs/quickstart
          manyheads heads timeline runs/quickstart --svg timeline.svg
        """),
)
@click.argument("run", type=_PATH)
@click.option(
    "--sample",
    type=click.IntRange(2, MAX_COUNT),
    default=60,
    show_default=True,
    help=_("Number of texts."),
)
@click.option("--svg", type=_PATH, help=_("Draw the timeline to this file."))
@JSON_RESULTS
def timeline(run: Path, sample: int, svg: Path | None, as_json: bool) -> None:
    """Show the timeline of roles of a run."""
    from manyheads.cli.rendering.role_cards import show_timeline

    show_timeline(run, sample, svg, as_json=as_json)
