"""Generated code: it agrees with an interpreter, never crashes, and has no access to Python."""

import re
from types import CodeType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.api import devices as model
from kubestow.api.cel import CelError, CompileError, EvaluationError, Program
from kubestow.api.cel.generator import generate
from kubestow.api.cel.selectors import Device, Selector, environment
from kubestow.api.cel.values import type_name
from support.cel.expressions import compiled, outcome
from support.cel.interpreter import interpret

VARIABLES: dict[str, Any] = {"n": 3, "t": True, "s": "ab", "l": [1, 2, 0], "m": {"a": 1, "b": "x"}, "z": None}


LEAVES = {
    "int": ["0", "1", "-1", "9223372036854775807", "-9223372036854775808", "n"],
    "bool": ["true", "false", "t"],
    "text": ["''", "'a'", "'ab'", "s"],
    "list": ["[1, 2]", "[]", "l", "[0]"],
    "dyn": ["m.a", "m.b", "m.c", "m['a']", "dyn(1)", "dyn('a')", "dyn(1.0)", "z", "dyn(2u)", "l[1]", "l[9]"],
}
EVERY = ["{bool} ? {same} : {same}", "cel.bind(x, {int}, {same:x})", "cel.bind(y, {int}, {same:y})", "{dyn}"]
SHAPES = {
    "int": [
        *(f"{{int}} {operator} {{int}}" for operator in "+-*/%"),
        "-{int}",
        "size({list})",
        "{list}[{int}]",
        "{text}.size()",
    ],
    "bool": [
        "{bool} && {bool} && {bool}",
        "{bool} || {bool}",
        "!{bool}",
        *(
            f"{{{kind}}} {order} {{{kind}}}"
            for kind in ("int", "text", "dyn", "bool")
            for order in ("<", ">=", "==", "!=")
        ),
        "{int} in {list}",
        *(f"{{list}}.{macro}(x, {{bool:x}})" for macro in ("all", "exists", "exists_one")),
        "has(m.a)",
    ],
    "text": ["{text} + {text}", "string({int})", "{text}.charAt({int})"],
    "list": [
        "[{int}]",
        "[dyn({int}), dyn({dyn})]",
        "{list} + {list}",
        "{list}.map(x, {int:x})",
        "{list}.map(y, {int:y})",
        "{list}.filter(x, {bool:x})",
        "{list}.transformList(x, y, {int:y})",
    ],
    "dyn": ["dyn({int})", "dyn({bool})", "dyn({list})", "{dyn} + {dyn}", "{dyn} / {dyn}", "{dyn}[{dyn}]"],
}


@st.composite
def expressions(draw: st.DrawFn, kind: str, depth: int, names: tuple[str, ...] = ()) -> str:
    """Return an expression of a kind that type checking accepts; `names` are int variables."""
    if depth <= 0:
        return draw(st.sampled_from([*LEAVES[kind], *(names if kind == "int" else ())]))

    def part(place: re.Match[str]) -> str:
        wanted = kind if place[1] == "same" else place[1]
        return f"({draw(expressions(wanted, depth - 1, (*names, *(place[2] or ''))))})"

    shape = draw(st.sampled_from([*SHAPES[kind], *EVERY, *LEAVES[kind]]))
    return re.sub(r"\{(\w+)(?::(\w))?\}", part, shape) if shape not in LEAVES[kind] else shape


def described(result: object) -> str:
    """Return a value with its type, or an error without the arguments for which it found no overload."""
    if isinstance(result, EvaluationError):
        return f"error: {str(result).split(':')[0]}"
    return f"{type_name(result)}: {result!r}"


@settings(max_examples=200)
@given(st.data())
def test_results_equal_those_of_the_interpreter(data: st.DataObject) -> None:
    """The fast function, the careful one and the interpreter return the same value or raise the same error."""
    source = data.draw(expressions(data.draw(st.sampled_from(list(SHAPES))), 4))
    program = compiled(source, **VARIABLES)
    values = list(VARIABLES.values())
    expected = described(outcome(lambda: interpret(source, **VARIABLES)))
    assert described(outcome(program.evaluate, *values)) == expected
    assert described(outcome(program._evaluate_carefully, Exception(), *values)) == expected


PUNCTUATION = ". ? : , && || ! - + * / % == != < <= > >= in [ ] ( ) { } .? [?"
LITERALS = """1 2u 0.5 -9223372036854775808 "a" 'b' b"c" true false null "(" "%s" device.attributes["a"].b"""
NAMES = """device driver attributes capacity has all exists exists_one map filter cel bind optional of none value x y
size string int quantity semver ip cidr url format lists range sets contains matches dyn type timestamp duration orValue
transformMap sortBy sum join split"""
WORDS = st.sampled_from([*PUNCTUATION.split(), *LITERALS.split(), *NAMES.split()])
DEVICE = Device("a", model.Device(attributes={"b": model.DeviceAttribute(integer=1)}))


def compile_and_evaluate(source: str) -> None:
    """Compile and evaluate an expression; only a CelError may be raised."""
    try:
        Selector(source).matches(DEVICE)
    except CelError:
        pass


@settings(max_examples=150)
@given(st.text(max_size=60))
def test_any_text_is_an_expression_or_an_error(source: str) -> None:
    """Random characters."""
    compile_and_evaluate(source)


@settings(max_examples=250)
@given(st.lists(WORDS, max_size=25))
def test_any_tokens_are_an_expression_or_an_error(words: list[str]) -> None:
    """Random tokens of the language."""
    compile_and_evaluate(" ".join(words))


@settings(max_examples=150)
@given(st.data())
def test_any_change_of_an_expression_is_an_expression_or_an_error(data: st.DataObject) -> None:
    """A valid expression with some characters removed, doubled or replaced."""
    source = list(data.draw(expressions("bool", 3)))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, max(len(source) - 1, 0)))
        source[place : place + 1] = data.draw(st.sampled_from([[], ["("], ["."], ["'"], ["["], ["9"], ["\\"], ["é"]]))
    compile_and_evaluate("".join(source))


@pytest.mark.parametrize(
    "source",
    [
        "__import__",
        "__builtins__",
        "__import__('os')",
        "budget",
        "Budget",
        "k0",
        "v0",
        "x0",
        "evaluate",
        "True",
        "None",
        "device.__class__",
        "device.fields",
        "lambda",
        "print(1)",
        "[].append(1)",
        "'a'.format_map({})",
        "'a'.__len__()",
        "@sorted",
        "@optional",
        "_+_",
        "device._fast",
    ],
)
def test_python_names_are_undeclared(source: str) -> None:
    """Neither builtins nor names of the generated code nor attributes of values can be accessed."""
    with pytest.raises(CompileError):
        Selector(source)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("{'__class__': 1}.__class__", 1),
        ("[1].map(__import__, __import__ + 1)", [2]),
        ("cel.bind(budget, 1, budget + 1)", 2),
        ("cel.bind(x0, 5, x0)", 5),
        ("[1].exists(lambda, true)", True),
        ("[7].map(k0, [1].map(v0, k0))", [[7]]),
        ("'{0.__class__}'", "{0.__class__}"),
        ('"\\"); import os; (\\""', '"); import os; ("'),
        ("'%s'.format(['{x}'])", "{x}"),
        ("cel.bind(None, 1, None)", 1),
    ],
)
def test_python_names_are_valid_variables(source: str, value: object) -> None:
    """Variables may have any name; texts stay texts."""
    assert compiled(source).evaluate() == value


def names_in(code: CodeType) -> set[str]:
    """Return all names that a function, or one nested in it, uses: variables, globals and attributes."""
    inner = [names_in(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return {*code.co_names, *code.co_varnames, *code.co_cellvars, *code.co_freevars}.union(*inner)


@given(st.from_regex(r"\A_*[A-Za-z][A-Za-z0-9_]{0,12}\Z").filter(lambda name: name not in VARIABLES))
@settings(max_examples=30)
def test_the_code_contains_no_name_of_the_expression(name: str) -> None:
    """Variables are numbered; the only attribute is the class of a value."""
    try:
        program = compiled(f"[1, 2].map({name}, cel.bind(a{name}, {name} + n, a{name} > 1 && t))", **VARIABLES)
    except CompileError:
        return  # a reserved word
    for careful in (False, True):
        function = generate(program.tree, program._environment, careful=careful)
        names = names_in(function.__code__) - {"budget", "Budget", "__class__"}
        assert all(re.fullmatch("[xvk][0-9]+", used) for used in names)


def test_the_code_has_no_builtins() -> None:
    """Its namespace has an empty `__builtins__`."""
    program = Program("true", environment())
    function = generate(program.tree, environment(), careful=True)
    assert function.__globals__["__builtins__"] == {}
