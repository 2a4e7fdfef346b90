"""The examples of docs/reference/serve-apis.md: every command and program runs, and answers in the shape shown."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from serve.conftest import trained  # noqa: F401
from serve.service_process import serving_process

DOCS = Path(__file__).parents[2] / "docs"
ADDRESS = "http://127.0.0.1:8876"


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / name).read_text("utf-8"), re.DOTALL)


def commands() -> list[tuple[str, str]]:
    """The curl commands of the page, each with the output that is shown."""
    found: list[tuple[str, str]] = []
    for block in blocks("reference/serve-apis.md", "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = part.split("\n")
            n_lines = 1 + next(index for index, line in enumerate(lines) if not line.endswith("\\"))
            found.append(("\n".join(lines[:n_lines]), "\n".join(lines[n_lines:]).strip()))
    return [one for one in found if one[0].startswith("curl ")]


def shape(value: Any) -> Any:
    """The names and types of an answer; a list has the shapes of its elements."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in value.items()}
    return [shape(one) for one in value] if isinstance(value, list) else type(value)


@pytest.fixture(scope="module")
def address(trained: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:  # noqa: F811
    log = tmp_path_factory.mktemp("serve-apis") / "log"
    with serving_process(f"zh-en={trained('seq2seq')}", f"verses={trained('language')}", log=log) as service:
        yield service.address.rstrip("/")


def test_both_pages_have_the_same_examples() -> None:
    for language in ("console", "python"):
        assert blocks("reference/serve-apis.md", language) == blocks("zh/reference/serve-apis.md", language) != []


@pytest.mark.skipif(shutil.which("curl") is None, reason="The examples are commands of curl: install curl")
@pytest.mark.parametrize(("command", "shown"), commands(), ids=[str(number) for number in range(len(commands()))])
def test_commands_answer_as_shown(address: str, command: str, shown: str) -> None:
    assert ADDRESS in command
    ended = subprocess.run(
        ["/bin/sh", "-c", command.replace(ADDRESS, address).replace("curl ", "curl -sS ", 1)],
        capture_output=True,
        timeout=60,
        check=True,
    )
    output = ended.stdout.decode()
    if "stream" in command:
        assert output.startswith("data: {")
        assert output.endswith("data: [DONE]\n\n")
        return
    answer = json.loads(output)
    if shown:
        assert shape(answer) == shape(json.loads(shown))
    if "error" in shown or "detail" in shown:
        assert answer == json.loads(shown)
    else:
        assert "error" not in answer
        assert "detail" not in answer


@pytest.mark.parametrize("code", blocks("reference/serve-apis.md", "python"), ids=["libretranslatepy", "openai"])
def test_programs_run(address: str, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ADDRESS in code
    exec(compile(code.replace(ADDRESS, address), "serve-apis.md", "exec"), {})
    assert len(capsys.readouterr().out.strip()) > 10
