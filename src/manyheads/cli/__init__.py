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
from manyheads.messages import Message, _, translate_libraries

SPIN_COUNT = 2000  # how often a waiting OpenMP thread looks before it sleeps (docs/decisions/0053)
OS_ERRORS = (  # the frequent ones, for the catalog
    Message("No such file or directory"),
    Message("Permission denied"),
    Message("File exists"),
    Message("Not a directory"),
    Message("Is a directory"),
    Message("Directory not empty"),
    Message("File name too long"),
    Message("Too many open files"),
    Message("No space left on device"),
    Message("Disk quota exceeded"),
    Message("Read-only file system"),
    Message("Input/output error"),
    Message("Broken pipe"),
    Message("Address already in use"),
    Message("Connection refused"),
    Message("Cannot allocate memory"),
)


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
    report_warnings()
    language.choose(requested_language(sys.argv[1:]))
    translate_libraries()
    from manyheads.cli.root import commands  # the language must be known before help texts are chosen

    try:
        commands(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except ManyheadsError as error:
        text = str(error)
        show_error(text if "\n" not in text else f"\n{text}")
        sys.exit(75 if isinstance(error, LostProcessError) else 1)  # "temporary failure" in sysexits.h
    except OSError as error:
        from manyheads.storage import DISK_FULL

        reason = _(error.strerror) if error.strerror else str(error)
        if error.errno in DISK_FULL:
            reason = _("the disk is full ({reason}). Free some space, then run the same command again.", reason=reason)
        else:
            reason = _("{reason}.", reason=reason)
        show_error(_("{file}: {reason}", file=error.filename, reason=reason) if error.filename else reason)
        sys.exit(1)
    except (KeyboardInterrupt, click.Abort):
        click.echo(_("Stopped."), err=True)
        sys.exit(130)
    sys.exit(0)


def show_error(message: str) -> None:
    """Print an error as click does; its lines follow the word if there are several."""
    click.echo("\n".join(line.rstrip() for line in _("Error: {message}", message=message).split("\n")), err=True)


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
        text = self.format(record)
        if record.levelno >= logging.ERROR:
            show_error(text)
        else:
            click.echo(text if record.levelno < logging.WARNING else _("Warning: {text}", text=text), err=True)


def report_warnings() -> None:
    """Print what the library logs, from INFO on, as lines on standard error."""
    logger = logging.getLogger("manyheads")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    if not any(isinstance(handler, _StandardError) for handler in logger.handlers):
        logger.addHandler(_StandardError())
