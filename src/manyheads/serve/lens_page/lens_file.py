"""`lens_page`: the lens page of some texts as one HTML file that works from disk, without a server or a network.

A browser blocks module imports on file://. The modules are therefore embedded as data: URLs in an import map, and
their relative imports are rewritten to the names in the map. Answers without heads cannot be computed in a file: those
of every single head, of every attention and of the most important heads together are computed beforehand, within a
limit of time. The page reports what it does not contain.
"""

import base64
import posixpath
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs

from manyheads.bundle import Bundle
from manyheads.errors import LensError
from manyheads.language import Language
from manyheads.lens.heads import Head
from manyheads.serve.lens_page.lens_model import LensModel
from manyheads.serve.lens_page.lens_session import VERSION, LensSession, TracedText, TraceRequest
from manyheads.serve.static_files import file_names, read_page, read_static, script_json

_SECONDS = 20.0  # for ablations, of each text
_MAX_WALK_NUMBERS = 1_500_000  # of each text; about 10 bytes each
_N_MOST_IMPORTANT = 10
_RELATIVE_IMPORT = re.compile(r"""(\bfrom\s+|\bimport\s+|\bimport\()(["'])(\.\.?/[\w./]+\.js)\2""")
_STYLESHEET = re.compile(r'<link rel="stylesheet" href="([\w./]+)">')
_POLICY = "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data: blob:"

Progress = Callable[[float], None]


def lens_page(
    bundle: Bundle, texts: Sequence[str], *, path: Path | None = None, survey: dict[str, Any] | None = None
) -> str:
    """Return the page of some texts of a bundle; `path` gives the bundle its name on the page."""
    session = LensSession([LensModel("a", path or Path("bundle"), bundle)])
    traced = [session.trace(TraceRequest("a", text)) for text in texts]
    return page_of(session, traced, surveys={} if survey is None else {"a": survey})


def page_of(
    session: LensSession,
    traced: Sequence[TracedText],
    *,
    surveys: dict[str, Any] | None = None,
    examples: dict[str, Any] | None = None,
    seconds: float = _SECONDS,
    language: Language | None = None,
    state: str = "",
    progress: Progress = lambda done: None,
) -> str:
    """Return the page of texts that a session has traced.

    `state` is the address of the page that is saved, without its #: the file opens in the same state.
    """
    off = [head for heads in parse_qs(state).get("off", []) for head in heads.split(",")]
    bundles = dict.fromkeys(text.request.bundle for text in traced)
    data: dict[str, Any] = {
        "model": {
            "version": VERSION,
            "bundles": [
                {**session.opened(id).describe(is_live=False), "examples": _texts_of(traced, id)} for id in bundles
            ],
        },
        "traces": [text.view for text in traced],
        "maps": {text.view["id"]: _maps(text) for text in traced},
        "importance": {},
        "ablations": {},
        "walks": {},
        "survey": surveys or {},
        "examples": examples or {},
    }
    for number, text in enumerate(traced):
        id = text.view["id"]
        if (importance := _importance(session, id, seconds)) is not None:
            data["importance"][id] = importance
        data["walks"][id] = dict(_walks(session, text))

        def report(done: float, number: int = number) -> None:
            progress((number + done) / len(traced))

        data["ablations"][id] = _ablations(session, text, importance, off, seconds, report)
    progress(1.0)
    return _html(data, language, state)


def _texts_of(traced: Sequence[TracedText], bundle: str) -> list[str]:
    return list(dict.fromkeys(text.request.text for text in traced if text.request.bundle == bundle))


def _maps(traced: TracedText) -> dict[str, Any]:
    maps = {}
    for name, attention in traced.maps.attentions.items():
        for number in range(attention.n_heads):
            steps, scale = traced.maps.deflated(Head(name, number), is_for_file=True)
            maps[f"{name}/{number}"] = {
                "weights": {"scale": scale, "data": base64.b64encode(steps).decode()},
                "value_norms": [float(f"{norm:.4g}") for norm in attention.value_norms[number]],
            }
    return maps


def _walks(session: LensSession, traced: TracedText) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the numbers of every row of every head; nothing if they would make the file too large."""
    attentions = traced.view["attentions"]
    widths = {
        attention["name"]: 4 * attention["head_width"] + attention["value_width"]
        for attention in session.opened(traced.request.bundle).describe(is_live=False)["attentions"]
    }
    n_numbers = sum(
        attention["n_heads"] * attention["n_queries"] * attention["n_keys"] * widths[attention["name"]]
        for attention in attentions
    )
    if n_numbers > _MAX_WALK_NUMBERS:
        return
    for attention in attentions:
        for row in session.walk_rows(traced.view["id"], attention["name"]):
            yield f"{attention['name']}/{row['head']}/{row['query']}", _rounded(row)


def _importance(session: LensSession, trace_id: str, seconds: float) -> dict[str, Any] | None:
    """Return the importance of every head for a text, if it has an answer and there is time."""
    try:
        return cast(dict[str, Any], _rounded(session.importance(trace_id, seconds)))
    except LensError:
        return None


def _ablations(
    session: LensSession,
    traced: TracedText,
    importance: dict[str, Any] | None,
    off: Sequence[str],
    seconds: float,
    progress: Progress,
) -> dict[str, Any]:
    """Return the answers without some sets of heads, within a limit of time.

    These are the heads that are off now, each head, each attention and the k most important heads.
    """
    attentions = [
        [f"{attention['name']}/{number}" for number in range(attention["n_heads"])]
        for attention in traced.view["attentions"]
    ]
    heads = [head for own in attentions for head in own]
    if importance is not None:
        heads = [head["head"] for head in sorted(importance["heads"], key=lambda head: -head["change"])]
    head_sets = [
        *([list(off)] if off and set(off) <= set(heads) else []),
        *([head] for head in heads),
        heads[:_N_MOST_IMPORTANT],
        *attentions,
        *(heads[:count] for count in range(2, _N_MOST_IMPORTANT)),
    ]
    ablations: dict[str, Any] = {}
    start = time.monotonic()
    for number, head_set in enumerate(head_sets):
        if ablations and time.monotonic() - start > seconds:
            break
        key = ",".join(sorted(head_set))
        if key not in ablations:
            ablations[key] = _rounded(session.ablate(traced.view["id"], head_set))
        progress((number + 1) / len(head_sets))
    return ablations


def _rounded(value: Any) -> Any:
    """Round numbers to six significant digits: the page shows at most four."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list | tuple) else value


def _html(data: dict[str, Any], language: Language | None, state: str) -> str:
    """Return the page with its styles, modules and data embedded."""
    page = read_page("lens", language, state)
    charset = '<meta charset="utf-8">'
    page = page.replace(charset, f'{charset}\n<meta http-equiv="Content-Security-Policy" content="{_POLICY}">', 1)
    page = _STYLESHEET.sub(lambda match: f"<style>\n{read_static(match[1])}</style>", page)
    modules = {name: _data_url(name) for name in file_names("lens", "shared") if name.endswith(".js")}
    embedded = (
        f'<script type="importmap">{script_json({"imports": modules})}</script>\n'
        f'<script type="application/json" id="lens-data">{script_json(data)}</script>\n'
        '<script type="module">import "lens/lens.js";</script>'
    )
    return page.replace('<script type="module" src="lens/lens.js"></script>', embedded, 1)


def _data_url(name: str) -> str:
    """Return a module as a URL; what it imports by a relative path, it imports by the name in the map."""

    def bare(match: re.Match[str]) -> str:
        before, quote, path = match.groups()
        return f"{before}{quote}{posixpath.normpath(posixpath.join(posixpath.dirname(name), path))}{quote}"

    source = _RELATIVE_IMPORT.sub(bare, read_static(name))
    return f"data:text/javascript;base64,{base64.b64encode(source.encode()).decode()}"
