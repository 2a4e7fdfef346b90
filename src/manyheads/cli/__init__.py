"""The command line: thin commands over the library.

Everything heavy is imported inside a command, so `--help` answers at once. An error is one line on standard error and
a non-zero exit code, never a traceback. May import every other package.
"""

import codecs
import logging
import os
import sys
from pathlib import Path
from typing import NoReturn

import click

from manyheads import language
from manyheads.cores import limit_threads
from manyheads.errors import LostProcessError, ManyheadsError

SPIN_COUNT = 2000  # how often a waiting OpenMP thread looks before it sleeps (docs/decisions/0053)


def main() -> NoReturn:
    """Run the command line."""
    # Threads that wait by spinning starve the working ones on a busy machine. OpenMP reads this when torch is first
    # imported; a policy that the user has set is kept.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", str(SPIN_COUNT))
    if not any(word.startswith("--processes") for word in sys.argv):  # these share the cores: see run/supervisor.py
        limit_threads()
    if "RANK" in os.environ:  # torch warns of options that are meant, once per process
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    _prepare_streams()
    language.choose(requested_language(sys.argv[1:]))
    report_warnings()
    from manyheads.cli.root import commands  # the language must be known before help texts are chosen

    try:
        commands(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except ManyheadsError as error:
        text = str(error)
        click.echo(f"Error: {text}" if "\n" not in text else f"Error:\n{text}", err=True)
        sys.exit(75 if isinstance(error, LostProcessError) else 1)  # "temporary failure" in sysexits.h
    except OSError as error:
        from manyheads.storage import DISK_FULL

        where = f"{error.filename}: " if error.filename else ""
        reason = f"{error.strerror or error}."
        if error.errno in DISK_FULL:
            reason = f"the disk is full ({error.strerror}). Free some space, then run the same command again."
        click.echo(f"Error: {where}{reason}", err=True)
        sys.exit(1)
    except (KeyboardInterrupt, click.Abort):
        click.echo(language.pick("Stopped.", "已停止。"), err=True)
        sys.exit(130)
    sys.exit(0)


def _prepare_streams() -> None:
    """Make standard output and standard error accept any text."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # of a closed stream: no file must get its number
        pass
    os.close(descriptor)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        else:  # ASCII is what Python uses if it does not know better; the terminal or file then most likely has UTF-8
            is_unknown = codecs.lookup(stream.encoding).name == "ascii"
            stream.reconfigure(encoding="utf-8" if is_unknown else None, errors="backslashreplace")


def requested_language(arguments: list[str]) -> language.Language | None:
    """Return the value of `--lang` in a command line, or None. click checks it later and reports a wrong one."""
    for position, argument in enumerate(arguments):
        if argument == "--":
            return None
        value = argument.removeprefix("--lang=") if argument.startswith("--lang=") else None
        if argument == "--lang" and position + 1 < len(arguments):
            value = arguments[position + 1]
        for known in language.LANGUAGES:
            if value == known:
                return known
    return None


class _StandardError(logging.Handler):
    """Writes each log record as one line on standard error, whatever that stream is at the time."""

    def emit(self, record: logging.LogRecord) -> None:
        prefix = "" if record.levelno < logging.WARNING else language.pick("Warning: ", "警告：")
        if record.levelno >= logging.ERROR:
            prefix = "Error: "
        click.echo(f"{prefix}{self.format(record)}", err=True)


def report_warnings() -> None:
    """Print what the library logs, from INFO on, as lines on standard error."""
    logger = logging.getLogger("manyheads")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    if not any(isinstance(handler, _StandardError) for handler in logger.handlers):
        logger.addHandler(_StandardError())
