"""`manyheads predict`: one output line for each input line: a translation, a label, tags or a continuation."""

import gc
import sys
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from manyheads.answer.request import AnswerOptions
from manyheads.cli.options import (
    BASELINE_ONLY,
    COUNT,
    THRESHOLD,
    check_inputs,
    decode_changes,
    decode_options,
    read_text_options,
    text_options,
)
from manyheads.cli.rendering.answer_lines import (
    BATCH_LINES,
    AnswerLines,
    PredictOptions,
    name_line,
    refuse_documents,
    show_cut_off,
    show_errors,
    show_remarks,
)
from manyheads.messages import _
from manyheads.text.reading.formats import is_table, table_suffixes

if TYPE_CHECKING:
    from manyheads.bundle import Bundle


@click.command(
    short_help=_("Translate, classify, tag or continue lines of text or rows of a table."),
    help=_(
        """Read lines from files or standard input and write one line for each; of a table, write one row for each row.

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

        With --format html, lines are HTML fragments. Tags are put around the words that translate theirs. Attributes,
        comments, scripts, <pre>, <code> and elements with translate="no" or class="notranslate" stay as they are. A
        whole page or another document is translated by `manyheads translate-file`.

        A FILE that ends in {suffixes} is a table. The text is in the column that the bundle was trained with;
        --text-column chooses another. The output is the same table with further columns: label, probability and flags,
        or answer, confidence and flags; --json writes JSONL, with the row in each object.

        With --shards, large files of lines are answered in several processes: one numbered file for every 10,000
        lines, which joined have the bytes of one output. Finished ones are skipped when the same command is run again,
        and --on ray uses a cluster.

        \b
        Example:
          echo "Two cats are sleeping." | manyheads predict runs/quickstart/bundle
          manyheads predict runs/quickstart/bundle letters.en -o letters.zh
          manyheads predict runs/quickstart/bundle letters.en --beam 8 --length-penalty 1.0
          manyheads predict runs/quickstart/bundle letters.en --glossary terms.tsv --keep Anna --abstain 0.05
          tail -f inbox.txt | manyheads predict runs/reviews/bundle --threshold 0.9
          manyheads predict runs/tickets/bundle week46.csv -o week46-labeled.csv
          manyheads predict runs/poems/bundle --prompt "Once upon a time" --sample
          manyheads predict runs/reviews/bundle reviews-*.txt --shards answers --processes 8
        """,
        suffixes=table_suffixes(),
    ),
)
@click.argument("bundle", type=click.Path(path_type=Path))
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help=_("Write to this file instead of standard output."),
)
@click.option(
    "--text-column",
    "--source-column",
    "column",
    default="",
    help=_("Column of a table with the texts, by name or number. [default: the one the bundle was trained with]"),
)
@click.option(
    "--prompt",
    help=_("Continue this text token by token, instead of reading FILE."),
)
@decode_options
@click.option(
    "--stop",
    multiple=True,
    help=_("End a continuation before this text; may be repeated."),
)
@click.option(
    "--n-best",
    type=int,
    help=_("Number of hypotheses per line, written as line number, score, text. [default: 1]"),
)
@text_options
@THRESHOLD
@BASELINE_ONLY
@click.option("--align", is_flag=True, help=_("Append word alignments (Pharaoh format)."))
@click.option(
    "--format",
    "text_format",
    type=click.Choice(["text", "html"]),
    help=_("What the lines are; html keeps tags in place. [default: text]"),
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help=_("Write one JSON object per line, with probabilities, spans and candidates."),
)
@click.option(
    "--engine",
    default="auto",
    show_default=True,
    help=_("Inference engine: native, torch or auto."),
)
@click.option(
    "--no-shortlist",
    is_flag=True,
    help=_("Score the whole vocabulary even if the bundle has a shortlist."),
)
@click.option("--device", default="auto", show_default=True, help=_("cpu, cuda, mps or auto."))
@click.option(
    "--shards",
    type=click.Path(path_type=Path),
    help=_(
        "Answer large files in several processes, into numbered files of this folder; run the same command "
        "again to resume."
    ),
)
@click.option(
    "--shard-lines",
    type=COUNT,
    help=_("Lines per shard, a multiple of 1,000. [default: 10,000]"),
)
@click.option(
    "--processes",
    type=click.IntRange(min=1, max=1024),
    help=_("Worker processes of --shards. [default: one per core]"),
)
@click.option(
    "--on",
    type=click.Choice(["local", "ray"]),
    help=_(
        "Where shards are answered: in processes of this machine, or on a Ray cluster (RAY_ADDRESS). [default: local]"
    ),
)
def predict(
    bundle: Path,
    files: tuple[str, ...],
    output: Path | None,
    column: str,
    prompt: str | None,
    device: str,
    engine: str,
    no_shortlist: bool,
    align: bool,
    text_format: str | None,
    as_json: bool,
    threshold: float | None,
    baseline_only: bool,
    glossary: Path | None,
    keep: tuple[str, ...],
    prefix: str | None,
    shards: Path | None,
    shard_lines: int | None,
    processes: int | None,
    on: str | None,
    **decoding: Any,
) -> None:
    """Answer every line of a file."""
    changes = decode_changes(**decoding)
    if align and decoding["n_best"] is not None:
        raise click.UsageError(
            _("--align and --n-best exclude each other: the alignment is that of the best translation.")
        )
    requirements = read_text_options(glossary, keep, prefix)
    if text_format != "text":
        refuse_documents(bundle, files)
    answer = AnswerOptions(changes, threshold, align, text_format or "text", **requirements)
    options = PredictOptions(bundle, answer, as_json, engine, not no_shortlist, device, baseline_only)
    if text_format == "html" and (align or decoding["n_best"] is not None or prompt is not None):
        raise click.UsageError(_("--format html gives one translation: leave out --align, --n-best and --prompt."))
    if shards is None and (shard_lines is not None or processes is not None or on is not None):
        raise click.UsageError(_("--shard-lines, --processes and --on are for --shards. Add --shards DIR."))
    if prompt is not None:
        if files or output or as_json or align or shards:
            raise click.UsageError(
                _(
                    "--prompt writes to the screen as it generates: leave out FILE, --output, --json, --align and "
                    "--shards."
                )
            )
        if requirements or decoding["abstain"] is not None:
            raise click.UsageError(
                _("--prompt is for language models: leave out --glossary, --keep, --prefix and --abstain.")
            )
        _stream(replace(options, engine="auto", use_shortlist=True).load(), bundle, prompt)
        return
    files = tuple(map(_local, files)) or ("-",)
    # A job of shards checks its files itself, after its options.
    check_inputs(bundle, [file for file in files if file != "-" and shards is None])
    if len(files) > 1 and "-" in files:
        raise click.UsageError(_("Standard input (-) cannot be combined with files. Give one or the other."))
    tables = [file for file in files if is_table(Path(file))]
    if column and not tables:
        raise click.UsageError(_("--text-column is for a table: {suffixes}.", suffixes=table_suffixes()))
    if tables and shards is not None:
        raise click.UsageError(_("{file} is a table, and --shards takes lines: leave it out.", file=tables[0]))
    if tables:
        from manyheads.cli.rendering.predict_table import check_table, predict_table

        table = check_table(options, files, output)
        progress = _make_progress(None, on_terminal=output is None and sys.stdout.isatty())
        sys.exit(predict_table(options, table, files[0], output, column, progress))
    if shards is not None:
        from manyheads.cli.predict_shards import ShardOptions, predict_shards

        division = ShardOptions(shard_lines, processes, on or "local")
        sys.exit(predict_shards(options, files, shards, division, output))
    if files == ("-",) and sys.stdin is None:
        raise click.UsageError(_("Standard input is closed. Name a file to read."))
    _answer_lines(options, files, output)


def _local(file: str) -> str:
    """Return the path of a file; an object of a store is copied."""
    from manyheads.text.reading.remote_files import is_remote, local_copy

    return str(local_copy(file)) if is_remote(file) else file


def _answer_lines(options: PredictOptions, files: Sequence[str], output: Path | None) -> None:
    """Answer all lines in this process."""
    from manyheads.cli.rendering.output import open_output

    reader = _Reader(files)
    loaded = options.load()
    lines = AnswerLines(loaded, options, reader.name_line)
    progress = _make_progress(loaded, on_terminal=output is None and sys.stdout.isatty())
    with open_output(output, *files, keep_partial=True) as stream, _frozen_objects():
        start = 1
        for batch, is_pause in reader.batches():
            for line in lines.write(batch, start):
                stream.write(line + "\n")
            stream.flush()
            show_errors(lines.remarks)
            if is_pause:
                show_remarks(lines.remarks)
            start += len(batch)
            progress(start - 1)
    show_remarks(lines.remarks)
    show_cut_off(lines.remarks)
    if lines.remarks.n_errors:
        sys.exit(1)


@contextmanager
def _frozen_objects() -> Iterator[None]:
    """Spare the garbage collector what has been loaded, which it would visit again and again."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class _Reader:
    """Reads batches of lines from files, or from standard input as they arrive."""

    def __init__(self, files: Sequence[str]) -> None:
        from manyheads.text.reading.readers import read_lines

        self.files = files
        self.lines = [] if files == ("-",) else [read_lines(file) for file in files]  # raises if a file is missing
        self.starts: list[int] = []  # the number of lines before each file that was begun

    def batches(self) -> Iterator[tuple[list[str], bool]]:
        """Yield batches of lines, each with whether the writer of standard input pauses after it."""
        from manyheads.text.reading.arriving_lines import ArrivingLines

        if self.lines:
            lines = self._all_lines()
            yield from ((batch, False) for batch in iter(lambda: list(islice(lines, BATCH_LINES)), []))
        else:
            arriving = ArrivingLines(sys.stdin.buffer)
            yield from ((batch, arriving.is_waiting) for batch in arriving.batches(BATCH_LINES))

    def _all_lines(self) -> Iterator[str]:
        n_lines = 0
        for lines in self.lines:
            self.starts.append(n_lines)
            for line in lines:
                n_lines += 1
                yield line

    def name_line(self, number: int) -> str:
        """Name the line of this number, counted from 1: with its file, if there are several."""
        if len(self.files) == 1:
            return name_line(number)
        index = bisect_left(self.starts, number) - 1
        path = Path(self.files[index]).resolve()
        return _("{path}, line {number}", path=path, number=number - self.starts[index])


def _make_progress(loaded: "Bundle | None", *, on_terminal: bool) -> Callable[[int], None]:
    """Return a callback that shows how many lines are done, unless the answers go to the same screen."""
    if on_terminal or not sys.stderr.isatty():
        return lambda done: None
    started = time.monotonic()

    def show(done: int) -> None:
        speed = done / max(time.monotonic() - started, 1e-9)
        engine = loaded.engine.used if loaded else ""
        suffix = _(" · engine {engine}", engine=engine) if engine else ""
        counts = _("{done:,} lines · {speed:,.0f} lines/s", done=done, speed=speed)
        click.echo(f"\r{counts}{suffix} ", err=True, nl=False)

    return show


def _stream(loaded: "Bundle", bundle: Path, prompt: str) -> None:
    """Print a prompt and its continuation, token by token."""
    from manyheads.answer.remarks import Remarks
    from manyheads.tasks import GenerativeTask

    task = loaded.task
    if not (isinstance(task, GenerativeTask) and task.continues_prompts):
        raise click.UsageError(
            _(
                "--prompt needs a language model; {bundle} is a bundle of the task {kind}.",
                bundle=bundle,
                kind=loaded.kind,
            )
        )
    click.echo(prompt, nl=False)
    for text in task.stream(prompt, loaded.decode):
        click.echo(text, nl=False)
        sys.stdout.flush()
    click.echo()
    remarks = Remarks()
    remarks.add_unseen(1, loaded.unseen_words(prompt))
    show_remarks(remarks)
