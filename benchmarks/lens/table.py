"""Write the tables of benchmarks/lens/README.md from page.json.

python benchmarks/lens/table.py
"""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MARKS = ("<!-- table -->", "<!-- end of the table -->")


def cell(page: dict[str, Any], name: str, form: str) -> str:
    """A number of a page, or a dash."""
    return form.format(page[name]) if name in page else "–"


def row(title: str, page: dict[str, Any]) -> str:
    """One page as a row of the table."""
    size = f"{page['bytes'] / 1e6:,.1f} MB" if "bytes" in page else "–"
    ready = (
        f"not within {page['limit_seconds']:.0f} s"
        if "failed" in page
        else cell(page, "interactive_seconds", "{:.1f} s")
    )
    frames = cell(page, "frames_per_second", "{:.0f}")
    slowest = cell(page, "frames_per_second_slowest_twentieth", "{:.0f}")
    written = cell(page, "write_seconds", "{:.0f} s")
    return f"| {title} | {size} | {written} | {ready} | {frames} | {slowest} |"


HEAD = """| | file | written in | answers the mouse after | frames / s, median | slowest 5 % |
| --- | ---: | ---: | ---: | ---: | ---: |"""


def table(record: dict[str, Any]) -> str:
    """The table of one length, with its stamp."""
    pages = sorted(record["pages"].items(), key=lambda one: one[0].lower(), reverse=True)  # ours first
    rows = [row(title, page) for title, page in pages]
    first = row("manyheads, served, first visit", record["first_visit"])
    load = f"load {record.get('load_before', record['load'])} to {record['load']}"
    facts = (
        f"{record['date']}, {record['machine']}, {load}, {len(record['pages']['manyheads, served']['turns'])} turns."
    )
    parts = [" ".join(one.strip("‹› \n").split()) for one in record.get("says", []) if one.startswith("‹")]
    says = f" Arcs and text show a part and say which: {'; '.join(parts)}." if parts else ""
    lines = [f"### {record['n_tokens']:,} tokens", "", f"{facts}{says}", "", HEAD, *rows[:1], first, *rows[1:], ""]
    return "\n".join(lines)


def main() -> None:
    """Replace the tables."""
    records = json.loads((HERE / "page.json").read_text("utf-8"))
    text = (HERE / "README.md").read_text("utf-8")
    before, rest = text.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    tables = "\n".join(table(record) for _, record in sorted(records.items(), key=lambda one: one[1]["n_tokens"]))
    (HERE / "README.md").write_text(f"{before}{MARKS[0]}\n{tables}{MARKS[1]}{after}", "utf-8")


if __name__ == "__main__":
    main()
