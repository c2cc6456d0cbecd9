"""Evaluating expressions in tests: by both functions that are generated, which must agree."""

from typing import Any

import pytest

from kubestow.api.cel import CompileError, Environment, EvaluationError, Program
from kubestow.api.cel.library import KUBERNETES
from kubestow.api.cel.types import DYN


def compiled(source: str, **variables: Any) -> Program:
    """The expression, with variables of which nothing is known."""
    return Program(source, Environment(KUBERNETES, dict.fromkeys(variables, DYN)))


def evaluate(source: str, **variables: Any) -> Any:
    """The value; the fast and the careful function must agree about it, or about the error."""
    program = compiled(source, **variables)
    fast = outcome(program.evaluate, *variables.values())
    careful = outcome(program._evaluate_carefully, Exception(), *variables.values())
    assert repr(fast) == repr(careful)
    if isinstance(fast, EvaluationError):
        raise fast
    return fast


def outcome(function: Any, *args: Any) -> Any:
    """What a function returns, or the EvaluationError it raises."""
    try:
        return function(*args)
    except EvaluationError as error:
        return error


def failure(source: str, **variables: Any) -> str:
    """The message of the error that evaluating an expression ends with."""
    with pytest.raises(EvaluationError) as raised:
        evaluate(source, **variables)
    return str(raised.value)


def late(conversion: str) -> str:
    """A conversion that is not evaluated before it has to be."""
    function, _, value = conversion.removesuffix(")").partition("(")
    return f"{function}(true ? {value} : {value})"


def complaint(source: str) -> str:
    """The message of the error that compiling an expression ends with."""
    with pytest.raises(CompileError) as raised:
        compiled(source)
    return str(raised.value)
