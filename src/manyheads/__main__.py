"""`manyheads` and `python -m manyheads`: the command line, and one line where the installation is broken."""

import sys


def main() -> None:
    """Run the command line."""
    if sys.version_info < (3, 11):  # noqa: UP036 - pip refuses older versions, a clone runs with any
        sys.exit("Error: manyheads needs Python 3.11 or newer; this is %d.%d.%d." % sys.version_info[:3])  # noqa: UP031
    try:
        from manyheads.cli import main as run

        run()
    except Exception as error:
        from manyheads.installation import explain

        reason = explain(error)
        if reason is None:
            raise
        sys.exit(f"Error: {reason}")


if __name__ == "__main__":
    main()
