"""Type checking: errors at compile time, with the messages of cel-go."""

import pytest

from kubestow.api.cel import Environment, Program
from kubestow.api.cel.library import KUBERNETES
from kubestow.api.cel.types import BOOL, INT, STRING, Kind, Type, list_of, map_of, parse_type
from support.cel.expressions import compile_error, compiled, evaluate


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("foo", "1:1: undeclared reference to 'foo' (in container '')"),
        ("foo(1)", "1:4: undeclared reference to 'foo' (in container '')"),
        ("'a'.foo()", "1:8: undeclared reference to 'foo' (in container '')"),
        ("1 + 'a'", "1:3: found no matching overload for '_+_' applied to '(int, string)'"),
        ("1 + 1u", "1:3: found no matching overload for '_+_' applied to '(int, uint)'"),
        ("1 == 'a'", "1:3: found no matching overload for '_==_' applied to '(int, string)'"),
        ("[1] == ['a']", "1:5: found no matching overload for '_==_' applied to '(list(int), list(string))'"),
        ("'a' < 1", "1:5: found no matching overload for '_<_' applied to '(string, int)'"),
        ("!1", "1:1: found no matching overload for '!_' applied to '(int)'"),
        ("-'a'", "1:1: found no matching overload for '-_' applied to '(string)'"),
        ("1 && true", "1:1: expected type 'bool' but found 'int'"),
        ("true || 'a'", "1:9: expected type 'bool' but found 'string'"),
        ("1 ? 2 : 3", "1:3: found no matching overload for '_?_:_' applied to '(int, int, int)'"),
        ("true ? 1 : 'a'", "1:6: found no matching overload for '_?_:_' applied to '(bool, int, string)'"),
        ("1 in ['a']", "1:3: found no matching overload for '@in' applied to '(int, list(string))'"),
        ("[1]['a']", "1:4: found no matching overload for '_[_]' applied to '(list(int), string)'"),
        ("{'a': 1}[1]", "1:9: found no matching overload for '_[_]' applied to '(map(string, int), int)'"),
        ("'a'.size(1)", "1:9: found no matching overload for 'size' applied to 'string.(int)'"),
        ("size()", "1:5: found no matching overload for 'size' applied to '()'"),
        ("1.foo", "1:2: type 'int' does not support field selection"),
        ("[1, 'a']", "1:5: expected type 'int' but found 'string'"),
        ("[1, dyn(2)]", "1:8: expected type 'int' but found 'dyn'"),
        ("{'a': 1, 2: 2}", "1:10: expected type 'string' but found 'int'"),
        ("{'a': 1, 'b': 'c'}", "1:15: expected type 'int' but found 'string'"),
        ("[null, 1]", "1:8: expected type 'null' but found 'int'"),
        ("duration('x')", "1:10: invalid duration argument"),
        ("timestamp('x')", "1:11: invalid timestamp argument"),
        ("'a'.matches('(')", "1:13: invalid matches argument"),
        ("quantity(1)", "1:9: found no matching overload for 'quantity' applied to '(int)'"),
        ("quantity('1') > quantity('2')", "'_>_' applied to '(kubernetes.Quantity, kubernetes.Quantity)'"),
        ("duration('1s') + 1", "1:16: found no matching overload for '_+_' applied to '(duration, int)'"),
        ("optional.of(1) + 1", "'_+_' applied to '(optional_type(int), int)'"),
        ("null + 1", "'_+_' applied to '(null, int)'"),
        ("type(1) + 1", "'_+_' applied to '(type(int), int)'"),
        ("ip('::1').isCanonical()", "undeclared reference to 'isCanonical'"),
    ],
)
def test_type_errors_are_reported(source: str, message: str) -> None:
    """The message has position, function and types."""
    assert message in compile_error(source)


def test_all_faults_are_reported_in_the_order_of_the_text() -> None:
    """One compilation reports several errors."""
    lines = compile_error("foo || bar ||\n 1").split("\n")
    assert [line for line in lines if "ERROR" in line] == [
        "compilation failed: ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')",
        "ERROR: <input>:1:8: undeclared reference to 'bar' (in container '')",
        "ERROR: <input>:2:2: expected type 'bool' but found 'int'",
    ]


def test_at_most_100_faults_are_reported() -> None:
    """A long expression does not cause a message of megabytes."""
    assert compile_error("||".join(["foo"] * 500)).count("ERROR") == 100


@pytest.mark.parametrize(
    ("source", "type_"),
    [
        ("1", "int"),
        ("[1]", "list(int)"),
        ("[]", "list(dyn)"),
        ("{}", "map(dyn, dyn)"),
        ("[[], [1]]", "list(list(int))"),
        ("{'a': [1u]}", "map(string, list(uint))"),
        ("true ? [] : ['a']", "list(string)"),
        ("true ? dyn(1) : 2", "dyn"),
        ("[1, 2].map(x, string(x))", "list(string)"),
        ("{'a': 1}.transformMap(k, v, k)", "map(string, string)"),
        ("optional.none().orValue(1)", "int"),
        ("{'a': 1}.?a", "optional(int)"),
        ("dyn([1])[0]", "dyn"),
        ("type(1)", "type(int)"),
        ("duration('1s') + duration('1s')", "duration"),
        ("timestamp(0) - timestamp(0)", "duration"),
        ("dyn(1) + dyn(2)", "dyn"),
        ("size(dyn(1))", "int"),
        ("[dyn(1), dyn('a')]", "list(dyn)"),
        ("'%s %d'.format(['a', dyn(1)])", "string"),
        ("format.named('uuid')", "optional(format)"),
        ("cel.bind(x, [1], x + [])", "list(int)"),
    ],
)
def test_the_type_of_an_expression(source: str, type_: str) -> None:
    """Type parameters are determined by the arguments."""
    assert compiled(source).type == parse_type(type_)


def test_declared_variables_and_structs_have_types() -> None:
    """Fields are checked, and only declared fields exist."""
    thing = Type(Kind.STRUCT, "example.Thing")
    environment = Environment(
        KUBERNETES,
        {"thing": thing, "names": list_of(STRING)},
        {"example.Thing": {"count": INT, "tags": map_of(STRING, BOOL)}},
    )
    program = Program("thing.count + size(names) > 2 && thing.tags.on", environment)
    assert program.type == BOOL
    assert program.evaluate({"count": 2, "tags": {"on": True}}, ["a"]) is True
    for source, message in {
        "thing.nope": "1:6: undefined field 'nope'",
        "thing.count.x": "type 'int' does not support field selection",
        "names[0] > 1": "found no matching overload for '_>_' applied to '(string, int)'",
        "thing == names": "'_==_' applied to '(example.Thing, list(string))'",
    }.items():
        with pytest.raises(Exception, match="compilation failed") as raised:
            Program(source, environment)
        assert message in str(raised.value)


@pytest.mark.parametrize(
    "source",
    [
        "type(1) == int",
        "type(1u) == uint",
        "type(1.0) == double",
        "type('') == string",
        "type(b'') == bytes",
        "type(true) == bool",
        "type(null) == null_type",
        "type([]) == list",
        "type({}) == map",
        "type(int) == type",
        "type(duration('1s')) == google.protobuf.Duration",
        "type(timestamp(0)) == .google.protobuf.Timestamp",
        "type(ip('::1')) == net.IP",
        "type(cidr('::/0')) == net.CIDR",
    ],
)
def test_types_are_values(source: str) -> None:
    """Types have names, some of which are qualified."""
    assert evaluate(source) is True


def test_a_variable_hides_a_type_but_not_a_function() -> None:
    """As in cel-go, functions and variables have separate namespaces."""
    assert evaluate("cel.bind(size, 3, size([size]))") == 1
    assert evaluate("cel.bind(int, 3, int)") == 3


def test_the_size_of_types_is_limited() -> None:
    """A type that doubles with each binding is rejected before it fills memory."""
    source = "a30.size() == 1"
    for step in range(30, 0, -1):
        source = f"cel.bind(a{step}, {{a{step - 1}: a{step - 1}}}, {source})"
    assert "expression recursion limit exceeded: 250" in compile_error(f"cel.bind(a0, {{1: 2}}, {source})")
