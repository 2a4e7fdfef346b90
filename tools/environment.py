"""Makes a virtual environment, or says in one line why it cannot. `make` may run it with any Python 3."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit(
        "manyheads needs Python 3.11 or newer; this is %d.%d.%d. Try make PYTHON=python3.12" % sys.version_info[:3]  # noqa: UP031
    )
if sys.maxsize < 2**32:
    sys.exit("manyheads needs a 64-bit Python: PyTorch has no 32-bit builds. Say which one with make PYTHON=…")
try:
    import ensurepip  # noqa: F401
    import venv
except ImportError:
    sys.exit(
        f"{sys.executable} cannot make virtual environments. Install its module venv (on Debian and Ubuntu: "
        "apt install python3-venv), then run make again."
    )
venv.create(sys.argv[1], with_pip=True, clear=True)
