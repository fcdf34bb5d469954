"""Makes mutants of a module by rule: each differs from the source in one place."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import EnumMeta
from types import GenericAlias, ModuleType, UnionType
from typing import Any, Final, NamedTuple, TypeVar, get_origin

_OPPOSITES: Final[Mapping[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Lt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Gt, ast.Lt),
}
"""Its opposite, and for an order the bound that is off by one."""
_OTHERS: Final[Mapping[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_TWINS: Final = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}
T = TypeVar("T")
_UNTOUCHED: Final = frozenset({"annotation", "returns", "decorator_list", "type_comment", "bases"})
"""Fields of the syntax that say nothing of what a function does."""


class Mutant(NamedTuple):
    """One change, and what must be put in its place when it is planted."""

    module: str
    where: str
    """A function, ``Class.method``, or a constant of the module."""
    line: int
    says: str
    name: str
    """Names it for ever, as long as its own place is not rewritten."""
    source: ast.Module
    """All of the module, changed."""


class _Slot(NamedTuple):
    parent: ast.AST
    field: str
    number: int | None
    where: str

    def node(self) -> Any:
        held = getattr(self.parent, self.field)
        return held if self.number is None else held[self.number]

    def put(self, node: ast.AST) -> None:
        if self.number is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.number] = node


def mutants(module: ModuleType, text: str) -> Iterator[Mutant]:
    """All of one module, in the order of its source. Each is to be used before the next is asked for."""
    source = ast.parse(text)
    known = {**vars(builtins), **vars(module)}
    seen: dict[str, int] = {}
    for statement in source.body:
        where = _name_of(statement)
        if where is None or _is_of_types(known.get(where)):
            continue
        for slot in list(_slots(statement, where)):
            before = slot.node()
            for says, after in _changes(before, known):
                name = f"{slot.where}: {says}"
                seen[name] = number = seen.get(name, 0) + 1
                slot.put(ast.fix_missing_locations(ast.copy_location(after, before)))
                full = name if number == 1 else f"{name} ({number})"
                yield Mutant(module.__name__, slot.where, before.lineno, says, full, source)
            slot.put(before)


def _name_of(statement: ast.stmt) -> str | None:
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return statement.name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return None if name == "__all__" else name
        case _:
            return None


def _is_of_types(value: Any) -> bool:
    return isinstance(value, UnionType | GenericAlias | TypeVar) or get_origin(value) is not None


def _slots(node: ast.AST, where: str) -> Iterator[_Slot]:
    for field, value in ast.iter_fields(node):
        if field in _UNTOUCHED:
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or _is_passed_over(child, node, index):
                continue
            inner = where
            if isinstance(node, ast.ClassDef):
                if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                    continue
                inner = f"{where}.{child.name}"
            if hasattr(child, "lineno"):
                yield _Slot(node, field, index, inner)
            yield from _slots(child, inner)


def _is_passed_over(child: ast.AST, parent: ast.AST, index: int | None) -> bool:
    """Docstrings, words of sentences, and what no call ever comes to."""
    match child:
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id="assert_never"))) | ast.Assert():
            return True
        case ast.Subscript(value=ast.Name(id="Literal")):
            return True
        case ast.Constant() if isinstance(parent, ast.JoinedStr):
            return True
        case ast.Call(func=ast.Name(id="cast" | "TypeVar")):
            return True
        case _:
            return (
                isinstance(parent, ast.FormattedValue) and index is None and isinstance(child, ast.JoinedStr)
            )


Changes = Iterator[tuple[str, ast.AST]]


def _changes(node: ast.AST, known: Mapping[str, Any]) -> Changes:
    """What the rules make of one place: in words, and as syntax."""
    if isinstance(node, ast.Attribute):
        return _members(node, known)
    make = _RULES.get(type(node))
    return iter(()) if make is None else make(node)


def _comparisons(node: ast.Compare) -> Changes:
    for place, op in enumerate(node.ops):
        for other in _OPPOSITES[type(op)]:
            ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
            yield _told(node, ast.Compare(node.left, ops, node.comparators))


def _ands_and_ors(node: ast.BoolOp) -> Changes:
    yield _told(node, ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values))
    for left in _each_left_out(node.values):
        yield _told(node, left[0] if len(left) == 1 else ast.BoolOp(node.op, left))


def _nots(node: ast.UnaryOp) -> Changes:
    if isinstance(node.op, ast.Not):
        yield _told(node, node.operand)


def _signs(node: ast.BinOp) -> Changes:
    if type(node.op) in _OTHERS:
        yield _told(node, ast.BinOp(node.left, _OTHERS[type(node.op)](), node.right))


def _additions(node: ast.AugAssign) -> Changes:
    if type(node.op) in _OTHERS:
        yield _told(node, ast.AugAssign(node.target, _OTHERS[type(node.op)](), node.value))
    yield _told(node, ast.Pass())


def _statements(node: ast.Expr) -> Changes:
    if isinstance(node.value, ast.Call):
        yield _told(node, ast.Pass())


def _displays(node: ast.Set | ast.List) -> Changes:
    if isinstance(node, ast.List) and not isinstance(node.ctx, ast.Load):
        return
    for element, left in zip(node.elts, _each_left_out(node.elts), strict=True):
        if isinstance(node, ast.List):
            yield f"{ast.unparse(node)} without {ast.unparse(element)}", ast.List(left, ast.Load())
        elif left:
            yield f"{ast.unparse(node)} without {ast.unparse(element)}", ast.Set(left)


def _entries(node: ast.Dict) -> Changes:
    for place, key in enumerate(node.keys):
        keys, values = list(node.keys), list(node.values)
        del keys[place], values[place]
        name = "**" + ast.unparse(node.values[place]) if key is None else ast.unparse(key)
        yield f"a dictionary without {name}", ast.Dict(keys, values)


def _alternatives(node: ast.MatchOr) -> Changes:
    for left in _each_left_out(node.patterns):
        yield _told(node, left[0] if len(left) == 1 else ast.MatchOr(left))


def _each_left_out(nodes: Sequence[T]) -> Iterator[list[T]]:
    for place in range(len(nodes)):
        yield [*nodes[:place], *nodes[place + 1 :]]


def _told(before: ast.AST, after: ast.AST) -> tuple[str, ast.AST]:
    return f"{ast.unparse(before)} -> {ast.unparse(after)}", after


def _negated(node: ast.If | ast.While | ast.IfExp) -> Changes:
    test = node.test
    if isinstance(test, ast.Compare | ast.BoolOp | ast.Constant) or (
        isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    ):
        return
    other = ast.UnaryOp(ast.Not(), test)
    says = f"if {ast.unparse(test)} -> if {ast.unparse(other)}"
    if isinstance(node, ast.IfExp):
        yield says, ast.IfExp(other, node.body, node.orelse)
    elif isinstance(node, ast.If):
        yield says, ast.If(other, node.body, node.orelse)
    else:
        yield says, ast.While(other, node.body, node.orelse)


def _without_ifs(node: Any) -> Changes:
    for place, part in enumerate(node.generators):
        for number, test in enumerate(part.ifs):
            ifs = [*part.ifs[:number], *part.ifs[number + 1 :]]
            bare = ast.comprehension(part.target, part.iter, ifs, part.is_async)
            generators = [*node.generators[:place], bare, *node.generators[place + 1 :]]
            fields = {name: value for name, value in ast.iter_fields(node) if name != "generators"}
            yield (
                f"{ast.unparse(node)} without if {ast.unparse(test)}",
                type(node)(**fields, generators=generators),
            )


def _calls(node: ast.Call) -> Changes:
    if isinstance(node.func, ast.Name) and node.func.id in _TWINS:
        twin = _TWINS[node.func.id]
        # A list takes neither a key nor an order.
        keywords = [] if twin == "list" else node.keywords
        yield f"{ast.unparse(node)} with {twin}", ast.Call(ast.Name(twin, ast.Load()), node.args, keywords)
    for place, word in enumerate(node.keywords):
        if word.arg is not None:
            keywords = [*node.keywords[:place], *node.keywords[place + 1 :]]
            yield f"{ast.unparse(node.func)}() without {word.arg}=", ast.Call(node.func, node.args, keywords)


def _members(node: ast.Attribute, known: Mapping[str, Any]) -> Changes:
    kind = known.get(node.value.id) if isinstance(node.value, ast.Name) else None
    names = list(kind.__members__) if isinstance(kind, EnumMeta) else []
    if node.attr in names and len(names) > 1:
        other = names[(names.index(node.attr) + 1) % len(names)]
        yield f"{ast.unparse(node)} -> {other}", ast.Attribute(node.value, other, ast.Load())


def _constants(node: ast.Constant) -> Changes:
    value = node.value
    if isinstance(value, bool):
        yield _told(node, ast.Constant(not value))
    elif isinstance(value, int | float):
        yield _told(node, ast.Constant(value + 1))
    elif isinstance(value, str) and not any(map(str.isspace, value)):
        yield _told(node, ast.Constant("XX" + value))


_RULES: Final[Mapping[type[ast.AST], Callable[[Any], Changes]]] = {
    ast.Compare: _comparisons,
    ast.BoolOp: _ands_and_ors,
    ast.UnaryOp: _nots,
    ast.BinOp: _signs,
    ast.AugAssign: _additions,
    ast.Expr: _statements,
    ast.Set: _displays,
    ast.List: _displays,
    ast.Dict: _entries,
    ast.MatchOr: _alternatives,
    ast.If: _negated,
    ast.While: _negated,
    ast.IfExp: _negated,
    ast.ListComp: _without_ifs,
    ast.SetComp: _without_ifs,
    ast.DictComp: _without_ifs,
    ast.GeneratorExp: _without_ifs,
    ast.Call: _calls,
    ast.Constant: _constants,
}
