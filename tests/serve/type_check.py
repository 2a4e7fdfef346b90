"""TypeScript's checker over the scripts of the lens page, whose types are JSDoc comments.

    make lens-types

The compiler is one package of npm, which unpacks it into build/.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from filelock import FileLock

from serve import node

ROOT = Path(__file__).parents[2]
_VERSION = "6.0.3"  # from 7.0 on, the compiler is a binary per platform
CONFIG = Path(__file__).with_name("tsconfig.json")


class UnavailableError(Exception):
    """The compiler is not there and cannot be downloaded."""


def compiler() -> Path:
    """Return the folder of the compiler; install it once."""
    folder = ROOT / "build" / f"typescript-{_VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    package = folder / "node_modules" / "typescript"
    with FileLock(f"{folder}.lock"):
        if not (package / "lib" / "tsc.js").exists():
            _install(folder)
    return package


def _install(folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise UnavailableError("TypeScript needs npm, which is not installed: the types of the page are not checked.")
    command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), f"typescript@{_VERSION}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise UnavailableError(f"npm cannot install TypeScript ({done.stderr.strip() or done.returncode}).")


def check_types(config: Path = CONFIG) -> "subprocess.CompletedProcess[str]":
    """Run the checker with a configuration; a fault is a line of its output."""
    runtime = node.find_node()
    if runtime is None:
        raise UnavailableError(node.MISSING)
    command = [runtime, str(compiler() / "lib" / "tsc.js"), "--project", str(config), "--pretty", "false"]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def main() -> int:
    """Print the faults."""
    try:
        done = check_types()
    except UnavailableError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(done.stdout or "The types of src/manyheads/serve/static are consistent.\n")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
