"""Parsing of YAML and JSON text like Kubernetes."""

from typing import Any

import pytest

from kubestow.config import ConfigError, Problem, document


def parse(text: str) -> Any:
    problems: list[Problem] = []
    tree = document.parse(text, problems)
    if problems:
        raise ConfigError(problems)
    return tree


def problems_of(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("yes", True),
        ("On", True),
        ("y", True),
        ("off", False),
        ("N", False),
        ("~", None),
        ("", None),
        ("NULL", None),
        ("017", 15),
        ("-017", -15),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b101", 5),
        ("1_000", 1000),
        ("+5", 5),
        ("089", 89),
        ("1e3", 1000),
        ("2.0", 2),
        (".5", 0.5),
        ("1e21", 1e21),
        ("18446744073709551615", 2**64 - 1),
        ("0o", "0o"),
        ("1:30", "1:30"),
        ("2001-01-01", "2001-01-01"),
        ("truE", "truE"),
        ("'yes'", "yes"),
        ('"17"', "17"),
        ("!!str 17", "17"),
        ("|\n  17", "17\n"),
    ],
)
def test_unquoted_scalars_have_the_types_of_kubernetes(word: str, value: Any) -> None:
    """Booleans, numbers and nulls follow the rules of Kubernetes' YAML library; quoted text is text."""
    parsed = parse(f"key: {word}\n")["key"]
    assert parsed == value
    assert type(parsed) is type(value)


def test_text_that_starts_with_a_brace_is_json() -> None:
    """`1.0` stays a decimal number, and YAML's flow style is not accepted."""
    assert parse('  {"a": 1.0, "b": [null, true]}') == {"a": 1.0, "b": [None, True]}
    assert isinstance(parse('{"a": 1.0}')["a"], float)
    assert problems_of("{a: b}")[0].startswith("not valid JSON: ")
    assert "NaN" in problems_of('{"a": NaN}')[0]
    assert problems_of('{"a": 1} x')[0].startswith("not valid JSON: ")


def test_only_the_first_document_is_read() -> None:
    """The text after `---` is ignored."""
    assert parse("---\na: 1\n---\n: [broken\n") == {"a": 1}


def test_an_empty_file_is_empty() -> None:
    """A file with nothing but comments has no value."""
    assert parse("") is None
    assert parse("# nothing\n") is None


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("a: 1\nb: 2\na: 3\n", ["a"]),
        ("p:\n- x: {k: 1, k: 2, k: 3}\n", ["p[0].x.k", "p[0].x.k"]),
        ('{"p": [{"y": 1, "z": {"k": 0, "k": 1}, "y": 2}]}', ["p[0].y", "p[0].z.k"]),
    ],
)
def test_every_repeated_key_is_a_problem_with_its_path(text: str, paths: list[str]) -> None:
    """A duplicate key is an error in YAML and in JSON."""
    assert problems_of(text) == [f"{path}: is given more than once" for path in paths]


def test_anchors_and_merge_keys_work() -> None:
    """An alias is replaced by its anchor; `<<` merges a mapping, over which the other keys take precedence."""
    text = "base: &b {x: 1, w: 2}\nlist: [&c {z: 9}]\none: {<<: *b, w: 3}\nboth: {<<: [*b, *c]}\ncopy: *b\n"
    parsed = parse(text)
    assert parsed["one"] == {"x": 1, "w": 3}
    assert parsed["both"] == {"x": 1, "w": 2, "z": 9}
    assert parsed["copy"] == {"x": 1, "w": 2}
    assert problems_of("a: {<<: 5}\n") == ["a.<<: must be a mapping or a list of mappings"]


def test_keys_become_text() -> None:
    """A key is text even if it looks like a number or a boolean."""
    assert parse("1: a\ntrue: b\n'2': c\n") == {"1": "a", "true": "b", "2": "c"}
    assert problems_of("a:\n  [1, 2]: x\n") == ["a: has a key that is a list or a mapping"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [1\n", "not valid YAML: line 2"),
        ("a: b: c\n", "not valid YAML: line 1"),
        ("\tkey: 1\n", "not valid YAML: line 1"),
        ("a: \x00\n", "not valid YAML: "),
        ("a: *nobody\n", "not valid YAML: line 1"),
        ("a: .nan\n", "a: .nan is not a number that JSON can represent"),
        ("a: &a [*a]\n", "not valid YAML: line 1: *a has no anchor before it, or refers to itself"),
        ("[" * 5000, "line 1: nested more than 200 levels deep"),
        ('{"a":' * 100_000, "nested too deeply"),
    ],
)
def test_syntax_errors_name_their_position(text: str, expected: str) -> None:
    """Text that is not YAML is one problem of one line."""
    (problem,) = problems_of(text)
    assert problem.startswith(expected)
    assert "\n" not in problem


def test_the_expansion_of_aliases_is_limited() -> None:
    """Aliases of aliases are limited, too."""
    text = "a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
        f"{name}: &{name} [{','.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcde", "bcdef", strict=True)
    )
    assert problems_of(text) == ["line 5: the aliases up to here expand to more than 100000 values"]
