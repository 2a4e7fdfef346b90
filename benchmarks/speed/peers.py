"""Install each peer in its own virtual environment.

    python benchmarks/speed/peers.py                       all of them, in .peers/
    python benchmarks/speed/peers.py eole joeynmt --folder somewhere

pip installs with the constraints.txt of manyheads, so that every peer runs on the same torch. A peer whose pins exclude
that torch is installed without its dependencies; then those that its import needs are installed.
"""

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONSTRAINTS = ROOT / "constraints.txt"
FOLDER = ROOT / ".peers"


@dataclass(frozen=True)
class Peer:
    """The packages of a peer's environment, and the imports that check it."""

    packages: tuple[str, ...]  # installed with their dependencies
    alone: str  # installed without its dependencies; "": none
    imports: tuple[str, ...]


PEERS = {
    "transformers": Peer(
        ("torch", "numpy", "transformers", "sentencepiece"), "", ("transformers.models.marian.modeling_marian",)
    ),
    "joeynmt": Peer(
        # Its pin of protobuf is older than Python 3.11.
        (
            *("torch", "numpy", "pyyaml", "importlib_metadata", "packaging", "tensorboard", "matplotlib"),
            *("sentencepiece", "subword-nmt"),
        ),
        "joeynmt==2.3.0",
        ("joeynmt.model", "joeynmt.loss", "joeynmt.batch"),
    ),
    "opennmt-py": Peer(
        # It requires torch < 2.3.
        (
            *("torch", "numpy", "pyyaml", "configargparse", "pyonmttok", "spacy", "pyahocorasick", "rapidfuzz"),
            *("regex", "fasttext", "six", "sacrebleu"),
        ),
        "OpenNMT-py==3.5.1",
        ("onmt.model_builder", "onmt.utils.loss", "onmt.opts"),
    ),
    "eole": Peer(
        # Its other dependencies are for serving, speech and images.
        ("torch", "numpy", "pyyaml", "safetensors", "pyonmttok", "pydantic", "regex", "sacrebleu", "rapidfuzz"),
        "eole==0.6.4",
        ("eole.models.model", "eole.utils.loss", "eole.config.run"),
    ),
    "ctranslate2": Peer(("ctranslate2", "numpy", "sentencepiece"), "", ("ctranslate2", "sentencepiece")),
    # Its other dependencies are for its view of neurons, and pip searches long for versions of boto3 that agree.
    "bertviz": Peer(("torch", "numpy", "ipython"), "bertviz==1.4.1", ("bertviz",)),  # of benchmarks/lens/page.py
    "baselines": Peer(  # of benchmarks/defaults.py
        ("numpy", "scikit-learn", "spacy", "python-crfsuite"), "", ("sklearn.svm", "spacy", "pycrfsuite")
    ),
}


class PeerError(Exception):
    """A peer cannot be installed or imported; the message is the last line of the error."""


def prepare(name: str, folder: Path = FOLDER) -> Path:
    """Return the Python of a peer's environment; install the environment if necessary."""
    peer, home = PEERS[name], folder / name
    python, record = home / "bin" / "python", home / "installed"
    content = f"{peer}\n{CONSTRAINTS.read_text(encoding='utf-8')}"
    if record.exists() and record.read_text(encoding="utf-8") == content:
        return python
    print(f"{name}: installing into {home}", file=sys.stderr)
    _run(sys.executable, "-m", "venv", "--clear", str(home))
    # Compiling all packages would take most of the time, and only a small part is imported.
    install = (str(python), "-m", "pip", "install", "--disable-pip-version-check", "--no-compile", "-qq")
    constrained = (*install, "--constraint", str(CONSTRAINTS))
    if peer.alone:  # first, so that pip's warnings about it are not the last line
        _run(*constrained, "--no-deps", peer.alone)
    _run(*constrained, *peer.packages)
    _run(str(python), "-W", "ignore", "-c", f"import {', '.join(peer.imports)}")
    record.write_text(content, encoding="utf-8")
    return python


def _run(*command: str) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        raise PeerError(lines[-1].strip() if lines else f"{command[0]} ended with {done.returncode}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(PEERS)}; default: all")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in PEERS]
    if unknown:
        parser.error(f"unknown peer: {', '.join(unknown)}. Known: {', '.join(PEERS)}.")
    failed = False
    for name in given.names or PEERS:
        try:
            print(f"{name}: {prepare(name, given.folder.resolve())}")
        except PeerError as error:
            failed = True
            print(f"{name}: {error}", file=sys.stderr)
    sys.exit(failed)


if __name__ == "__main__":
    main()
