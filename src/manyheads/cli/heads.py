"""`manyheads heads show|example|importance|prune|timeline`: what heads do, how much depends on them, pruning."""

import difflib
from pathlib import Path
from typing import Any

import click

from manyheads.cli.options import JSON_RESULTS, MAX_COST, MAX_COUNT, OVERWRITE_BUNDLE, VALID_FILES
from manyheads.language import pick

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
            if similar := difflib.get_close_matches(args[0], self.commands, n=1):
                ctx.fail(f"There is no command {args[0]!r}. Did you mean {similar[0]}?")
            args = ["show", *args]
        return super().resolve_command(ctx, args)


@click.group(
    cls=_Heads,
    short_help=pick("Show what each attention head does; prune heads.", "查看每个注意力头的作用；剪除注意力头。"),
    help=pick(
        """Show what each attention head does, how important it is, and prune those that are not needed.

        `manyheads heads BUNDLE` is short for `manyheads heads show BUNDLE`.

        \b
        Example:
          manyheads heads show runs/quickstart/bundle
          manyheads heads example runs/quickstart/bundle
          manyheads heads importance runs/mail/bundle
          manyheads heads prune runs/mail/bundle --share 0.4
          manyheads heads timeline runs/quickstart --svg timeline.svg
        """,
        """查看每个注意力头的作用和重要性，剪除不需要的头。

        `manyheads heads BUNDLE` 等同于 `manyheads heads show BUNDLE`。

        \b
        例：
          manyheads heads show runs/quickstart/bundle
          manyheads heads example runs/quickstart/bundle
          manyheads heads importance runs/mail/bundle
          manyheads heads prune runs/mail/bundle --share 0.4
          manyheads heads timeline runs/quickstart --svg timeline.svg
        """,
    ),
)
def heads() -> None:
    """Run one of the subcommands."""


_SAMPLE_ROWS = click.option(
    "--sample",
    type=click.IntRange(2, MAX_COUNT),
    default=_N_ROWS,
    show_default=True,
    help=pick("Number of rows to measure on.", "用于测量的行数。"),
)


@heads.command(
    short_help=pick("Show a role card for every head.", "显示每个注意力头的角色。"),
    help=pick(
        """Show the role of every head, by published definitions.

        Each statistic is shown beside its best fixed baseline and the best head of untrained models, with a 95 %
        interval over texts. Heads that match no definition are labeled "unknown". A bundle trained on the built-in
        corpus has gold annotation. Other bundles use their validation text, --text, or --gold: CoNLL-U trees, or word
        alignments in three files (source words, target words, links).

        \b
        Example:
          manyheads heads show runs/quickstart/bundle
          manyheads heads show runs/mail/bundle --gold words.en --gold words.de --gold links.txt --lowercase
        """,
        """按已发表的定义显示每个注意力头的角色。

        每项统计都与最佳固定基线和未训练模型中的最佳头并列，并给出按文本重抽样的 95 % 置信区间。
        不符合任何定义的头标为“未知”。
        用内置语料训练的模型包自带标注；其他模型包使用其验证集文本、--text 或 --gold：CoNLL-U
        句法树，或三个文件的词对齐（源词、目标词、对齐链接）。

        \b
        例：
          manyheads heads show runs/quickstart/bundle
          manyheads heads show runs/mail/bundle --gold words.en --gold words.de --gold links.txt --lowercase
        """,
    ),
)
@click.argument("bundle", type=_PATH)
@click.option(
    "--gold",
    multiple=True,
    type=_PATH,
    help=pick(
        "Gold annotation: .conllu trees, or source words, target words and links.",
        "标注文件：.conllu 句法树，或源词、目标词与对齐链接。",
    ),
)
@click.option(
    "--text",
    multiple=True,
    type=_PATH,
    help=pick("Text to observe heads on; for pairs give both sides.", "用来观察注意力头的文本；句对需给出两侧。"),
)
@click.option(
    "--lowercase",
    is_flag=True,
    help=pick(
        "Lower-case the gold text, for a model trained on lower-cased text.",
        "把标注文本转为小写（模型用小写文本训练时）。",
    ),
)
@click.option(
    "--sample",
    type=click.IntRange(2, MAX_COUNT),
    default=300,
    show_default=True,
    help=pick("Number of texts.", "文本数量。"),
)
@click.option(
    "--svg",
    type=_PATH,
    help=pick("Draw the roles and the similarity of heads to this file.", "把角色和头之间的相似度画到这个文件。"),
)
@click.option(
    "--all",
    "show_all",
    is_flag=True,
    help=pick(
        "List every head, not only the clearest and the least confident.",
        "列出所有头，而不只是最明确和置信度最低的头。",
    ),
)
@JSON_RESULTS
def show(bundle: Path, **options: Any) -> None:
    """Show the role cards of a bundle."""
    from manyheads.cli.role_cards import CardOptions, show_roles

    show_roles(bundle, CardOptions(**options))


@heads.command(
    short_help=pick("Find a head whose absence changes an answer.", "找出一个关掉后答案会变的头。"),
    help=pick(
        """Find a head whose absence is seen at once, and print the commands that show it.

        Short held-out texts are answered without each head, one attention after another from the last one. The best
        example replaces one word of the answer by another.

        \b
        Example:
          manyheads heads example runs/quickstart/bundle
        """,
        """找出一个关掉后一眼就能看出变化的头，并给出查看它的命令。

        从最后一个注意力层开始，逐个关掉注意力头，重新回答一些简短的验证文本；最好的例子是答案中恰好一个词变成另一个词。

        \b
        例：
          manyheads heads example runs/quickstart/bundle
        """,
    ),
)
@click.argument("bundle", type=_PATH)
@JSON_RESULTS
def example(bundle: Path, as_json: bool) -> None:
    """Show one head whose absence changes an answer."""
    from manyheads.cli.head_example import show_example

    show_example(bundle, as_json=as_json)


@heads.command(
    short_help=pick("Measure how important every head is.", "测量每个注意力头的重要性。"),
    help=pick(
        """Measure the importance of every head by the gradient and by ablation.

        Ablation is the change of the task's score without the head, on rows of the bundle's validation set; generated
        text is decoded greedily. Brackets hold 95 % intervals over these rows.

        \b
        Example:
          manyheads heads importance runs/mail/bundle
          manyheads heads importance runs/mail/bundle --sample 500 --json
        """,
        """用梯度和逐头屏蔽两种方法测量每个注意力头的重要性。

        屏蔽：去掉该头后任务得分的变化，在模型包的验证集上测量；生成文本时使用贪心解码。方括号内为按行重抽样的 95 %
        置信区间。

        \b
        例：
          manyheads heads importance runs/mail/bundle
          manyheads heads importance runs/mail/bundle --sample 500 --json
        """,
    ),
)
@click.argument("bundle", type=_PATH)
@_SAMPLE_ROWS
@VALID_FILES
@JSON_RESULTS
def importance(bundle: Path, sample: int, valid: tuple[Path, ...], as_json: bool) -> None:
    """Measure gradient importance and ablation of every head."""
    from manyheads.cli.head_importance import measure_importance

    measure_importance(bundle, sample, valid, as_json=as_json)


@heads.command(
    short_help=pick("Remove a share of the heads, with the measured cost.", "剪除一定比例的头，并测量代价。"),
    help=pick(
        """Remove a share of the heads and write a smaller, faster bundle with its measured cost.

        One half of the sample chooses the heads, another half of the same size measures the cost. A loss of more than
        --max-cost is refused, and nothing is written. The pruned bundle is an ordinary bundle. Its scores and speed at
        each number of heads are written beside it, as numbers (.curve.json) and as a picture (.curve.svg).

        \b
        Example:
          manyheads heads prune runs/mail/bundle --share 0.4
          manyheads heads prune runs/mail/bundle --share 0.6 --method gates --fine-tune 300 -o runs/mail/small
          manyheads heads prune runs/mail/bundle --share 0.5 --fine-tune 1500 --learning-rate 0.0015
        """,
        """剪除一定比例的头，写出更小、更快的模型包，并测量其代价。

        一半样本用来选择要剪除的头，另一半同样大小的样本用来测量代价；损失超过 --max-cost 则拒绝，不写任何文件。
        剪枝后的模型包与普通模型包用法相同。各头数下的得分和速度写在它旁边：数值（.curve.json）和图（.curve.svg）。

        \b
        例：
          manyheads heads prune runs/mail/bundle --share 0.4
          manyheads heads prune runs/mail/bundle --share 0.6 --method gates --fine-tune 300 -o runs/mail/small
          manyheads heads prune runs/mail/bundle --share 0.5 --fine-tune 1500 --learning-rate 0.0015
        """,
    ),
)
@click.argument("bundle", type=_PATH)
@click.option(
    "--share",
    type=float,
    required=True,
    help=pick("Share of all heads to remove, such as 0.4.", "要剪除的比例，如 0.4。"),
)
@click.option(
    "--method",
    type=click.Choice(["greedy", "gates", "gradient"]),
    default="greedy",
    show_default=True,
    help=pick(
        "How to choose heads: by the loss without them, by gates learned in training, or by the gradient (fastest).",
        "选头的方法：去掉后的损失（greedy）、训练中学到的门控（gates）或梯度（gradient，最快）。",
    ),
)
@_SAMPLE_ROWS
@VALID_FILES
@click.option(
    "--fine-tune",
    type=click.IntRange(1, MAX_COUNT),
    metavar="STEPS",
    help=pick("Fine-tune for this many steps after pruning.", "剪枝后微调的步数。"),
)
@click.option(
    "--learning-rate",
    type=float,
    help=pick(
        "Peak learning rate of --fine-tune. [default: a fifth of the recipe's]",
        "--fine-tune 的最大学习率。[默认：配方的五分之一]",
    ),
)
@click.option(
    "--gate-steps",
    type=click.IntRange(1, MAX_COUNT),
    default=300,
    show_default=True,
    help=pick("Training steps of --method gates.", "--method gates 的训练步数。"),
)
@click.option(
    "--train",
    "train_files",
    multiple=True,
    type=_PATH,
    help=pick("Training files. [default: those of the recipe]", "训练文件。[默认：配方中的文件]"),
)
@click.option(
    "-o",
    "--output",
    type=_PATH,
    help=pick("The new bundle. [default: BUNDLE-pruned]", "新的模型包。[默认：BUNDLE-pruned]"),
)
@MAX_COST
@OVERWRITE_BUNDLE
@JSON_RESULTS
def prune(bundle: Path, **options: Any) -> None:
    """Prune a bundle."""
    from manyheads.cli.head_pruning import PruneOptions, prune_bundle

    prune_bundle(bundle, PruneOptions(**options))


@heads.command(
    short_help=pick("Show when each role appeared in training.", "显示各角色在训练中何时出现。"),
    help=pick(
        """Show when the role of each head appeared in a run.

        The run must have been trained with train.keep_all_snapshots = true. The statistics of every snapshot are
        written to heads.jsonl in the folder of the run.

        \b
        Example:
          manyheads heads timeline runs/quickstart
          manyheads heads timeline runs/quickstart --svg timeline.svg
        """,
        """显示每个注意力头的角色在训练中何时出现。

        训练时须设置 train.keep_all_snapshots = true。各快照的全部统计写入运行文件夹中的 heads.jsonl。

        \b
        例：
          manyheads heads timeline runs/quickstart
          manyheads heads timeline runs/quickstart --svg timeline.svg
        """,
    ),
)
@click.argument("run", type=_PATH)
@click.option(
    "--sample",
    type=click.IntRange(2, MAX_COUNT),
    default=60,
    show_default=True,
    help=pick("Number of texts.", "文本数量。"),
)
@click.option("--svg", type=_PATH, help=pick("Draw the timeline to this file.", "把时间线画到这个文件。"))
@JSON_RESULTS
def timeline(run: Path, sample: int, svg: Path | None, as_json: bool) -> None:
    """Show the timeline of roles of a run."""
    from manyheads.cli.role_cards import show_timeline

    show_timeline(run, sample, svg, as_json=as_json)
