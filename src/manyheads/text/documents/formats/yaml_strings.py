"""Tables of strings as YAML: values that are strings are translated; keys, comments, anchors and layout stay."""

import json
import re
from typing import Any

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.text.documents.document import (
    Document,
    DocumentFormat,
    DocumentOptions,
    Field,
    decode_text,
    divide,
    missing_library,
)
from manyheads.text.markup.string_segments import split_string

_STRING = "tag:yaml.org,2002:str"
_ANCHOR = re.compile(r"(?:[&!]\S*\s+)+")  # and tags
# What may be written without quotes: no indicator at the start, no ": " and no " #".
_PLAIN = re.compile(r"""(?![-?:,\[\]{}#&*!|>'"%@`\s])(?:[^\n:#]|:(?=\S)|(?<=\S)#)*(?<=[^\s:])\Z""")


class YamlStrings(DocumentFormat):
    """YAML files with one document or several."""

    suffixes = (".yaml", ".yml")

    def split(self, content: bytes, options: DocumentOptions) -> Document:
        """Divide a table of strings."""
        source = decode_text(content)
        fields = []
        for node in _strings(source.text):
            start, end = node.start_mark.index, node.end_mark.index
            anchor = _ANCHOR.match(source.text, start, end)
            start = anchor.end() if anchor else start
            written = source.text[start:end]
            markup = split_string(node.value, use_placeholders=options.use_placeholders)
            if markup.segments:
                fields.append(Field(start, end, markup, _Encoder(written, is_block=node.style in ("|", ">"))))
        return source.document(divide(source.text, fields))


def _strings(text: str) -> list[Any]:
    """Return the scalar nodes of values that are strings, in order. Aliases are not followed twice."""
    try:
        import yaml
    except ImportError:
        raise missing_library("PyYAML") from None
    try:
        pending = [node for node in yaml.compose_all(text, yaml.SafeLoader) if node is not None]
    except yaml.YAMLError as error:
        reason = " ".join(str(getattr(error, "problem", "") or error).split())
        line = getattr(getattr(error, "problem_mark", None), "line", 0) + 1
        raise DataError(_("It is not valid YAML in line {line} ({reason}).", line=line, reason=reason)) from None
    seen: set[int] = set()
    keys: set[int] = set()  # an anchor of a key may be used as a value
    found = []
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            keys.update(id(key) for key, _value in node.value)
            pending += [value for _key, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            pending += node.value
        elif node.tag == _STRING:
            found.append(node)
    return sorted((node for node in found if id(node) not in keys), key=lambda node: node.start_mark.index)


class _Encoder:
    """Writes a string in the style in which it was written, or in double quotes."""

    def __init__(self, written: str, *, is_block: bool) -> None:
        self.written, self.is_block = written, is_block

    def __call__(self, text: str) -> str:
        if self.is_block:
            return self._block(text)
        if self.written.startswith("'") and "\n" not in text:
            return "'" + text.replace("'", "''") + "'"
        if not self.written.startswith(('"', "'")) and _PLAIN.match(text) and not _is_other(text):
            return text
        return json.dumps(text, ensure_ascii=False)

    def _block(self, text: str) -> str:
        """Return a block scalar with the header and the indentation of the source."""
        header, _end, body = self.written.partition("\n")
        first = next((line for line in body.splitlines() if line.strip()), "")
        indentation = first[: len(first) - len(first.lstrip())]
        trailing = body[len(body.rstrip()) :]
        is_folded = header.startswith(">")
        lines = text.strip("\n").split("\n")
        joined = ("\n\n" if is_folded else "\n").join(f"{indentation}{line}" if line else "" for line in lines)
        return f"{header}\n{joined}{trailing}"


def _is_other(text: str) -> bool:
    """Return whether text without quotes would not be read as this string."""
    import yaml

    return yaml.safe_load(text) != text


FORMAT = YamlStrings()
