"""`manyheads embed`: the vector of each line of text, or the lines that are nearest to a text."""

import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from manyheads.cli.options import COUNT
from manyheads.cli.rendering.output import open_output
from manyheads.messages import _

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from manyheads.bundle import Bundle

_BATCH = 1000  # lines
_MAX_SEARCHED = 1_000_000  # lines


@click.command(
    short_help=_("Write the vector of each line of text."),
    help=_("""Read lines from FILE or standard input and write the vector of each as a JSON list.

        BUNDLE is an imported encoder, or a classifier, whose vector is the one before its output layer. A line without
        text gives []. An OUTPUT that ends in .npy gets a NumPy array with one row for each line instead; a line
        without text then has zeros. With --search, the lines that are most similar to a text are written: cosine, line
        number, line.

        \b
        Example:
          manyheads embed minilm questions.txt -o questions.npy
          manyheads embed minilm questions.txt --search "How do I close my account?"
        """),
)
@click.argument("bundle", type=click.Path(path_type=Path))
@click.argument("file", default="-")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help=_("Write to this file instead of standard output; .npy: as a NumPy array."),
)
@click.option("--search", help=_("Write the lines that are most similar to this text."))
@click.option("--top", type=COUNT, default=5, show_default=True, help=_("Number of lines that --search writes."))
@click.option("--device", default="auto", show_default=True, help=_("cpu, cuda, mps or auto."))
def embed(bundle: Path, file: str, output: Path | None, search: str | None, top: int, device: str) -> None:
    """Embed every line of a file."""
    from manyheads.bundle import load
    from manyheads.errors import DataError

    if search is not None and not search.strip():
        raise click.UsageError(_("--search is empty. Give a text."))
    is_array = output is not None and output.suffix == ".npy"
    if search is not None and is_array:
        raise click.UsageError(_("--search writes lines, not an array: name another output file."))
    loaded = load(bundle, device)
    if search is not None:
        query = loaded.embed([search])[0]  # refuses a bundle without vectors before anything is read
        lines, vectors = _embed_all(loaded, file)
        with open_output(output, file) as stream:
            for cosine, number in nearest(query, vectors, top):
                stream.write(f"{cosine:.4f}\t{number + 1}\t{lines[number]}\n")
        return
    if is_array:
        import numpy as np

        assert output is not None
        _lines, vectors = _embed_all(loaded, file)
        if not output.resolve().parent.is_dir():
            raise DataError(_("{path}: the folder {folder} does not exist.", path=output, folder=output.parent))
        np.save(output, vectors)
        click.echo(_("Wrote {n_rows:,} vectors of {width:,} numbers.", n_rows=len(vectors), width=vectors.shape[1]))
        return
    with open_output(output, file, keep_partial=True) as stream:
        for batch in _batches(file):
            for line, vector in zip(batch, loaded.embed(batch).tolist(), strict=True):
                numbers = [round(number, 7) for number in vector] if line.strip() else []
                stream.write(json.dumps(numbers) + "\n")
            stream.flush()


def nearest(query: "NDArray[np.float32]", vectors: "NDArray[np.float32]", top: int) -> list[tuple[float, int]]:
    """Return the cosine and the number of the vectors that are most similar to the query, the best first."""
    import numpy as np

    norms = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
    cosines = vectors @ query / np.where(norms > 0, norms, 1.0)
    best = np.argsort(-cosines, kind="stable")[:top]
    return [(float(cosines[number]), int(number)) for number in best if norms[number] > 0]


def _embed_all(bundle: "Bundle", file: str) -> "tuple[list[str], NDArray[np.float32]]":
    import numpy as np

    from manyheads.errors import DataError

    lines: list[str] = []
    parts = []
    for batch in _batches(file):
        lines += batch
        if len(lines) > _MAX_SEARCHED:
            raise DataError(_("{file} has more than {most:,} lines. Split it.", file=file, most=_MAX_SEARCHED))
        parts.append(bundle.embed(batch))
    if not parts:
        raise DataError(_("{file} is empty: there is nothing to embed.", file=file))
    return lines, np.concatenate(parts)


def _batches(file: str) -> Iterator[list[str]]:
    """Yield the lines of a file in parts."""
    from manyheads.errors import DataError
    from manyheads.text.reading.files import read_lines

    if file == "-":
        if sys.stdin is None:
            raise click.UsageError(_("Standard input is closed. Name a file to read."))
        lines: Iterator[str] = (line.rstrip("\n") for line in sys.stdin)
    elif not Path(file).is_file():
        raise DataError(_("{file}: there is no such file.", file=file))
    else:
        lines = read_lines(Path(file))
    while batch := list(islice(lines, _BATCH)):
        yield batch
