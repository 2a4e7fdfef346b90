"""An environment of its own for each peer, by name.

    python benchmarks/speed/peers.py                       all of them, in .peers/
    python benchmarks/speed/peers.py eole joeynmt --folder somewhere

pip installs with our constraints.txt, so that every peer runs on the very torch that manyheads runs on. A peer whose
own pins forbid that torch is installed without its dependencies, and then the few that its import needs.
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
    """What its environment holds, and how one sees that it works."""

    packages: tuple[str, ...]  # with what they depend on
    alone: str  # without what it depends on; "": nothing
    imports: tuple[str, ...]


PEERS = {
    "transformers": Peer(("torch", "numpy", "transformers"), "", ("transformers.models.marian.modeling_marian",)),
    "joeynmt": Peer(
        # Its pin of protobuf is of before Python 3.11.
        (
            *("torch", "numpy", "pyyaml", "importlib_metadata", "packaging", "tensorboard", "matplotlib"),
            *("sentencepiece", "subword-nmt"),
        ),
        "joeynmt==2.3.0",
        ("joeynmt.model", "joeynmt.loss", "joeynmt.batch"),
    ),
    "opennmt-py": Peer(
        # Its pin of torch is < 2.3.
        (
            *("torch", "numpy", "pyyaml", "configargparse", "pyonmttok", "spacy", "pyahocorasick", "rapidfuzz"),
            *("regex", "fasttext", "six", "sacrebleu"),
        ),
        "OpenNMT-py==3.5.1",
        ("onmt.model_builder", "onmt.utils.loss", "onmt.opts"),
    ),
    "eole": Peer(
        # What else it wants is for serving, for speech and for pictures.
        ("torch", "numpy", "pyyaml", "safetensors", "pyonmttok", "pydantic", "regex", "sacrebleu", "rapidfuzz"),
        "eole==0.6.4",
        ("eole.models.model", "eole.utils.loss", "eole.config.run"),
    ),
    "ctranslate2": Peer(("ctranslate2", "numpy"), "", ("ctranslate2",)),
}


class PeerError(Exception):
    """A peer that cannot be installed or imported; the last line of what went wrong."""


def prepare(name: str, folder: Path = FOLDER) -> Path:
    """The Python of a peer's environment, which is made where it is not yet there."""
    peer, home = PEERS[name], folder / name
    python, mark = home / "bin" / "python", home / "installed"
    wanted = f"{peer}\n{CONSTRAINTS.read_text(encoding='utf-8')}"
    if mark.exists() and mark.read_text(encoding="utf-8") == wanted:
        return python
    print(f"{name}: installing into {home}", file=sys.stderr)
    _run(sys.executable, "-m", "venv", "--clear", str(home))
    # Of what is installed only a small part is ever imported: compiling all of it takes most of the time.
    install = (str(python), "-m", "pip", "install", "--disable-pip-version-check", "--no-compile", "-qq")
    constrained = (*install, "--constraint", str(CONSTRAINTS))
    if peer.alone:  # first, so that pip's complaints about it are not the last line
        _run(*constrained, "--no-deps", peer.alone)
    _run(*constrained, *peer.packages)
    _run(str(python), "-W", "ignore", "-c", f"import {', '.join(peer.imports)}")
    mark.write_text(wanted, encoding="utf-8")
    return python


def _run(*command: str) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        raise PeerError(lines[-1].strip() if lines else f"{command[0]} ended with {done.returncode}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(PEERS)}; none: all")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in PEERS]
    if unknown:
        parser.error(f"no peer is called {', '.join(unknown)}. There are {', '.join(PEERS)}.")
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
