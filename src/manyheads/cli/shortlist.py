"""`manyheads shortlist`: a seq2seq bundle that scores only likely target tokens, with the measured cost."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from manyheads.cli.options import COUNT, JSON_RESULTS, MAX_COST, OVERWRITE_BUNDLE, VALID_FILES
from manyheads.cli.output import program_name, quoted
from manyheads.language import pick

if TYPE_CHECKING:
    from manyheads.compress.shortlisting import ShortlistReport

_PATH = click.Path(path_type=Path)


@click.command(
    short_help=pick(
        "Score only likely tokens: faster, with the measured cost.", "只计算可能的词元：更快，并测量代价。"
    ),
    help=pick(
        """Learn which target tokens each source token allows, and write a bundle that scores only these.

        The attention heads that align best link the tokens of the training data. A sentence is then translated with
        the tokens linked to its own tokens and the most frequent ones instead of the whole vocabulary. The validation
        set is translated before and after; a loss of more than --max-cost is refused. The speedup grows with the
        vocabulary and is largest for single sentences. `predict --no-shortlist` does not use the shortlist.

        \b
        Example:
          manyheads shortlist runs/mail/bundle
          manyheads predict runs/mail/bundle-shortlist letters.en -o letters.de
        """,
        """学习每个源词元允许哪些目标词元，并写出只计算这些词元的模型包。

        由对齐效果最好的注意力头在训练数据上建立词元之间的链接。翻译一个句子时，只考虑与其词元相链接的词元和最常见的词元，
        而不是整个词表。前后各翻译一遍验证集；损失超过 --max-cost 则拒绝。词表越大加速越明显，逐句翻译时最快。
        `predict --no-shortlist` 不使用候选词表。

        \b
        例：
          manyheads shortlist runs/mail/bundle
          manyheads predict runs/mail/bundle-shortlist letters.en -o letters.de
        """,
    ),
)
@click.argument("bundle", type=_PATH)
@click.option(
    "-o",
    "--output",
    type=_PATH,
    help=pick("The new bundle. [default: BUNDLE-shortlist]", "新的模型包。[默认：BUNDLE-shortlist]"),
)
@click.option(
    "--train",
    multiple=True,
    type=_PATH,
    help=pick(
        "Files with pairs to learn from. [default: the training set of the recipe]",
        "用于学习的句对文件。[默认：配方中的训练集]",
    ),
)
@VALID_FILES
@click.option(
    "--train-sample",
    type=COUNT,
    default=30_000,
    show_default=True,
    help=pick("Number of pairs to learn from.", "用于学习的句对数。"),
)
@click.option(
    "--valid-sample",
    type=COUNT,
    default=1000,
    show_default=True,
    help=pick("Number of sentences to measure on.", "用于测量的句子数。"),
)
@click.option(
    "--words",
    type=COUNT,
    default=50,
    show_default=True,
    help=pick("Target tokens allowed by each source token.", "每个源词元允许的目标词元数。"),
)
@click.option(
    "--frequent",
    type=COUNT,
    default=100,
    show_default=True,
    help=pick("Frequent target tokens that are always allowed.", "始终允许的常见目标词元数。"),
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
    click.echo("\n" + pick("Bundle with shortlist:  ", "带候选词表的模型包：  ") + str(out))
    click.echo(
        pick("Try next:               ", "接下来：              ") + f"{program_name()} predict {quoted(out)} YOUR-FILE"
    )


def _show_report(report: "ShortlistReport") -> None:
    from manyheads.cli.quantize import describe_trade_off

    heads = ", ".join(report.heads)
    click.echo(
        pick(
            f"Learned from {report.n_pairs:,} pairs with the heads {heads}.",
            f"用 {report.n_pairs:,} 个句对学习，对齐头：{heads}。",
        )
    )
    click.echo(
        pick(
            f"Average shortlist: {report.mean_tokens:,.0f} of {report.vocab_size:,} tokens per sentence.",
            f"平均每句候选 {report.mean_tokens:,.0f} 个词元，词表共 {report.vocab_size:,} 个。",
        )
    )
    click.echo(pick("Single sentences: ", "逐句翻译：") + describe_trade_off(report.single))
    click.echo(pick("One batch:        ", "整批翻译：") + describe_trade_off(report.batch))
