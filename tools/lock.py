"""Refreshes constraints.txt: resolves every dependency in an empty environment (`make lock`).

The lines above "# All others" are pins by hand and stay as they are.
"""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

MARK = "# All others, by `make lock`:\n"
NEWER_ONLY = """
from importlib.metadata import distributions
from pip._vendor.packaging.specifiers import SpecifierSet
for package in distributions():
    needed = package.metadata["Requires-Python"] or ""
    if not SpecifierSet(needed).contains("3.11.0"):
        print(f"{package.name}=={package.version} needs Python {needed}")
"""
project = Path(__file__).parents[1]
constraints = project / "constraints.txt"
held = constraints.read_text("utf-8").partition(MARK)[0]
pinned = {line.partition("==")[0] for line in held.splitlines()}

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    (folder / "held.txt").write_text(held, "utf-8")
    venv.create(folder / "venv", with_pip=True)
    pip = [str(folder / "venv" / "bin" / "pip"), "--disable-pip-version-check", "--quiet"]
    for what in (["torch"], [f"{project}[dev,ray]"]):
        subprocess.run([*pip, "install", "--constraint", str(folder / "held.txt"), *what], check=True)
    command = [*pip, "freeze", "--exclude", "manyheads"]
    frozen = subprocess.run(command, check=True, capture_output=True, text=True).stdout

    # pip chooses versions for the Python that runs it; the oldest that pyproject.toml allows must do, too.
    command = [str(folder / "venv" / "bin" / "python"), "-c", NEWER_ONLY]
    newer_only = subprocess.run(command, check=True, capture_output=True, text=True).stdout

if newer_only:
    sys.exit("These need a newer Python than 3.11.0. Hold them back at the top of constraints.txt:\n" + newer_only)
others = [line for line in frozen.splitlines(keepends=True) if line.partition("==")[0] not in pinned]
if any("==" not in line for line in others):
    sys.exit("Not every package came from a registry:\n" + "".join(others))
constraints.write_text(held + MARK + "".join(others), "utf-8")
