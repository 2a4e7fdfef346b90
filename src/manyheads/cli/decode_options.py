"""Options of decoding: those that override the settings of a bundle, shared by `predict` and `evaluate`; of texts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from manyheads.language import pick

if TYPE_CHECKING:
    from manyheads.bundle import Bundle
    from manyheads.tasks import TextOptions

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--beam", type=int, help=pick("Beam size. [default: the bundle's]", "束宽。[默认：模型包的设置]")),
    click.option(
        "--length-penalty",
        type=float,
        help=pick(
            "Length penalty of beam search; larger favors longer outputs. [default: the bundle's, chosen in training]",
            "束搜索的长度惩罚；越大越偏向较长的输出。[默认：模型包的设置，由训练选定]",
        ),
    ),
    click.option("--greedy", is_flag=True, help=pick("Greedy search: the fastest.", "贪心搜索：最快。")),
    click.option("--sample", is_flag=True, help=pick("Sample instead of searching.", "随机采样，而不是搜索。")),
    click.option(
        "--temperature",
        type=float,
        help=pick("Sampling temperature; lower is more deterministic.", "采样温度；越低结果越确定。"),
    ),
    click.option(
        "--top-k", type=int, help=pick("Sample from the k most probable tokens.", "只在概率最高的 k 个词元中采样。")
    ),
    click.option(
        "--top-p",
        type=float,
        help=pick(
            "Sample from the smallest set of tokens with this total probability.",
            "只在累计概率达到此值的最小词元集合中采样。",
        ),
    ),
    click.option("--seed", type=int, help=pick("Random seed of sampling.", "采样的随机种子。")),
    click.option("--max-new-tokens", type=int, help=pick("Maximum number of new tokens.", "最多生成多少个词元。")),
    click.option(
        "--no-repeat-ngram",
        type=int,
        help=pick("Generate no sequence of this many tokens twice.", "不重复生成任何长度为此值的词元序列。"),
    ),
)
THRESHOLD = click.option(
    "--threshold",
    type=click.FloatRange(min=0, max=1, max_open=True),
    help=pick(
        "Leave out labels or spans that are less probable; `evaluate --precision` chooses it. [default: the bundle's]",
        "舍去概率低于此值的标签或片段；可用 evaluate --precision 选定。[默认：模型包的设置]",
    ),
)


_TEXT_OPTIONS = (
    click.option(
        "--glossary",
        type=click.Path(path_type=Path),
        help=pick(
            "File of terms, one per line: source, tab, target. A translation contains the target of each source term "
            "in its line. If the model has never seen it there, the rest of the sentence may get worse.",
            "术语表，每行一条：原文、制表符、译文。行中出现的术语，译文必定包含指定译法；"
            "如果模型没有学过这种译法，句子的其余部分可能变差。",
        ),
    ),
    click.option(
        "--keep",
        multiple=True,
        help=pick(
            "Repeat this word unchanged in a translation, such as a name; may be repeated.",
            "译文中原样保留这个词，例如人名、产品名；可重复给出。",
        ),
    ),
    click.option(
        "--prefix", help=pick("Begin every translation with this text.", "每条译文都以这段文字开头，由模型续译。")
    ),
    click.option(
        "--abstain",
        type=click.FloatRange(min=0, max=1),
        help=pick(
            "Leave the line of a translation empty if its confidence is lower, such as 0.05.",
            "置信度低于此值（例如 0.05）的译文输出空行。",
        ),
    ),
)


def text_options(command: Command) -> Command:
    """Add the options of translations to a command."""
    for option in reversed(_TEXT_OPTIONS):
        command = option(command)
    return command


def read_text_options(glossary: Path | None, keep: Sequence[str], prefix: str | None) -> "TextOptions | None":
    """Return what the translations must satisfy; None if nothing."""
    from manyheads.tasks import TextOptions
    from manyheads.text.terms.glossary_file import read_glossary

    if glossary is None and not keep and prefix is None:
        return None
    if prefix == "":
        raise click.UsageError("--prefix is empty. Give the beginning of the translations, or leave it out.")
    return TextOptions({} if glossary is None else read_glossary(glossary), keep, prefix or "")


def check_text_options(loaded: "Bundle", path: Path, options: "TextOptions | None", abstain: float | None) -> None:
    """Raise UsageError if the bundle does not translate."""
    from manyheads.tasks import Seq2Seq

    is_translation = isinstance(loaded.task, Seq2Seq) and loaded.task.is_translation
    if options is not None and not is_translation:
        raise click.UsageError(
            f"--glossary, --keep and --prefix need a translation model; {path} is a bundle of the task {loaded.kind}."
        )
    if abstain is not None:
        if not isinstance(loaded.task, Seq2Seq):
            raise click.UsageError(f"--abstain needs a seq2seq model; {path} is a bundle of the task {loaded.kind}.")
        loaded.require_confidence(loaded.decode)


def decode_options(command: Command) -> Command:
    """Add the options of decoding to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def decode_changes(*, beam: int | None, greedy: bool, sample: bool, **rest: Any) -> dict[str, Any]:
    """Return the decoding settings that the options override."""
    if greedy + sample + (beam is not None) > 1:
        raise click.UsageError("--beam, --greedy and --sample exclude one another. Choose one.")
    given = {name: value for name, value in rest.items() if value not in (None, ())}
    if not sample and {"temperature", "top_k", "top_p", "seed"} & set(given):
        raise click.UsageError("--temperature, --top-k, --top-p and --seed are for --sample.")
    if beam is not None:
        given |= {"method": "beam", "beam": beam}
    elif greedy or sample:
        given["method"] = "greedy" if greedy else "sample"
    return given


def with_decode_changes(loaded: "Bundle", path: Path, changes: Mapping[str, Any]) -> "Bundle":
    """Return the bundle with these decoding settings, after checking that it has them."""
    from manyheads.decode import DecodeSettings
    from manyheads.settings import build, to_table
    from manyheads.tasks import StreamingTask

    if not changes:
        return loaded
    if not loaded.task.model.settings.has_decoder:
        method = [str(changes["method"])] if changes.get("method") in ("greedy", "sample") else []
        names = ", ".join(f"--{name.replace('_', '-')}" for name in [*method, *changes] if name != "method")
        raise click.UsageError(
            f"{path} is a bundle of the task {loaded.kind}, which generates no text: leave out {names}."
        )
    if "stop" in changes and not isinstance(loaded.task, StreamingTask):
        raise click.UsageError(f"--stop needs a language model; {path} is a bundle of the task {loaded.kind}.")
    settings = build(DecodeSettings, to_table(loaded.decode) | dict(changes), "decode.")
    if "length_penalty" in changes and settings.method == "greedy":
        raise click.UsageError("--length-penalty is for beam search: add --beam 4, or leave it out.")
    return replace(loaded, decode=settings)


def with_threshold(loaded: "Bundle", path: Path, threshold: float | None) -> "Bundle":
    """Return the bundle with this threshold of probability, after checking that its answers have probabilities."""
    from manyheads.tasks import ThresholdTask

    if threshold is None:
        return loaded
    task = loaded.task
    if not isinstance(task, ThresholdTask):
        raise click.UsageError(
            f"--threshold needs a classifier or a tagger; {path} is a bundle of the task {loaded.kind}."
        )
    return replace(loaded, task=task.with_threshold(threshold))
