"""Prints the oldest versions that pyproject.toml allows, as constraints for pip (`make test-oldest`)."""

import re
import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
for requirement in project["dependencies"] + project["optional-dependencies"]["serve"]:
    name, lowest = re.match(r"([\w.-]+)>=([\d.]+)", requirement).groups()
    if name != "torch":  # chosen by TORCH=
        sys.stdout.write(f"{name}=={lowest}\n")
