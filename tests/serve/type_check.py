"""TypeScript's checker over the scripts of the lens page, whose types are JSDoc comments.

    make lens-types

The compiler is one package of npm, verified by its checksum and unpacked into build/. It runs on the Node.js inside
Playwright's wheel, so that neither Node.js nor npm has to be installed.
"""

import base64
import hashlib
import io
import subprocess
import sys
import tarfile
import urllib.request
from pathlib import Path
from urllib.error import URLError

from filelock import FileLock
from playwright._impl._driver import compute_driver_executable

ROOT = Path(__file__).parents[2]
_VERSION = "6.0.3"  # from 7.0 on, the compiler is a binary per platform
_PACKAGE = f"npm:/typescript/-/typescript-{_VERSION}.tgz"
CONFIG = Path(__file__).with_name("tsconfig.json")
_SHA512 = "y2TvuxSZPDyQakkFRPZHKFm+KKVqIisdg9/CZwm9ftvKXLP8NRWj38/ODjNbr43SsoXqNuAisEf1GdCxqWcdBw=="


class UnavailableError(Exception):
    """The compiler is not there and cannot be downloaded."""


def compiler() -> Path:
    """Return the folder of the compiler; download it once."""
    folder = ROOT / "build" / f"typescript-{_VERSION}"
    folder.parent.mkdir(exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            try:
                with urllib.request.urlopen(_PACKAGE, timeout=60) as answer:  # a fixed https address
                    content = answer.read()
            except (URLError, TimeoutError) as error:
                raise UnavailableError(f"{_PACKAGE} cannot be downloaded: {error}") from None
            if base64.b64encode(hashlib.sha512(content).digest()).decode() != _SHA512:
                raise UnavailableError(f"{_PACKAGE} does not have the expected checksum.")
            with tarfile.open(fileobj=io.BytesIO(content)) as archive:
                archive.extractall(folder.with_suffix(".part"), filter="data")
            folder.with_suffix(".part").rename(folder)
    return folder / "package"


def check_types(config: Path = CONFIG) -> "subprocess.CompletedProcess[str]":
    """Run the checker with a configuration; a fault is a line of its output."""
    node = Path(compute_driver_executable()[0])
    command = [str(node), str(compiler() / "lib" / "tsc.js"), "--project", str(config), "--pretty", "false"]
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
