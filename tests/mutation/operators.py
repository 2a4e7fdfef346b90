"""Mutants of a Python file: small changes to its code, each of which a test should notice."""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_FLIPPED = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)  # changing the operator negates the comparison
# Dropping these cannot be noticed: an assertion that never fails, and what is the default on a CPU and under UTF-8.
_KEPT_KEYWORDS = ("strict", "device", "encoding")


@dataclass(frozen=True)
class Mutant:
    """One change to one file."""

    path: Path
    function: str  # qualified name of the outermost function around the change; "" outside of functions
    lines: range  # of the statement, up to the end of the change
    span: tuple[int, int]  # what is replaced, in bytes of the file
    before: str
    after: str
    count: int  # distinguishes equal changes in one function

    @property
    def name(self) -> str:
        """Identifies the mutant, also after lines were added above it."""
        place = "/".join(self.path.parts[-3:] if "native" in self.path.parts else self.path.parts[-2:])
        return f"{place} {self.function or '(module)'} #{self.count}: {self.before} → {self.after}"

    def apply(self, source: bytes) -> bytes:
        """The source of the file with the change."""
        start, end = self.span
        return source[:start] + self.after.encode() + source[end:]


def find_mutants(path: Path) -> Iterator[Mutant]:
    """Every mutant of a file, in the order of its lines."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    counts: dict[tuple[str, str, str], int] = {}
    for node, after, statement, function in _Changes().collect(ast.parse(source)):
        span = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        before = " ".join(source[slice(*span)].decode().split())
        key = function, before, after
        counts[key] = counts.get(key, 0) + 1
        lines = range(statement.lineno, node.end_lineno + 1)
        yield Mutant(path, function, lines, span, before, after, counts[key])


class _Changes(ast.NodeVisitor):
    """Collects (node, its replacement, the statement around it, the outermost function around it)."""

    def collect(self, tree: ast.Module) -> list[tuple[ast.AST, str, ast.stmt, str]]:
        self.found: list[tuple[ast.AST, str, ast.stmt, str]] = []
        self.scope: list[str] = []
        self.function = ""
        self.statement: ast.stmt = tree.body[0]
        self.returns_bool = False
        self.visit(tree)
        return self.found

    def add(self, node: ast.AST, **changes: object) -> None:
        """The same node with other fields."""
        changed = copy.copy(node)
        for field, value in changes.items():
            setattr(changed, field, value)
        text = ast.unparse(changed)
        self.replace(node, text if isinstance(node, ast.stmt | ast.Call) else f"({text})")

    def replace(self, node: ast.AST, after: str) -> None:
        self.found.append((node, after, self.statement, self.function))

    def negate(self, test: ast.expr) -> None:
        is_flipped_anyway = (isinstance(test, ast.Compare) and isinstance(test.ops[0], _FLIPPED)) or (
            isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        )
        if not is_flipped_anyway and not isinstance(test, ast.Constant):
            self.replace(test, f"(not ({ast.unparse(test)}))")

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.stmt):
            self.statement = node
        super().visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "decorator_list"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    outer = self.statement
                    self.visit(child)
                    self.statement = outer

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.visit(node.args)  # default values are evaluated outside of the function
        outer = self.function, self.returns_bool
        self.scope.append(node.name)
        self.function = self.function or ".".join(self.scope)
        self.returns_bool = isinstance(node.returns, ast.Name) and node.returns.id == "bool"
        for statement in node.body:
            self.visit(statement)
        self.scope.pop()
        self.function, self.returns_bool = outer

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.scope.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self.scope.pop()

    def visit_Compare(self, node: ast.Compare) -> None:
        for i, operator in enumerate(node.ops):
            self.add(node, ops=[*node.ops[:i], _COMPARISONS[type(operator)](), *node.ops[i + 1 :]])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if type(node.op) in _ARITHMETIC and not any(_is_text(side) for side in (node.left, node.right)):
            self.add(node, op=_ARITHMETIC[type(node.op)]())
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) in _ARITHMETIC:
            self.add(node, op=_ARITHMETIC[type(node.op)]())
        self.replace(node, "pass")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self.add(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        self.replace(node, f"({ast.unparse(node.operand)})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self.replace(node, str(not node.value))
        elif isinstance(node.value, int):
            self.replace(node, str(node.value + 1))
        elif isinstance(node.value, float):
            self.replace(node, str(node.value * 2 or 1.0))

    def visit_If(self, node: ast.If) -> None:
        self.negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self.negate(test)
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and self.returns_bool:
            self.negate(node.value)
        elif node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self.replace(node, "return None")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        for i, keyword in enumerate(node.keywords):
            if keyword.arg not in _KEPT_KEYWORDS:
                self.add(node, keywords=[*node.keywords[:i], *node.keywords[i + 1 :]])
        if len(node.args) > 1:
            self.add(node, args=node.args[:-1])
        self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in _KEPT_KEYWORDS:
            self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self.replace(node, "pass")
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self.replace(node, "pass")
        if isinstance(node.exc, ast.Call):  # the arguments are a message
            return
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if any(isinstance(target, ast.Name) and target.id.startswith("__") for target in node.targets):
            return
        if all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            self.replace(node, "pass")
        self.generic_visit(node)

    def visit_Break(self, node: ast.Break) -> None:
        self.replace(node, "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        self.replace(node, "break")

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave formatted texts as they are: they are messages."""


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
