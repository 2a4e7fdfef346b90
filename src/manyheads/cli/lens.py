"""`manyheads lens`: the heads of a bundle in the browser, as one HTML file, or as a picture."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from manyheads.cli.options import VALID_FILES
from manyheads.cli.rendering.output import check_folder_of
from manyheads.messages import _

if TYPE_CHECKING:
    from rich.console import Console

    from manyheads.lens.pictures.sheet import Format
    from manyheads.serve.lens_page.lens_session import LensSession

_PATH = click.Path(path_type=Path)
_UNITS = ("tokens", "characters", "words")
_SURVEY = 300  # texts, as `heads show`


@click.command(
    short_help=_("Inspect the heads of a bundle in the browser."),
    help=_("""Show what every head of a bundle does with a text: in the browser, as one HTML file, or as a picture.

        The page is served on this machine only and loads nothing from the network. Switch heads off and the answer
        changes beside the original. --html writes the same page as one file that works from disk.

        \b
        Example:
          manyheads lens runs/quickstart/bundle "Two cats are sleeping."
          manyheads lens runs/quickstart/bundle "Two cats are sleeping." --off decoder.1.cross/3
          manyheads lens runs/quickstart/bundle --compare runs/other/bundle
          manyheads lens runs/quickstart/bundle "Two cats are sleeping." --html lens.html
          manyheads lens runs/quickstart/bundle "Two cats are sleeping." --head decoder.0.cross/2 --pdf head.pdf
        """),
)
@click.argument("bundle", type=_PATH)
@click.argument("texts", metavar="[TEXT]...", nargs=-1)
@click.option(
    "--compare",
    type=_PATH,
    metavar="BUNDLE",
    help=_("A second bundle to show beside it."),
)
@click.option(
    "--answer",
    help=_("Text that the decoder writes. [default: the model's own]"),
)
@click.option(
    "--off",
    multiple=True,
    metavar="HEAD",
    help=_("A head, or an attention, that is switched off when the page opens; may be repeated."),
)
@click.option("--html", type=_PATH, metavar="FILE", help=_("Write the page to one file."))
@click.option("--svg", type=_PATH, metavar="FILE", help=_("Draw to an SVG file."))
@click.option("--png", type=_PATH, metavar="FILE", help=_("Draw to a PNG file."))
@click.option("--pdf", type=_PATH, metavar="FILE", help=_("Draw to a PDF file."))
@click.option(
    "--head",
    help=_("The head to draw, such as encoder.0.self/2. [default: all heads of the last kind of attention]"),
)
@click.option(
    "--view",
    type=click.Choice(["matrix", "arcs"]),
    default="matrix",
    show_default=True,
    help=_("How to draw a head."),
)
@click.option(
    "--unit",
    type=click.Choice(_UNITS),
    default="tokens",
    show_default=True,
    help=_("What the rows and columns of a picture are."),
)
@VALID_FILES
@click.option("--host", default="127.0.0.1", show_default=True, help=_("Address to listen on."))
@click.option(
    "--port",
    type=click.IntRange(1, 65_535),
    default=8877,
    show_default=True,
    help=_("Port; the next free one if it is in use."),
)
@click.option("--no-browser", is_flag=True, help=_("Do not open a browser."))
def lens(bundle: Path, texts: tuple[str, ...], **options: Any) -> None:
    """Serve the page, or write files."""
    forms: tuple[Format, ...] = ("svg", "png", "pdf")
    files = {form: options[form] for form in forms if options[form] is not None}
    session = open_session(bundle, options["compare"], options["valid"], texts)
    if options["answer"] is not None and len(texts) != 1:
        raise click.UsageError(_("--answer belongs to one TEXT. Give exactly one."))
    if files and options["off"]:
        raise click.UsageError(_("--off is for the page: leave out --svg, --png and --pdf."))
    if files or options["html"]:
        if files:
            _draw(session, _text(session, texts), files, options)
        if options["html"]:
            shown = texts or (_text(session, texts),)
            write_page(session, shown, options["html"], options["answer"], off=options["off"])
        return
    _serve(session, texts, options)


def open_session(
    bundle: Path, compare: Path | None = None, valid: tuple[Path, ...] = (), texts: tuple[str, ...] = ()
) -> "LensSession":
    """Load one or two bundles for the lens; the page suggests these texts first."""
    from manyheads.serve.lens_page.lens_model import LensModel
    from manyheads.serve.lens_page.lens_session import LensSession

    opened = [LensModel.open(bundle, valid=valid, texts=texts)]
    if compare is not None:
        opened.append(LensModel.open(compare, "b", valid, texts))
    return LensSession(opened)


def _text(session: "LensSession", texts: tuple[str, ...]) -> str:
    """Return the text that was given, or the first example of the bundle's own data."""
    from manyheads.errors import LensError

    if texts:
        return texts[0]
    examples = session.opened("a").examples
    if not examples:
        raise LensError(_('The validation data of this bundle cannot be read. Give a text: manyheads lens BUNDLE "…".'))
    return examples[0]


def _draw(session: "LensSession", text: str, files: "dict[Format, Path]", options: dict[str, Any]) -> None:
    from manyheads.language import current
    from manyheads.lens.heads import Head
    from manyheads.serve.lens_page.lens_session import TraceRequest
    from manyheads.storage import atomic_write

    traced = session.trace(TraceRequest("a", text, options["answer"]))
    head = None if options["head"] is None else Head.parse(options["head"])
    for form, path in files.items():
        content = session.picture(
            traced, head, form=form, view=options["view"], unit=options["unit"], language=current()
        )
        _check_folder(path)
        atomic_write(path, content)
        click.echo(_("Wrote {path}", path=path))


def _switched_off(session: "LensSession", off: Sequence[str]) -> dict[str, str]:
    """Return the state of the page's address in which heads are off and the first of them is shown."""
    from manyheads.lens.heads import find_heads

    heads = find_heads(session.opened("a").bundle.task.model, off)
    if not heads:
        return {}
    return {"off": ",".join(map(str, heads)), "attention": heads[0].attention, "head": str(heads[0].number)}


def write_page(
    session: "LensSession",
    texts: tuple[str, ...],
    path: Path,
    answer: str | None = None,
    n_texts: int = _SURVEY,
    off: Sequence[str] = (),
) -> None:
    """Write the page of some texts to one file; the survey of heads observes `n_texts` texts of the corpus.

    The page opens with the heads `off` switched off.
    """
    from urllib.parse import urlencode

    from manyheads.cli.rendering.progress import make_console
    from manyheads.language import current
    from manyheads.lens.roles.head_survey import survey_heads
    from manyheads.serve.lens_page.head_jobs import survey_for_page
    from manyheads.serve.lens_page.lens_file import page_of
    from manyheads.serve.lens_page.lens_session import TraceRequest
    from manyheads.storage import atomic_write

    _check_folder(path)
    state = _switched_off(session, off)
    surveys: dict[str, Any] = {}
    examples: dict[str, Any] = {}
    messages: list[str] = []
    traced = [session.trace(TraceRequest(id, text, answer)) for id in session.bundles for text in texts]
    with _progress_bar(make_console(plain=False)) as report:
        for number, (id, opened) in enumerate(session.bundles.items()):

            def report_survey(done: float, number: int = number) -> None:
                report((number + done) / len(session.bundles) / 2)

            survey = survey_heads(opened.bundle, n_texts, files=opened.valid, progress=report_survey)
            if survey.message is not None:
                messages.append(str(survey.message))
            found, shown = survey_for_page(id, survey)
            surveys |= found
            examples |= shown if number == 0 else {}
        page = page_of(
            session,
            traced,
            surveys=surveys,
            examples=examples,
            language=current(),
            state=urlencode(state),
            progress=lambda part: report(0.5 + part / 2),
        )
        content = page.encode()
    atomic_write(path, content)
    for message in dict.fromkeys(messages):
        click.echo(message, err=True)
    click.echo(_("Wrote {path} ({megabytes:.1f} MB)", path=path, megabytes=len(content) / 1e6))


@contextmanager
def _progress_bar(console: "Console") -> Iterator[Callable[[float], None]]:
    """Show how much of the page is computed; yield a function that receives the share done."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("  {task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        bar = bars.add_task(_("lens page"), total=1.0)
        yield lambda done: bars.update(bar, completed=done)


def _check_folder(path: Path) -> None:
    from manyheads.errors import DataError

    if path.is_dir():
        raise DataError(_("{path} is a folder. Choose a file to write to.", path=path))
    check_folder_of(path)


def _serve(session: "LensSession", texts: tuple[str, ...], options: dict[str, Any]) -> None:
    from urllib.parse import urlencode

    from manyheads.language import current
    from manyheads.serve.lens_page.lens_app import make_app
    from manyheads.serve.lens_page.lens_session import TraceRequest
    from manyheads.serve.local_server import address_of, is_loopback, listen, run

    host, port = options["host"], options["port"]
    state: dict[str, str] = {"lang": current()} | _switched_off(session, options["off"])
    if texts:
        session.trace(TraceRequest("a", texts[0], options["answer"]))  # a faulty text is reported here, not on the page
        state |= {"text": texts[0]} | ({} if options["answer"] is None else {"answer": options["answer"]})
    if len(texts) > 1:
        state |= {"text2": texts[1], "page": "compare"}
    elif options["compare"] is not None:
        state |= {"page": "compare"}
    listener = listen(host, port)
    address = f"{address_of(listener)}#{urlencode(state)}"
    used = listener.getsockname()[1]
    if used != port:
        click.echo(_("Port {port} is in use; using {used}.", port=port, used=used))
    if not is_loopback(host):
        click.echo(
            _("{host} can be reached from other machines, and whoever reaches it can use this model.", host=host),
            err=True,
        )
    click.echo(f"manyheads lens  {address}")
    click.echo(_("Press Ctrl-C to stop."))
    run(
        make_app(session, [host], current()),
        listener,
        lambda: None if options["no_browser"] else _open_browser(address),
    )
    click.echo(_("Stopped."))


def _open_browser(address: str) -> None:
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
