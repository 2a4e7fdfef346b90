"""The command line: thin commands over the rooms below.

Everything heavy is imported inside a command, so `--help` answers at once. Errors of ours are printed as one line
on standard error, with exit code 1. May import all rooms.
"""

import os
import sys
from pathlib import Path
from typing import NoReturn

import click

from manyheads import __version__
from manyheads.cli.bench import bench
from manyheads.cli.doctor import doctor
from manyheads.cli.evaluate import evaluate
from manyheads.cli.heads import heads
from manyheads.cli.init import init
from manyheads.cli.predict import predict
from manyheads.cli.quantize import quantize
from manyheads.cli.quickstart import quickstart
from manyheads.cli.shortlist import shortlist
from manyheads.cli.train import train
from manyheads.cli.walk import walk
from manyheads.errors import ManyheadsError


class Commands(click.Group):
    """Commands in the order a newcomer meets them; a mistyped one gets a suggestion."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """As they were added."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command named first, or a hint at what it might have been."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            from manyheads.settings import did_you_mean

            ctx.fail(f"There is no command {args[0]!r}. {did_you_mean(args[0], self.commands)}")
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="manyheads")
def commands() -> None:
    """Train your own Transformer on your own text, see what every head does, ship it.

    用你自己的文本训练你自己的 Transformer，看清每一个注意力头，然后部署它。

    \b
    Start here · 从这里开始:   manyheads quickstart
    """


for command in (quickstart, init, doctor, train, evaluate, predict, quantize, shortlist, heads, walk, bench):
    commands.add_command(command)


def main() -> NoReturn:
    """Run the command line; an error of ours is one line on standard error, never a traceback."""
    # Threads that wait by spinning starve the ones that work when a machine is busy (docs/decisions/0005). Read by
    # OpenMP when torch is first imported; whoever has set a policy keeps it.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "50000")
    if sys.stdout is None:  # closed by the caller, who wants no answer
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    try:
        commands(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except ManyheadsError as error:
        text = str(error)
        click.echo(f"Error: {text}" if "\n" not in text else f"Error:\n{text}", err=True)
        sys.exit(1)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        click.echo(f"Error: {where}{error.strerror or error}.", err=True)
        sys.exit(1)
    except (KeyboardInterrupt, click.Abort):
        click.echo("Stopped.", err=True)
        sys.exit(130)
    sys.exit(0)
