"""The process that answers HTTP."""

import subprocess
import sys


def test_it_does_not_import_torch() -> None:
    script = "import sys, manyheads.serve.http_server; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
