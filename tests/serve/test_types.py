"""The scripts of the lens page have consistent types."""

from pathlib import Path

import pytest

from serve.type_check import CONFIG, UnavailableError, check_types, compiler

SETTINGS = '{"extends": "%s", "include": ["%s"]}'


@pytest.fixture(scope="module", autouse=True)
def _compiler() -> None:
    try:
        compiler()
    except UnavailableError as error:
        pytest.skip(str(error))


def test_types_of_the_page_are_consistent() -> None:
    assert check_types().stdout == ""


def test_a_fault_is_found(tmp_path: Path) -> None:
    (tmp_path / "wrong.js").write_text("/** @param {number} x */\nexport const f = (x) => x.length;\n")
    config = tmp_path / "tsconfig.json"
    config.write_text(SETTINGS % (CONFIG, tmp_path / "*.js"))
    done = check_types(config)
    assert "wrong.js(2,27): error TS2339" in done.stdout
    assert done.returncode != 0
