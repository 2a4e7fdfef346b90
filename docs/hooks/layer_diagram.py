"""The diagram of packages, drawn from the import contract, so that it cannot differ from what is checked."""

import ast
import tomllib
from html import escape
from pathlib import Path

_WIDTH, _ROW, _GAP, _TOP = 900, 62, 14, 16


def draw_layers(pyproject: Path) -> str:
    """Return an SVG: one row per layer, highest first; a package imports only from the rows below it."""
    table = tomllib.loads(pyproject.read_text("utf-8"))
    layers = next(one for one in table["tool"]["importlinter"]["contracts"] if one["type"] == "layers")["layers"]
    source = pyproject.parent / "src/manyheads"
    parts = []
    for number, layer in enumerate(layers):
        names = [name.strip() for name in layer.split("|")]
        y = _TOP + number * (_ROW + _GAP)
        width = (_WIDTH - _GAP * (len(names) + 1)) / len(names)
        for column, name in enumerate(names):
            x = _GAP + column * (width + _GAP)
            parts.append(_box(x, y, width, name, _summary(source, name)))
        if number:
            middle = _WIDTH / 2
            parts.append(f'<path class="arrow" d="M{middle} {y - _GAP} V{y}"/>')
    height = _TOP + len(layers) * (_ROW + _GAP)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="Packages of manyheads; a package imports only from the rows below it">'
        "<style>rect{fill:#f5f6f8;stroke:#e3e5e9}.name{font:600 15px system-ui,sans-serif;fill:#0b62a4}"
        ".what{font:12px system-ui,sans-serif;fill:#5d636e}.arrow{stroke:#9ba2ae}"
        "@media(prefers-color-scheme:dark){rect{fill:#1c1f25;stroke:#2c3038}.name{fill:#6cb6f0}.what{fill:#9ba2ae}}"
        f"</style>{''.join(parts)}</svg>\n"
    )


def _summary(source: Path, name: str) -> str:
    path = source / name / "__init__.py" if (source / name).is_dir() else source / f"{name}.py"
    return (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").split("\n")[0]


def _box(x: float, y: float, width: float, name: str, what: str) -> str:
    most = int((width - 24) / 6.5)  # characters in a line
    lines, line = [], ""
    for word in what.split():
        if len(line) + len(word) > most:
            lines.append(line)
            line = ""
        line = f"{line} {word}".strip()
    lines.append(line)
    if len(lines) > 2:
        lines = [lines[0], lines[1].rstrip(".,;:") + " …"]
    text = "".join(
        f'<text class="what" x="{x + 12:.0f}" y="{y + 38 + 15 * number}">{escape(one)}</text>'
        for number, one in enumerate(lines)
    )
    return (
        f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="{_ROW}" rx="6"/>'
        f'<text class="name" x="{x + 12:.0f}" y="{y + 21}">{escape(name)}</text>{text}'
    )
