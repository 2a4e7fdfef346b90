import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from manyheads import __main__, installation


def run_with(fake: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command with the modules in `fake` before all others."""
    path = os.pathsep.join([str(fake), str(Path(__main__.__file__).parents[1])])
    return subprocess.run(
        [sys.executable, "-m", "manyheads", *arguments],
        env=os.environ | {"PYTHONPATH": path, "MANYHEADS_LANG": "en"},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("module", ["torch", "click", "sentencepiece"])
def test_a_package_that_cannot_be_imported_is_one_line(tmp_path: Path, module: str) -> None:
    (tmp_path / f"{module}.py").write_text(f"raise ImportError('undefined symbol: x', name={module!r})")
    ran = run_with(tmp_path, "train", str(Path(__file__).parents[1] / "recipes" / "snips.toml"))
    assert ran.returncode == 1
    assert ran.stderr == (
        "Error: undefined symbol: x. The installation is incomplete or damaged. "
        f"Run: pip install --force-reinstall {module}\n"
    )


def test_a_missing_package_is_installed_by_its_name() -> None:
    explained = installation.explain(ImportError("No module named 'absent'", name="absent"))
    assert explained is not None and explained.endswith("Run: pip install absent")


def test_an_error_of_another_cause_keeps_its_traceback(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import manyheads.cli as cli\ncli.report_warnings = None\n")
    ran = run_with(tmp_path, "walk")
    assert ran.returncode == 1
    assert "Traceback" in ran.stderr and "NoneType" in ran.stderr


def test_unsupported_and_missing_versions_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def requires(name: str) -> list[str]:
        conditional = ["other>=1; extra == 'serve'", "old>=1; python_version < '3'"]
        return ["click>=99", "absent-package>=1", "rich>=1", *conditional]

    assert installation.find_unmet() == []
    monkeypatch.setattr(metadata, "requires", requires)
    assert installation.find_unmet() == [("click>=99", metadata.version("click")), ("absent-package>=1", None)]
    explained = installation.explain(AttributeError("no attribute"))
    assert explained is not None and explained.endswith("Run: pip install 'click>=99' 'absent-package>=1'")


def test_python_that_is_too_old_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 4, "final", 0))
    with pytest.raises(SystemExit, match=r"needs Python 3\.11 or newer; this is 3\.10\.4\."):
        __main__.main()


def test_a_32_bit_python_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "maxsize", 2**31 - 1)
    explained = installation.explain(ImportError("No module named 'torch'", name="torch"))
    assert explained is not None and "32-bit Python" in explained


def test_every_pinned_version_supports_the_oldest_python() -> None:
    """`make test` installs constraints.txt on any Python from 3.11.0 on, not only on the one that it was made with."""
    lines = (Path(__file__).parents[1] / "constraints.txt").read_text("utf-8").splitlines()
    pins = dict(line.partition("  #")[0].split("==") for line in lines if "==" in line and not line.startswith("#"))
    installed = [one for one in metadata.distributions() if pins.get(one.name) == one.version]
    assert len(installed) > 50
    newer_only = {
        one.name: needed
        for one in installed
        if (needed := one.metadata["Requires-Python"]) and not SpecifierSet(needed).contains("3.11.0")
    }
    assert newer_only == {}
