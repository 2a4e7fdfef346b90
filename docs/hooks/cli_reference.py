"""Print every command's help as Markdown, in the language of MANYHEADS_LANG."""

import click

from manyheads.cli.root import commands
from manyheads.messages import translate_libraries


def help_of_commands() -> str:
    """Return one section for each command."""
    parts = []
    for words, command in walk("manyheads", commands):
        context = command.context_class(command, info_name=words, max_content_width=100, terminal_width=100)
        parts += [f"## {words}", f"```text\n{command.get_help(context)}\n```"]
    return "\n\n".join(parts) + "\n"


def walk(words: str, command: click.Command) -> list[tuple[str, click.Command]]:
    """Return a command and the commands inside it, each with what to type."""
    found = [(words, command)]
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            found += walk(f"{words} {name}", inner)
    return found


if __name__ == "__main__":
    translate_libraries()
    print(help_of_commands())
