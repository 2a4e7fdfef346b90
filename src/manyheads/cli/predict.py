"""`manyheads predict`: one output line for each input line: a translation, a label, tags or a continuation."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from manyheads.cli.decode_options import (
    THRESHOLD,
    check_text_options,
    decode_changes,
    decode_options,
    read_text_options,
    text_options,
    with_decode_changes,
    with_threshold,
)
from manyheads.cli.predict_markup import MarkupWriter, is_document, read_document, require_translator
from manyheads.cli.prediction_remarks import Remarks
from manyheads.language import pick

if TYPE_CHECKING:
    from manyheads.bundle import Bundle
    from manyheads.lens.aligner import Aligner
    from manyheads.tasks import Prediction, TextOptions

_BATCH_SIZE = 1000  # lines


@click.command(
    short_help=pick("Translate, classify, tag or continue lines of text.", "逐行翻译、分类、标注或续写。"),
    help=pick(
        """Read lines from FILE or standard input and write one line for each.

        A seq2seq bundle writes the translation; a classifier the label and its probability; a tagger the text with its
        entities marked; a language model the line and its continuation. A line without text gives
        an empty line, except that a language model starts a new text. A translation model translates a line with more
        sentences than its training texts, or a longer one, in parts; for other models, a line that is too long gives
        an empty line. Lines without output are reported on standard error, and so are words that did not occur in
        training and suspect outputs: the model was caught in a loop, the output is much longer or shorter than in
        training, code, markup or a URL of the line is missing, or a translation is as improbable as the lowest 5 % of
        the validation set. --json lists those of each line, and the confidence of a translation: the share of
        validation translations that were less probable.

        With --glossary, a line that contains a source term as whole words gets a translation with its target term, as
        often; --keep repeats words unchanged; --prefix begins every translation. With --abstain, a translation of a
        lower confidence becomes an empty line, which is reported; --json has its candidates.

        Lines of standard input are answered as they come. With --threshold, a label that is less probable becomes ?,
        and a span that is less probable is left out.

        With --align, each translation is followed by a tab and pairs i-j, counted from 0: word i of the source is
        aligned with word j of the translation. Each punctuation character and each Chinese character is one word;
        --json lists the words.

        With --format html, lines are HTML fragments, and a FILE that ends in .html is one document. Tags are put around
        the words that translate theirs. Attributes, comments, scripts, <pre>, <code> and elements with translate="no"
        or class="notranslate" stay as they are.

        \b
        Example:
          echo "Two cats are sleeping." | manyheads predict runs/quickstart/bundle
          manyheads predict runs/quickstart/bundle letters.en -o letters.zh
          manyheads predict runs/quickstart/bundle letters.en --beam 8 --length-penalty 1.0
          manyheads predict runs/quickstart/bundle letters.en --glossary terms.tsv --keep Anna --abstain 0.05
          manyheads predict runs/quickstart/bundle page.html --format html -o page.zh.html
          tail -f inbox.txt | manyheads predict runs/reviews/bundle --threshold 0.9
          manyheads predict runs/poems/bundle --prompt "Once upon a time" --sample
        """,
        """从 FILE 或标准输入逐行读入文本，每行输出一行结果。

        翻译模型输出译文；分类模型输出标签及其概率；标注模型输出带实体标记的文本；语言模型输出原文及其续写。
        没有文字的行输出空行（语言模型则从头生成一段文字）。翻译模型遇到句数多于训练文本或更长的行，会分段翻译；
        其他模型遇到过长的行则输出空行。没有输出的行会在标准错误中提示。训练文本中没有出现过的词，以及输出可疑的行
        （模型陷入重复，输出远比训练时长或短，漏掉了代码、标记或网址，或译文的概率与验证集中最低的 5 % 相当），也会在
        标准错误中列出；加上 --json 可逐行列出，并给出译文的置信度，即验证集中概率更低的译文所占的比例。

        使用 --glossary 时，只要一行中出现术语表里的原文（按整词匹配），译文就一定含有对应的译法，出现几次就用几次；
        --keep 指定的词原样保留；--prefix 规定译文的开头。使用 --abstain 时，置信度更低的译文输出空行，并在标准错误中
        列出；--json 仍给出其候选。

        标准输入的行随到随答。使用 --threshold 时，概率低于阈值的标签输出为 ?，概率低于阈值的片段舍去。

        使用 --align 时，译文后面以制表符分隔，附上词对齐 i-j（从 0 开始计数）：原文第 i 个词对应译文第 j 个词。
        标点和汉字各算一个词；加上 --json 可列出这些词。

        使用 --format html 时，每行是一段 HTML；以 .html 结尾的 FILE 作为一个完整的文档翻译。标签按词对齐放到
        对应的译文上，属性、注释、脚本、<pre>、<code>，以及带 translate="no" 或 class="notranslate" 的元素保持原样。

        \b
        例：
          echo "Two cats are sleeping." | manyheads predict runs/quickstart/bundle
          manyheads predict runs/quickstart/bundle letters.en -o letters.zh
          manyheads predict runs/quickstart/bundle letters.en --beam 8 --length-penalty 1.0
          manyheads predict runs/quickstart/bundle letters.en --glossary 术语.tsv --keep Anna --abstain 0.05
          manyheads predict runs/quickstart/bundle page.html --format html -o page.zh.html
          tail -f inbox.txt | manyheads predict runs/reviews/bundle --threshold 0.9
          manyheads predict runs/poems/bundle --prompt "床前明月光，" --sample
        """,
    ),
)
@click.argument("bundle", type=click.Path(path_type=Path))
@click.argument("file", default="-")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help=pick("Write to this file instead of standard output.", "写入此文件，而不是标准输出。"),
)
@click.option(
    "--prompt",
    help=pick(
        "Continue this text token by token, instead of reading FILE.", "续写这段文字并逐个词元输出，不读取 FILE。"
    ),
)
@decode_options
@click.option(
    "--stop",
    multiple=True,
    help=pick("End a continuation before this text; may be repeated.", "续写到这段文字之前为止；可重复给出。"),
)
@click.option(
    "--n-best",
    type=int,
    help=pick(
        "Number of hypotheses per line, written as line number, score, text. [default: 1]",
        "每行输出几个候选，格式为行号、得分、文本。[默认：1]",
    ),
)
@text_options
@THRESHOLD
@click.option(
    "--align", is_flag=True, help=pick("Append word alignments (Pharaoh format).", "附上词对齐（Pharaoh 格式）。")
)
@click.option(
    "--format",
    "text_format",
    type=click.Choice(["text", "html"]),
    default="text",
    show_default=True,
    help=pick("What the lines are; html keeps tags in place.", "输入的格式；html 会保留标签并放到对应的位置。"),
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help=pick(
        "Write one JSON object per line, with probabilities, spans and candidates.",
        "每行输出一个 JSON 对象，含概率、片段和候选。",
    ),
)
@click.option(
    "--engine",
    default="auto",
    show_default=True,
    help=pick("Inference engine: native, torch or auto.", "推理引擎：native、torch 或 auto。"),
)
@click.option(
    "--no-shortlist",
    is_flag=True,
    help=pick(
        "Score the whole vocabulary even if the bundle has a shortlist.", "即使模型包带有候选词表，也对整个词表打分。"
    ),
)
@click.option(
    "--device", default="auto", show_default=True, help=pick("cpu, cuda, mps or auto.", "cpu、cuda、mps 或 auto。")
)
def predict(
    bundle: Path,
    file: str,
    output: Path | None,
    prompt: str | None,
    device: str,
    engine: str,
    no_shortlist: bool,
    align: bool,
    text_format: str,
    as_json: bool,
    threshold: float | None,
    glossary: Path | None,
    keep: tuple[str, ...],
    prefix: str | None,
    **how: Any,
) -> None:
    """Answer every line of a file."""
    from manyheads.bundle import load
    from manyheads.cli.output import open_output

    changes = decode_changes(**how)
    if align and how["n_best"] is not None:
        raise click.UsageError(
            "--align and --n-best exclude each other: the alignment is that of the best translation."
        )
    options = read_text_options(glossary, keep, prefix)
    if text_format == "html" and (align or how["n_best"] is not None or prompt is not None):
        raise click.UsageError("--format html gives one translation: leave out --align, --n-best and --prompt.")
    if prompt is not None:
        if file != "-" or output or as_json or align:
            raise click.UsageError(
                "--prompt writes to the screen as it generates: leave out FILE, --output, --json and --align."
            )
        if options is not None or how["abstain"] is not None:
            raise click.UsageError(
                "--prompt is for language models: leave out --glossary, --keep, --prefix and --abstain."
            )
        loaded = with_threshold(load(bundle, device=device), bundle, threshold)
        _stream(with_decode_changes(loaded, bundle, changes), bundle, prompt)
        return
    if file == "-" and sys.stdin is None:
        raise click.UsageError("Standard input is closed. Name a file to read.")
    as_document = text_format == "html" and is_document(file)
    document = read_document(file) if as_document else ""
    batches = iter(()) if as_document else _read_batches(file)
    loaded = load(
        bundle,
        device=device,
        engine=engine,
        use_shortlist=not no_shortlist,
    )
    loaded = with_decode_changes(with_threshold(loaded, bundle, threshold), bundle, changes)
    check_text_options(loaded, bundle, options, changes.get("abstain"))
    if text_format == "html":
        translator = require_translator(loaded, bundle)
        with open_output(output, file, keep_partial=True) as stream:
            markup = MarkupWriter(translator, stream, as_json=as_json, options=options)
            markup.document(document) if as_document else markup.fragments(batches)
        return
    aligned = _Aligned(loaded, bundle) if align else None
    writer = _Writer(loaded, n_best=changes.get("n_best", 1), as_json=as_json, aligned=aligned, options=options)
    progress = _make_progress(loaded, on_terminal=output is None and sys.stdout.isatty())
    with open_output(output, file, keep_partial=True) as stream:
        start = 1
        for batch, is_pause in batches:
            for line in writer.answer(batch, start):
                stream.write(line + "\n")
            stream.flush()
            if is_pause:
                writer.remarks.show()
            start += len(batch)
            progress(start - 1)
    writer.remarks.show()
    if writer.n_cut_off:
        click.echo(
            pick(
                f"{writer.n_cut_off} of the translations were cut off at the maximum length.",
                f"{writer.n_cut_off} 条译文达到最大长度而被截断。",
            ),
            err=True,
        )
    if writer.too_long:
        sys.exit(1)


def _read_batches(file: str) -> Iterator[tuple[list[str], bool]]:
    """Read batches of lines, each with whether the writer of standard input pauses after it."""
    from manyheads.text.arriving_lines import ArrivingLines
    from manyheads.text.readers import read_lines

    if file != "-":
        lines = read_lines(file)
        return ((batch, False) for batch in iter(lambda: list(islice(lines, _BATCH_SIZE)), []))
    arriving = ArrivingLines(sys.stdin.buffer)
    return ((batch, arriving.is_waiting) for batch in arriving.batches(_BATCH_SIZE))


def _make_progress(loaded: "Bundle", *, on_terminal: bool) -> Callable[[int], None]:
    """Return a callback that shows how many lines are done, unless the answers go to the same screen."""
    if on_terminal or not sys.stderr.isatty():
        return lambda done: None
    started = time.monotonic()

    def show(done: int) -> None:
        speed = done / max(time.monotonic() - started, 1e-9)
        engine = loaded.engine.used
        suffix = pick(f" · engine {engine}", f" · 引擎 {engine}") if engine else ""
        counts = pick(f"{done:,} lines · {speed:,.0f} lines/s", f"{done:,} 行 · {speed:,.0f} 行/秒")
        click.echo(f"\r{counts}{suffix} ", err=True, nl=False)

    return show


def _stream(loaded: "Bundle", bundle: Path, prompt: str) -> None:
    """Print a prompt and its continuation, token by token."""
    from manyheads.tasks import StreamingTask

    if not isinstance(loaded.task, StreamingTask):
        raise click.UsageError(f"--prompt needs a language model; {bundle} is a bundle of the task {loaded.kind}.")
    click.echo(prompt, nl=False)
    for text in loaded.task.stream(prompt, loaded.decode):
        click.echo(text, nl=False)
        sys.stdout.flush()
    click.echo()
    remarks = Remarks()
    remarks.add(1, loaded.unseen_words(prompt))
    remarks.show()


class _Writer:
    """Turns chunks of input lines into output lines; counts cut-off and too long ones."""

    def __init__(
        self,
        bundle: "Bundle",
        *,
        n_best: int,
        as_json: bool,
        aligned: "_Aligned | None" = None,
        options: "TextOptions | None" = None,
    ) -> None:
        self.bundle = bundle
        self.aligned = aligned
        self.options = options
        self.n_best = n_best
        self.as_json = as_json
        self.remarks = Remarks()
        self.too_long: dict[int, str] = {}  # by line number, the error
        self.n_cut_off = 0

    def answer(self, lines: list[str], start: int) -> Iterator[str]:
        from manyheads.tasks import Classification, Translations

        readable = [line if self._fits(line, number) else "" for number, line in enumerate(lines, start)]
        predictions = self.bundle.predictions(readable, first=start - 1, options=self.options)
        if self.aligned:
            self.aligned.align(start, readable, predictions)
        for number, prediction in enumerate(predictions, start):
            unseen_words = self.bundle.unseen_words(readable[number - start])
            self.remarks.add(number, unseen_words, getattr(prediction, "warnings", ()))
            if self._is_blank(lines[number - start]):
                self.remarks.blank_lines.append(number)
            if isinstance(prediction, Classification) and prediction.is_out_of_scope:
                self.remarks.out_of_scope.append(number)
            if isinstance(prediction, Translations):
                self.n_cut_off += not prediction.candidates[0].finished
                self.remarks.rate(number, prediction)
            yield from self._format(number, lines[number - start], prediction, unseen_words)

    def _is_blank(self, line: str) -> bool:
        """Return whether the line has no text to answer; a language model starts a new text there."""
        from manyheads.tasks import StreamingTask
        from manyheads.text.words import is_blank

        return is_blank(line) and not isinstance(self.bundle.task, StreamingTask)

    def _fits(self, line: str, number: int) -> bool:
        from manyheads.errors import DataError

        try:
            self.bundle.task.check(line, f"Line {number}")
        except DataError as error:
            click.echo(f"Error: {error} Its output line stays empty.", err=True)
            self.too_long[number] = str(error)
            return False
        return True

    def _format(self, number: int, line: str, prediction: "Prediction", unseen_words: Sequence[str]) -> Iterator[str]:
        from manyheads.tasks import Translations, one_line

        if self.as_json:
            yield self._as_json(number, line, prediction, unseen_words)
        elif isinstance(prediction, Translations) and self.n_best > 1:
            shown = () if prediction.abstained else prediction.candidates
            yield from (f"{number}\t{one.score:.4f}\t{one_line(one.text)}" for one in shown)
        else:
            line_out = "" if number in self.too_long or self._is_blank(line) else prediction.line()
            yield f"{line_out}\t{self.aligned.pairs(number)}" if self.aligned else line_out

    def _as_json(self, number: int, line: str, prediction: "Prediction", unseen_words: Sequence[str]) -> str:
        import json
        from dataclasses import asdict

        payload: dict[str, Any] = asdict(prediction)  # type: ignore[call-overload]
        if number in self.too_long:
            lists: dict[str, Any] = {name: [] for name, value in payload.items() if isinstance(value, list | tuple)}
            payload = {**lists, "error": self.too_long[number]}
        if self.aligned:
            payload |= self.aligned.payload(number)
        if self._is_blank(line):
            payload["note"] = "The line has no text."
        if self.bundle.seen_words is not None:
            payload["unseen_words"] = unseen_words
        return json.dumps({"line": number, "source": line, **payload}, ensure_ascii=False)


class _Aligned:
    """Word alignments of the current chunk of lines."""

    def __init__(self, bundle: "Bundle", path: Path) -> None:
        from manyheads.lens.aligner import require_cross_attention

        require_cross_attention(bundle, str(path))
        self.bundle, self.path = bundle, path
        self.aligner: Aligner | None = None
        self.alignments: dict[int, dict[str, Any]] = {}

    def align(self, start: int, sources: list[str], predictions: "Sequence[Prediction]") -> None:
        """Align the answers with these lines; alignment heads are chosen at the first chunk."""
        from manyheads.lens.aligner import choose_aligner, split_words

        targets = [prediction.answer for prediction in predictions]
        if self.aligner is None:
            pairs = [(source, target) for source, target in zip(sources, targets, strict=True) if source.strip()]
            if not pairs:
                self.alignments = {number: {"alignment": []} for number in range(start, start + len(sources))}
                return
            self.aligner = choose_aligner(self.bundle, str(self.path), pairs)
        links = self.aligner.align(sources, targets, [getattr(one, "parts", ()) for one in predictions])
        self.alignments = {
            number: {
                "alignment": own,
                "source_words": split_words(source).words,
                "target_words": split_words(target).words,
                "heads": self.aligner.heads,
            }
            for number, (source, target, own) in enumerate(zip(sources, targets, links, strict=True), start)
        }

    def pairs(self, number: int) -> str:
        """Return the pairs of a line in Pharaoh format."""
        return " ".join(f"{i}-{j}" for i, j in self.alignments[number]["alignment"])

    def payload(self, number: int) -> dict[str, Any]:
        """Return the pairs of a line with the words they refer to."""
        return self.alignments[number]
