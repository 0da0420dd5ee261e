"""Interpreter for the part of Python that rule files use: expressions and statements as closures, without exec.

Only values of messages, numbers, texts and lists exist; attributes, functions and methods are those listed here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from logreel.errors import LogError, UnsupportedError
from logreel.ops.migrate.types import Records, RuleError
from logreel.ops.migrate.vocabulary import (
    BINARY,
    CALLABLE,
    COMPARE,
    FUNCTIONS,
    METHODS,
    MODULES,
    UNARY,
    Constructor,
    as_list,
    attribute,
    method_of,
    set_attribute,
)

#: Most turns of loops and calls of methods for one message.
MAX_STEPS = 10_000_000
MAX_CALLS = 32

Expression = Callable[["Frame"], Any]
#: Runs a statement; returns None to go on, or why the statements after it are not run.
Statement = Callable[["Frame"], "object | None"]
_BREAK, _CONTINUE, _RETURN = object(), object(), object()


@dataclass(slots=True)
class Frame:
    """The state of one call of a method: local names, and what calls of one message share.

    self     value of ``self``: answers ``migrate`` and the other methods of rules
    budget   number of turns and calls that are left, in a list
    """

    self: Any
    names: dict[str, Any]
    budget: list[int]
    depth: int = 0
    result: Any = None

    def spend(self) -> None:
        """Count a turn of a loop or a call; raises RuleError if there were too many."""
        self.budget[0] -= 1
        if self.budget[0] < 0:
            raise RuleError(f"more than {MAX_STEPS} steps for one message")


@dataclass(slots=True)
class Method:
    """A method or function of a rule file; *body* is compiled when it is first read."""

    name: str
    parameters: tuple[str, ...]
    defaults: tuple[Any, ...]
    body: list[Statement] = field(default_factory=list)

    def call(self, receiver: Any, values: Sequence[Any], budget: list[int], depth: int = 0) -> Any:
        """Run the method and return its result; *values* do not contain ``self``."""
        missing = len(self.parameters) - len(values)
        if not 0 <= missing <= len(self.defaults):
            raise RuleError(f"{self.name} takes {len(self.parameters)} values, not {len(values)}")
        if depth > MAX_CALLS:
            raise RuleError(f"{self.name}: calls are nested more than {MAX_CALLS} deep")
        arguments = [*values, *self.defaults[len(self.defaults) - missing :]]
        frame = Frame(receiver, dict(zip(self.parameters, arguments, strict=True)), budget, depth)
        frame.spend()
        run(self.body, frame)
        return frame.result


def run(body: Sequence[Statement], frame: Frame) -> object | None:
    """Run statements until one returns a reason to stop, which is returned."""
    for statement in body:
        why = statement(frame)
        if why is not None:
            return why
    return None


# ----------------------------------------------------------------------------------------------- compiling


@dataclass
class Compiler:
    """Compiles the functions of one rule file.

    file       name of the file, for error texts
    globals    names of the module: imported modules, functions and constants
    own        methods of the class that is compiled, by name
    constants  attributes of the class, by name
    services   names that ``self`` answers itself, such as ``migrate``
    """

    file: str
    globals: dict[str, Any]
    services: frozenset[str] = frozenset()
    own: Mapping[str, Method] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)

    def unsupported(self, node: ast.AST, what: str = "") -> UnsupportedError:
        """Return the error for a construct that is not read."""
        text = what or type(node).__name__
        line = getattr(node, "lineno", 0)
        return UnsupportedError(
            f"line {line}: {text} is not read; rules are assignments, conditions, loops over lists, and calls of "
            "self.migrate, self.migrate_array and self.get_new_class",
            path=self.file,
        )

    def method(self, node: ast.FunctionDef, is_method: bool = True) -> Method:
        """Return a method without its body, which ``fill`` compiles."""
        args = node.args
        if args.vararg or args.kwarg or args.kwonlyargs or args.posonlyargs or node.decorator_list:
            raise self.unsupported(node, f"{node.name} with arguments of this kind")
        names = [argument.arg for argument in args.args]
        if is_method and not names:
            raise self.unsupported(node, f"{node.name} without self")
        defaults = tuple(self.constant(argument) for argument in args.defaults)
        return Method(node.name, tuple(names[1:] if is_method else names), defaults)

    def constant(self, node: ast.expr) -> Any:
        """Return the value of an expression that needs no message."""
        try:
            return self.expression(node)(Frame(None, {}, [MAX_STEPS]))
        except LogError as error:
            if isinstance(error, UnsupportedError):
                raise
            raise self.unsupported(node, f"{ast.unparse(node)[:60]}: {error.text}") from None
        except _ERRORS as error:
            raise self.unsupported(node, f"{ast.unparse(node)[:60]}: {error}") from None

    def body(self, nodes: Sequence[ast.stmt]) -> list[Statement]:
        """Return compiled statements."""
        statements = []
        for node in nodes:
            statement = self._statement(node)
            if statement is not None:
                statements.append(self._located(node, statement))
        return statements

    def _located(self, node: ast.stmt, statement: Statement) -> Statement:
        """Return *statement* with its line in errors."""
        place = f"{self.file}, line {node.lineno}"

        def located(frame: Frame) -> object | None:
            try:
                return statement(frame)
            except RuleError as error:
                if error.offset is None and not error.text.startswith(self.file):
                    raise RuleError(f"{place}: {error.text}") from None
                raise
            except _ERRORS as error:
                raise RuleError(f"{place}: {type(error).__name__}: {error}") from None

        return located

    def import_names(self, node: ast.Import | ast.ImportFrom) -> Mapping[str, Any]:
        """Return the names that an import defines; only modules of ``MODULES`` are known."""
        imported: dict[str, Any] = {}
        for alias in node.names:
            if isinstance(node, ast.Import):
                top = alias.name.partition(".")[0]
                if top not in MODULES:
                    raise self.unsupported(node, f"import {alias.name}")
                imported[alias.asname or top] = MODULES.get(alias.name if alias.asname else top, MODULES[top])
            elif node.module in MODULES and alias.name in MODULES[node.module]:
                imported[alias.asname or alias.name] = MODULES[node.module][alias.name]
            elif node.module and f"{node.module}.{alias.name}" in MODULES:
                imported[alias.asname or alias.name] = MODULES[f"{node.module}.{alias.name}"]
            else:
                raise self.unsupported(node, f"import {alias.name} from {node.module}")
        return imported

    def _statement(self, node: ast.stmt) -> Statement | None:
        match node:
            case ast.Pass():
                return None
            case ast.Expr(value=ast.Constant()):
                return None
            case ast.Expr(value=value):
                return _evaluating(self.expression(value))
            case ast.Import() | ast.ImportFrom():
                return _naming(self.import_names(node))
            case ast.Assign(targets=targets, value=value):
                return _assigning(self.expression(value), [self._target(assigned) for assigned in targets])
            case ast.AugAssign(target=target, op=op, value=value):
                reading = self.expression(_as_load(target))
                changed = _combining(BINARY[type(op)], reading, self.expression(value))
                return _assigning(changed, [self._target(target)])
            case ast.If(test=test, body=body, orelse=orelse):
                return _branching(self.expression(test), self.body(body), self.body(orelse))
            case ast.For(target=target, iter=values, body=body, orelse=[]):
                return _looping(self._target(target), self.expression(values), self.body(body))
            case ast.Return(value=value):
                return _returning(None if value is None else self.expression(value))
            case ast.Break():
                return lambda frame: _BREAK
            case ast.Continue():
                return lambda frame: _CONTINUE
            case ast.Assert(test=test, msg=msg):
                why = None if msg is None else self.expression(msg)
                return _asserting(self.expression(test), why, ast.unparse(test)[:80])
            case ast.Raise(exc=exc):
                return _failing(None if exc is None else ast.unparse(exc)[:200])
            case _:
                raise self.unsupported(node)

    def _target(self, node: ast.expr) -> Callable[[Frame, Any], None]:
        """Return a function that assigns a value to a name, a field, an item, or several of them."""
        match node:
            case ast.Name(id=name):
                return lambda frame, value: frame.names.__setitem__(name, value)
            case ast.Attribute(value=owner, attr=attr):
                of = self.expression(owner)
                return lambda frame, value: set_attribute(of(frame), attr, value)
            case ast.Subscript(value=owner, slice=at):
                of, key = self.expression(owner), self.expression(at)
                return lambda frame, value: _set_item(of(frame), key(frame), value)
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                return _unpacking([self._target(element) for element in elts])
            case _:
                raise self.unsupported(node, f"an assignment to {type(node).__name__}")

    def expression(self, node: ast.expr) -> Expression:
        """Return a compiled expression."""
        match node:
            case ast.Constant(value=value):
                if isinstance(value, complex) or value is ...:
                    raise self.unsupported(node, repr(value))
                return lambda frame: value
            case ast.Name(id=name):
                return self._name(node, name)
            case ast.Attribute(value=owner, attr=attr):
                known = self._known(node)
                if known is not None:
                    return lambda frame: known[0]
                of = self.expression(owner)
                return lambda frame: attribute(of(frame), attr)
            case ast.Subscript(value=owner, slice=at):
                of, key = self.expression(owner), self.expression(at)
                return lambda frame: of(frame)[key(frame)]
            case ast.Slice(lower=lower, upper=upper, step=step):
                edges = [
                    None if element is None else self.expression(element) for element in (lower, upper, step)
                ]
                return lambda frame: slice(
                    *(None if element is None else element(frame) for element in edges)
                )
            case ast.List(elts=elts):
                items = [self.expression(element) for element in elts]
                return lambda frame: [element(frame) for element in items]
            case ast.Tuple(elts=elts):
                items = [self.expression(element) for element in elts]
                return lambda frame: tuple(element(frame) for element in items)
            case ast.Dict(keys=keys, values=values) if all(key is not None for key in keys):
                pairs = [
                    (self.expression(key), self.expression(value))
                    for key, value in zip(keys, values, strict=True)
                    if key is not None
                ]
                return lambda frame: {key(frame): value(frame) for key, value in pairs}
            case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY:
                return _combining(BINARY[type(op)], self.expression(left), self.expression(right))
            case ast.UnaryOp(op=op, operand=operand):
                change, of = UNARY[type(op)], self.expression(operand)
                return lambda frame: change(of(frame))
            case ast.BoolOp(op=op, values=values):
                return _joining(isinstance(op, ast.And), [self.expression(element) for element in values])
            case ast.Compare(left=left, ops=ops, comparators=others):
                steps = [(COMPARE[type(op)], self.expression(o)) for op, o in zip(ops, others, strict=True)]
                return _comparing(self.expression(left), steps)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                test_, yes, no = (self.expression(element) for element in (test, body, orelse))
                return lambda frame: yes(frame) if test_(frame) else no(frame)
            case ast.ListComp(elt=elt, generators=parts) | ast.GeneratorExp(elt=elt, generators=parts):
                return self._listing(elt, parts)
            case ast.Call():
                return self._call(node)
            case _:
                raise self.unsupported(node)

    def _name(self, node: ast.expr, name: str) -> Expression:
        known, places = self.globals, (FUNCTIONS,)

        def look_up(frame: Frame) -> Any:
            if name in frame.names:
                return frame.names[name]
            if name == "self" and frame.self is not None:
                return frame.self
            if name in known:
                return known[name]
            for place in places:
                if name in place:
                    return place[name]
            raise RuleError(f"the name {name!r} is not known")

        return look_up

    def _known(self, node: ast.expr) -> tuple[Any] | None:
        """Return the value of ``self.constant``, ``self.method`` or ``module.name`` if it is known, as a 1-tuple."""
        names = []
        inner = node
        while isinstance(inner, ast.Attribute):
            names.append(inner.attr)
            inner = inner.value
        if not isinstance(inner, ast.Name):
            return None
        path = ".".join(reversed(names))
        if inner.id == "self":
            if path in self.constants:
                return (self.constants[path],)
            return (self.own[path],) if path in self.own else None
        module = self.globals.get(inner.id, MODULES.get(inner.id))
        return (module[path],) if isinstance(module, Mapping) and path in module else None

    def _call(self, node: ast.Call) -> Expression:
        if node.keywords:
            raise self.unsupported(node, f"{ast.unparse(node.func)[:60]} with named arguments")
        if any(isinstance(argument, ast.Starred) for argument in node.args):
            raise self.unsupported(node, "an argument with *")
        arguments = [self.expression(argument) for argument in node.args]
        func = node.func
        if isinstance(func, ast.Attribute) and self._known(func) is None:
            owner, name = func.value, func.attr
            if isinstance(owner, ast.Name) and owner.id == "self":
                if name not in self.services:
                    raise self.unsupported(node, f"self.{name}")
                return lambda frame: getattr(frame.self, name)(*(argument(frame) for argument in arguments))
            of = self.expression(owner)
            if not any(name in methods for _, methods in METHODS):
                raise self.unsupported(node, f"the method {name}")
            return _calling_method(of, name, arguments)
        return _calling(self.expression(func), arguments)

    def _listing(self, elt: ast.expr, parts: Sequence[ast.comprehension]) -> Expression:
        item = self.expression(elt)
        loops = []
        for part in parts:
            if part.is_async:
                raise self.unsupported(part, "async")
            tests = [self.expression(condition) for condition in part.ifs]
            loops.append((self._target(part.target), self.expression(part.iter), tests))

        def fill(frame: Frame, level: int, out: list[Any]) -> None:
            if level == len(loops):
                out.append(item(frame))
                return
            put, values, tests = loops[level]
            for element in values(frame):
                frame.spend()
                put(frame, element)
                if all(test(frame) for test in tests):
                    fill(frame, level + 1, out)

        def listing(frame: Frame) -> list[Any]:
            # The names of a comprehension are its own.
            inner = Frame(frame.self, dict(frame.names), frame.budget, frame.depth)
            out: list[Any] = []
            fill(inner, 0, out)
            return out

        return listing


#: Errors of values that do not fit an operation.
_ERRORS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)


def _as_load(node: ast.expr) -> ast.expr:
    """Return the target of ``a += b`` as an expression."""
    match node:
        case ast.Name(id=name):
            load: ast.expr = ast.Name(name, ast.Load())
        case ast.Attribute(value=value, attr=attr):
            load = ast.Attribute(value, attr, ast.Load())
        case ast.Subscript(value=value, slice=at):
            load = ast.Subscript(value, at, ast.Load())
        case _:
            load = node
    return ast.copy_location(load, node)


def _set_item(owner: Any, key: Any, value: Any) -> None:
    if not isinstance(owner, list | dict | Records):
        raise RuleError(f"an item of {type(owner).__name__} cannot be set")
    owner[key] = value


def _evaluating(value: Expression) -> Statement:
    def evaluate(frame: Frame) -> None:
        value(frame)

    return evaluate


def _naming(names: Mapping[str, Any]) -> Statement:
    return lambda frame: frame.names.update(names)


def _assigning(value: Expression, targets: Sequence[Callable[[Frame, Any], None]]) -> Statement:
    if len(targets) == 1:
        target = targets[0]
        return lambda frame: target(frame, value(frame))

    def assign(frame: Frame) -> None:
        result = value(frame)
        for put in targets:
            put(frame, result)

    return assign


def _unpacking(targets: Sequence[Callable[[Frame, Any], None]]) -> Callable[[Frame, Any], None]:
    def unpack(frame: Frame, value: Any) -> None:
        items = as_list(value)
        if len(items) != len(targets):
            raise RuleError(f"{len(items)} values for {len(targets)} names")
        for put, item in zip(targets, items, strict=True):
            put(frame, item)

    return unpack


def _combining(combine: Callable[[Any, Any], Any], left: Expression, right: Expression) -> Expression:
    return lambda frame: combine(left(frame), right(frame))


def _branching(test: Expression, body: Sequence[Statement], orelse: Sequence[Statement]) -> Statement:
    return lambda frame: run(body if test(frame) else orelse, frame)


def _looping(
    target: Callable[[Frame, Any], None], values: Expression, body: Sequence[Statement]
) -> Statement:
    def loop(frame: Frame) -> object | None:
        for item in values(frame):
            frame.spend()
            target(frame, item)
            why = run(body, frame)
            if why is _BREAK:
                break
            if why is _RETURN:
                return why
        return None

    return loop


def _returning(value: Expression | None) -> Statement:
    def give(frame: Frame) -> object:
        frame.result = None if value is None else value(frame)
        return _RETURN

    return give


def _asserting(test: Expression, why: Expression | None, text: str) -> Statement:
    def check(frame: Frame) -> None:
        if not test(frame):
            raise RuleError(str(why(frame)) if why is not None else f"not {text}")

    return check


def _failing(text: str | None) -> Statement:
    def fail(frame: Frame) -> None:
        raise RuleError(text or "the rule raises an error")

    return fail


def _joining(both: bool, values: Sequence[Expression]) -> Expression:
    def join(frame: Frame) -> Any:
        result = None
        for operand in values:
            result = operand(frame)
            if bool(result) is not both:
                break
        return result

    return join


def _comparing(
    left: Expression, steps: Sequence[tuple[Callable[[Any, Any], bool], Expression]]
) -> Expression:
    def compare(frame: Frame) -> bool:
        before = left(frame)
        for holds, other in steps:
            value = other(frame)
            if not holds(before, value):
                return False
            before = value
        return True

    return compare


def _calling(function: Expression, arguments: Sequence[Expression]) -> Expression:
    def call(frame: Frame) -> Any:
        called = function(frame)
        values = [argument(frame) for argument in arguments]
        frame.spend()
        if isinstance(called, Method):
            return called.call(frame.self, values, frame.budget, frame.depth + 1)
        if not isinstance(called, Constructor) and called not in CALLABLE:
            raise RuleError(f"{called!r:.40} is no function")
        return called(*values)

    return call


def _calling_method(of: Expression, name: str, arguments: Sequence[Expression]) -> Expression:
    def call(frame: Frame) -> Any:
        owner = of(frame)
        method = method_of(owner, name)
        if method is None:
            raise RuleError(f"{type(owner).__name__} has no method {name!r}")
        frame.spend()
        return method(owner, *(argument(frame) for argument in arguments))

    return call
