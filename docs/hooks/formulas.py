"""Formulas: LaTeX in the pages becomes MathML in the site, which browsers set without a script or a font of ours.

The subset of LaTeX is that of the pages; anything else is an error of the build. Inline formulas are written
$…$, others as a fenced block of the language `math`; GitHub shows both.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape, unescape
from typing import Any

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
_TOKEN = re.compile(
    r"\\(?:text|mathrm|mathcal|begin|end)\{[^}]*\}|\\[A-Za-z]+|\\.|[0-9]+(?:[.,][0-9]+)*|[^\s]",
)
_LETTERS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "varepsilon": "ε", "mu": "μ", "sigma": "σ", "infty": "∞", "top": "⊤",
}  # fmt: skip
_OPERATORS = {
    "cdot": "⋅", "times": "×", "ne": "≠", "odot": "⊙", "leftarrow": "←", "ldots": "…", "mid": "∣",
    "-": "−", "*": "∗",
}  # fmt: skip
_FUNCTIONS = ("max", "min", "log", "exp", "sin", "cos")
_SPACES = {",": "0.17em", ";": "0.28em", "quad": "1em"}
_FENCES = "()[]|"


class FormulaError(ValueError):
    """A formula that cannot be set."""


def on_page_content(html: str, **_: Any) -> str:
    """Set the formulas of a page."""
    return _FORMULA.sub(lambda found: mathml(unescape(found[2]), is_block=found[1] == "div"), html)


def mathml(latex: str, *, is_block: bool) -> str:
    """Return a formula as a `math` element, or a block of them: on a narrow screen it is broken at every \\qquad."""
    latex = " ".join(latex.split())
    if not is_block:
        return f'<math alttext="{escape(latex)}">{_Parser(latex, is_block).formula()}</math>'
    parts = (part.strip() for part in latex.split(r"\qquad"))
    made = (f'<math display="block" alttext="{escape(one)}">{_Parser(one, is_block).formula()}</math>' for one in parts)
    return f'<div class="formula" tabindex="0">{"".join(made)}</div>'


@dataclass
class _Parser:
    latex: str
    is_block: bool
    tokens: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.tokens = _TOKEN.findall(self.latex)[::-1]  # the next one is the last

    def formula(self) -> str:
        row = self._row()
        if self.tokens:
            raise FormulaError(f"{self.tokens[-1]} without its beginning in the formula {self.latex}")
        return row

    def _row(self, *ends: str) -> str:
        """Everything up to one of these tokens, which stays."""
        return f"<mrow>{''.join(self._atoms(ends))}</mrow>"

    def _atoms(self, ends: tuple[str, ...]) -> Iterator[str]:
        while self.tokens and self.tokens[-1] not in (*ends, "}", "\\right", "\\end{cases}"):
            is_sum = self.tokens[-1] == "\\sum"
            yield self._with_scripts(self._atom(), above=is_sum and self.is_block)

    def _with_scripts(self, base: str, *, above: bool) -> str:
        scripts: dict[str, str] = {}
        while self.tokens and self.tokens[-1] in ("^", "_"):
            mark = self.tokens.pop()
            scripts[mark] = self._atom()
        kind = "".join(sorted(scripts, reverse=True))
        names = {"_": ("msub", "munder"), "^": ("msup", "mover"), "_^": ("msubsup", "munderover"), "": ("", "")}
        name = names[kind][above]
        return f"<{name}>{base}{''.join(scripts[mark] for mark in kind)}</{name}>" if name else base

    def _atom(self) -> str:
        token = self._next()
        if token == "{":
            row = self._row()
            self._expect("}")
            return row
        if token.startswith("\\"):
            return self._command(token[1:])
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token.isalpha():
            return f"<mi>{token}</mi>"
        return self._operator(_OPERATORS.get(token, token))

    def _command(self, name: str) -> str:
        if name in _LETTERS:
            return f"<mi>{_LETTERS[name]}</mi>"
        if name in _OPERATORS:
            return self._operator(_OPERATORS[name])
        if name in _SPACES:
            return f'<mspace width="{_SPACES[name]}"/>'
        if name in _FUNCTIONS:
            space = "" if self.tokens and self.tokens[-1] in ("(", "\\left") else '<mspace width="0.17em"/>'
            return f"<mrow><mi>{name}</mi>{space}</mrow>"
        if name == "sum":
            return "<mo>∑</mo>"
        if name == "frac":
            return f"<mfrac>{self._atom()}{self._atom()}</mfrac>"
        if name == "sqrt":
            return f"<msqrt>{self._atom()}</msqrt>"
        if name == "left":
            opening, inner = self._next(), self._row()
            self._expect("\\right")
            return f"<mrow><mo>{opening}</mo>{inner}<mo>{self._next()}</mo></mrow>"
        if name == "Big":
            return f'<mo stretchy="true" minsize="2em">{self._next()}</mo>'
        kind, _, text = name.partition("{")
        text = escape(text.removesuffix("}"))
        if kind == "text":
            return f"<mtext>{text.replace(' ', chr(0xA0))}</mtext>"
        if kind == "mathrm":
            return f'<mi mathvariant="normal">{text}</mi>' if len(text) == 1 else f"<mi>{text}</mi>"
        if kind == "mathcal" and text == "N":
            return "<mi>𝒩</mi>"
        if name == "begin{cases}":
            return self._cases()
        raise FormulaError(f"\\{name} is not known, in the formula {self.latex}")

    def _cases(self) -> str:
        rows: list[list[str]] = [[]]
        while True:
            rows[-1].append(f"<mtd>{self._row('&', chr(92) * 2)}</mtd>")
            end = self._next()
            if end == "\\end{cases}":
                break
            if end == "\\\\":
                rows.append([])
        table = "".join(f"<mtr>{''.join(cells)}</mtr>" for cells in rows)
        return f'<mrow><mo>{{</mo><mtable columnalign="left" class="cases">{table}</mtable></mrow>'

    def _operator(self, sign: str) -> str:
        # Of a row with a fraction, only the parentheses of \left and \right grow.
        return f'<mo stretchy="false">{sign}</mo>' if sign in _FENCES else f"<mo>{escape(sign)}</mo>"

    def _next(self) -> str:
        if not self.tokens:
            raise FormulaError(f"The formula {self.latex} ends too early")
        return self.tokens.pop()

    def _expect(self, token: str) -> None:
        if (found := self._next()) != token:
            raise FormulaError(f"{token} expected instead of {found}, in the formula {self.latex}")
