"""The command group: every command, in the order a newcomer meets them, with help in one language at a time.

Help texts are translated when a command's module is imported, so `main` sets the language before it imports this
module.
"""

from collections.abc import Iterable
from typing import Any

import click

from manyheads import __version__, language
from manyheads.cli.bench import bench
from manyheads.cli.compress import quantize, shortlist
from manyheads.cli.doctor import doctor
from manyheads.cli.embed import embed
from manyheads.cli.evaluate import evaluate
from manyheads.cli.export import export
from manyheads.cli.heads import heads
from manyheads.cli.import_model import import_
from manyheads.cli.init import init
from manyheads.cli.lab import lab
from manyheads.cli.learn import learn
from manyheads.cli.lens import lens
from manyheads.cli.plan import plan
from manyheads.cli.predict import predict
from manyheads.cli.promote import promote
from manyheads.cli.quickstart import quickstart
from manyheads.cli.rendering.output import cell_width, wrap_cells
from manyheads.cli.serve import serve
from manyheads.cli.train import train
from manyheads.cli.translate_file import translate_file
from manyheads.cli.walk import walk
from manyheads.messages import _, translate_libraries

_COMMANDS = (
    quickstart,
    init,
    doctor,
    plan,
    train,
    evaluate,
    predict,
    embed,
    translate_file,
    quantize,
    shortlist,
    lens,
    heads,
    walk,
    lab,
    learn,
    serve,
    import_,
    promote,
    export,
    bench,
)


class HelpFormatter(click.HelpFormatter):
    """click's help page in the language in use; Chinese lines are wrapped by their width on the screen."""

    def write_heading(self, heading: str) -> None:
        """Write the heading of a section."""
        self.write(" " * self.current_indent + _("{heading}:", heading=heading) + "\n")

    def write_text(self, text: str) -> None:
        """Write paragraphs; one that begins with a line of "\\b" keeps its lines."""
        if language.current() == "en":
            return super().write_text(text)
        indent = " " * self.current_indent
        paragraphs = []
        for paragraph in text.split("\n\n"):
            lines = paragraph.strip("\n").split("\n")
            if lines[0].strip() == "\b":
                paragraphs.append([line.rstrip() for line in lines[1:]])
            else:
                joined = "".join(line.strip() for line in lines)
                paragraphs.append(wrap_cells(joined, self.width - self.current_indent))
        self.write("\n\n".join("\n".join(indent + line for line in lines) for lines in paragraphs) + "\n")
        return None

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write options or commands with their descriptions."""
        if language.current() == "en":
            return super().write_dl(rows, col_max, col_spacing)
        rows = list(rows)
        column = min(max(cell_width(name) for name, _text in rows), col_max) + col_spacing
        indent = " " * self.current_indent
        for name, text in rows:
            lines = wrap_cells(text, self.width - self.current_indent - column) or [""]
            if cell_width(name) > column - col_spacing:
                self.write(f"{indent}{name}\n")
                name = ""
            for line in lines:
                self.write(f"{indent}{name}{' ' * (column - cell_width(name))}{line}".rstrip() + "\n")
                name = ""
        return None


class Context(click.Context):
    """A context whose help pages are written by `HelpFormatter`."""

    formatter_class = HelpFormatter


class Commands(click.Group):
    """Commands in the order they were added; a mistyped one gets a suggestion."""

    context_class = Context

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order the commands were added."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command named first; an unknown name fails with a suggestion."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            from manyheads.settings import did_you_mean

            hint = did_you_mean(args[0], self.commands)
            ctx.fail(_("There is no command {name!r}. {hint}", name=args[0], hint=hint))
        return super().resolve_command(ctx, args)


def _use_language(ctx: click.Context, param: click.Parameter, value: language.Language | None) -> None:
    if value is not None:
        language.choose(value)
        translate_libraries()


def _show_help(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def add_common_options(command: click.Command) -> None:
    """Give a command, and the commands inside it, `--lang` and a `--help` in the language in use."""
    common: dict[str, Any] = {"expose_value": False, "is_eager": True}
    command.context_class = Context
    command.add_help_option = False
    command.params += [
        click.Option(
            ["--lang"],
            type=click.Choice(language.LANGUAGES),
            callback=_use_language,
            help=_("Language of help and messages. [default: MANYHEADS_LANG, else the locale's]"),
            **common,
        ),
        click.Option(
            ["-h", "--help"],
            is_flag=True,
            callback=_show_help,
            help=_("Show this message and exit."),
            **common,
        ),
    ]
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            add_common_options(inner)


@click.group(
    cls=Commands,
    context_settings={"max_content_width": 110},
    help=_("""Train your own Transformer on your own text, see what every attention head does, ship it.

        \b
        Start here:   manyheads quickstart
        """),
)
@click.version_option(__version__, prog_name="manyheads", help=_("Show the version and exit."))
def commands() -> None:
    """Run one of the commands."""


for _command in _COMMANDS:
    commands.add_command(_command)
add_common_options(commands)
