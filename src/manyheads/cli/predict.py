"""`manyheads predict`: text in, answers out, a line for a line: translations, labels, tags, continuations."""

import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from manyheads.bundle import Bundle
    from manyheads.decode import EngineName
    from manyheads.lens.aligner import Aligner
    from manyheads.tasks import Prediction

_CHUNK_SIZE = 1000


@click.command(short_help="Translate, label, tag or continue lines of text. 逐行翻译、分类、标注或续写。")
@click.argument("bundle", type=click.Path(path_type=Path))
@click.argument("file", default="-")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write here instead of to standard output.")
@click.option("--prompt", help="Continue this text, as it comes, instead of reading a FILE. 续写这段文字。")
@click.option("--beam", type=int, help="Beam width. [default: the bundle's]")
@click.option("--greedy", is_flag=True, help="The likeliest token at every step: fastest.")
@click.option("--sample", is_flag=True, help="Draw at random instead of searching.")
@click.option("--temperature", type=float, help="Of sampling; lower is safer.")
@click.option("--top-k", type=int, help="Of sampling: among the k likeliest tokens.")
@click.option("--top-p", type=float, help="Of sampling: among the likeliest that hold this much probability.")
@click.option("--seed", type=int, help="Of sampling.")
@click.option("--max-new-tokens", "max_new_tokens", type=int, help="How many tokens a continuation may have.")
@click.option("--stop", multiple=True, help="A continuation ends before this text; may be given again.")
@click.option("--n-best", type=int, help="Candidates per line: line, score, text. [default: 1]")
@click.option("--align", is_flag=True, help="After a tab, which word stands for which: 0-0 1-2 (Pharaoh). 词对齐。")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: probabilities, spans, candidates.")
@click.option("--engine", default="auto", show_default=True, help="native, ctranslate2, torch or auto. 推理引擎。")
@click.option(
    "--no-shortlist", is_flag=True, help="Think of every word, though the bundle has a shortlist. 不用候选词表。"
)
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, mps or auto.")
def predict(
    bundle: Path,
    file: str,
    output: Path | None,
    prompt: str | None,
    device: str,
    engine: "EngineName",
    no_shortlist: bool,
    align: bool,
    as_json: bool,
    **how: Any,
) -> None:
    """Read lines from FILE or standard input, write one line each. 从文件或标准输入逐行读入，逐行写出。

    A translator writes the translation; a classifier the label and its probability; a tagger the text with its
    entities marked; a language model the line and how it goes on. An empty line gives an empty line. A line too long
    for the model is reported, and its place stays empty.

    With --align each translation is followed by a tab and pairs i-j, both counted from 0: word i of the source stands
    for word j of the translation, by the cross-attention heads that align best. Words have punctuation apart, and each
    Chinese character is one; --json names them.

    \b
    Example · 例:
      echo "Two cats are sleeping." | manyheads predict runs/quickstart/bundle
      manyheads predict runs/quickstart/bundle letters.en -o letters.zh
      manyheads predict runs/poems/bundle --prompt "床前明月光，" --sample
    """
    from manyheads.bundle import load
    from manyheads.cli.output import open_output
    from manyheads.text.readers import read_lines

    changes = _changes(**how)
    if align and how["n_best"] is not None:
        raise click.UsageError("--align is of the best translation: leave out --n-best.")
    if prompt is not None:
        if file != "-" or output or as_json or align:
            raise click.UsageError("--prompt is continued on the screen: leave out FILE, --output, --json and --align.")
        _stream(load(bundle, device=device), bundle, prompt, changes)
        return
    if file == "-" and sys.stdin is None:
        raise click.UsageError("Standard input is closed. Name a file to read.")
    lines = read_lines(sys.stdin.buffer if file == "-" else file)
    loaded = load(
        bundle,
        device=device,
        engine=engine,
        tell=lambda line: click.echo(line, err=True),
        use_shortlist=not no_shortlist,
    )
    _check_can_generate(loaded, bundle, changes)
    # Somebody who types wants an answer to each line at once.
    at_once = 1 if file == "-" and sys.stdin.isatty() else _CHUNK_SIZE
    writer = _Writer(loaded, changes, as_json=as_json, aligned=_Aligned(loaded, bundle) if align else None)
    progress = _make_progress(loaded, on_terminal=output is None and sys.stdout.isatty())
    with open_output(output, file) as stream:
        start = 1
        while chunk := list(islice(lines, at_once)):
            for line in writer.answer(chunk, start):
                stream.write(line + "\n")
            stream.flush()
            start += len(chunk)
            progress(start - 1)
    if writer.n_cut_off:
        click.echo(f"{writer.n_cut_off} of the translations were cut off at the maximum length.", err=True)
    if writer.too_long:
        sys.exit(1)


def _make_progress(loaded: "Bundle", *, on_terminal: bool) -> Callable[[int], None]:
    """Tells how many lines are done, where somebody can see it and the answers are not on the same screen."""
    if on_terminal or not sys.stderr.isatty():
        return lambda done: None
    started = time.monotonic()

    def tell(done: int) -> None:
        speed = done / max(time.monotonic() - started, 1e-9)
        engine = getattr(getattr(loaded.inference_task, "engine", None), "used", "")
        said = f" · engine {engine}" if engine else ""
        click.echo(f"\r{done:,} lines · {speed:,.0f} lines/s{said} ", err=True, nl=False)

    return tell


def _changes(*, beam: int | None, greedy: bool, sample: bool, stop: tuple[str, ...], **rest: Any) -> dict[str, Any]:
    """The decoding settings that the options override."""
    if greedy + sample + (beam is not None) > 1:
        raise click.UsageError("--beam, --greedy and --sample exclude one another. Choose one.")
    given = {name: value for name, value in rest.items() if value is not None}
    if not sample and {"temperature", "top_k", "top_p", "seed"} & set(given):
        raise click.UsageError("--temperature, --top-k, --top-p and --seed are for --sample.")
    if beam is not None:
        given |= {"method": "beam", "beam": beam}
    elif greedy or sample:
        given["method"] = "greedy" if greedy else "sample"
    return given | ({"stop": stop} if stop else {})


def _check_can_generate(loaded: "Bundle", bundle: Path, changes: dict[str, Any]) -> None:
    """Refuse options of searching for a model that writes nothing."""
    if changes and not loaded.task.model.settings.has_decoder:
        raise click.UsageError(
            f"{bundle} is of task {loaded.kind} and writes no text: leave out --beam, --greedy, --sample, --n-best and "
            "what belongs to them."
        )


def _stream(loaded: "Bundle", bundle: Path, prompt: str, changes: dict[str, Any]) -> None:
    """Show a prompt and how it goes on, token by token."""
    from manyheads.decode import DecodeSettings
    from manyheads.settings import build, to_table
    from manyheads.tasks import Language

    if not isinstance(loaded.task, Language):
        raise click.UsageError(f"--prompt is for language models; {bundle} is of task {loaded.kind}.")
    settings = build(DecodeSettings, to_table(loaded.decode) | changes, "decode.")
    click.echo(prompt, nl=False)
    for text in loaded.task.stream(prompt, settings):
        click.echo(text, nl=False)
        sys.stdout.flush()
    click.echo()


class _Writer:
    """Turns chunks of lines into output lines, and counts what went wrong."""

    def __init__(
        self, bundle: "Bundle", changes: dict[str, Any], *, as_json: bool, aligned: "_Aligned | None" = None
    ) -> None:
        self.bundle = bundle
        self.aligned = aligned
        self.changes = changes
        self.as_json = as_json
        self.too_long: dict[int, str] = {}  # of which lines, and what was said
        self.n_cut_off = 0

    def answer(self, lines: list[str], start: int) -> Iterator[str]:
        from manyheads.tasks import Translations

        readable = [line if self._fits(line, number) else "" for number, line in enumerate(lines, start)]
        answers = self.bundle.predictions(readable, first=start - 1, **self.changes)
        if self.aligned:
            self.aligned.align(start, readable, [found.answer for found in answers])
        for number, found in enumerate(answers, start):
            if isinstance(found, Translations):
                self.n_cut_off += not found.candidates[0].finished
            yield from self._format(number, lines[number - start], found)

    def _fits(self, line: str, number: int) -> bool:
        from manyheads.errors import DataError

        try:
            self.bundle.task.check(line, f"Line {number}")
        except DataError as error:
            click.echo(f"Error: {error} Its place in the output stays empty.", err=True)
            self.too_long[number] = str(error)
            return False
        return True

    def _format(self, number: int, line: str, found: "Prediction") -> Iterator[str]:
        from manyheads.tasks import Translations, one_line

        if self.as_json:
            yield self._as_json(number, line, found)
        elif isinstance(found, Translations) and self.changes.get("n_best", 1) > 1:
            yield from (f"{number}\t{one.score:.4f}\t{one_line(one.text)}" for one in found.candidates)
        else:
            line_out = "" if number in self.too_long else found.line()
            yield f"{line_out}\t{self.aligned.pairs(number)}" if self.aligned else line_out

    def _as_json(self, number: int, line: str, found: "Prediction") -> str:
        import json
        from dataclasses import asdict

        payload: dict[str, Any] = asdict(found)  # type: ignore[call-overload]
        if number in self.too_long:
            lists: dict[str, Any] = {name: [] for name, value in payload.items() if isinstance(value, list | tuple)}
            payload = {**lists, "error": self.too_long[number]}
        if self.aligned:
            payload |= self.aligned.payload(number)
        return json.dumps({"line": number, "source": line, **payload}, ensure_ascii=False)


class _Aligned:
    """Word alignments of the lines that are being answered."""

    def __init__(self, bundle: "Bundle", path: Path) -> None:
        from manyheads.lens.aligner import require_cross_attention

        require_cross_attention(bundle, str(path))
        self.bundle, self.path = bundle, path
        self.aligner: Aligner | None = None
        self.found: dict[int, dict[str, Any]] = {}

    def align(self, start: int, sources: list[str], targets: list[str]) -> None:
        """Align the answers to these lines; the heads are chosen once."""
        from manyheads.lens.aligner import choose_aligner, split_words

        if self.aligner is None:
            pairs = [(source, target) for source, target in zip(sources, targets, strict=True) if source.strip()]
            if not pairs:
                self.found = {number: {"alignment": []} for number in range(start, start + len(sources))}
                return
            self.aligner = choose_aligner(self.bundle, str(self.path), pairs)
        links = self.aligner.align(sources, targets)
        self.found = {
            number: {
                "alignment": own,
                "source_words": split_words(source).words,
                "target_words": split_words(target).words,
                "heads": self.aligner.heads,
            }
            for number, (source, target, own) in enumerate(zip(sources, targets, links, strict=True), start)
        }

    def pairs(self, number: int) -> str:
        """The pairs of a line, as Pharaoh writes them."""
        return " ".join(f"{i}-{j}" for i, j in self.found[number]["alignment"])

    def payload(self, number: int) -> dict[str, Any]:
        """The same with the words that are meant."""
        return self.found[number]
