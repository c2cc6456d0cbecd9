"""Evaluation of expressions in tests with both generated functions, whose results must be equal."""

from typing import Any

import pytest

from kubestow.api.cel import CompileError, Environment, EvaluationError, Program
from kubestow.api.cel.library import KUBERNETES
from kubestow.api.cel.types import DYN


def compiled(source: str, **variables: Any) -> Program:
    """Compile an expression with dynamic variables."""
    return Program(source, Environment(KUBERNETES, dict.fromkeys(variables, DYN)))


def evaluate(source: str, **variables: Any) -> Any:
    """Return the value, which must be equal, or the same error, for the fast and the careful function."""
    program = compiled(source, **variables)
    fast = outcome(program.evaluate, *variables.values())
    careful = outcome(program._evaluate_carefully, Exception(), *variables.values())
    assert repr(fast) == repr(careful)
    if isinstance(fast, EvaluationError):
        raise fast
    return fast


def outcome(function: Any, *args: Any) -> Any:
    """Return the result of a function, or the EvaluationError that it raises."""
    try:
        return function(*args)
    except EvaluationError as error:
        return error


def failure(source: str, **variables: Any) -> str:
    """Return the message of the error of evaluating an expression."""
    with pytest.raises(EvaluationError) as raised:
        evaluate(source, **variables)
    return str(raised.value)


def late(conversion: str) -> str:
    """Return a conversion that is not folded at compile time."""
    function, _, value = conversion.removesuffix(")").partition("(")
    return f"{function}(true ? {value} : {value})"


def compile_error(source: str) -> str:
    """Return the message of the error of compiling an expression."""
    with pytest.raises(CompileError) as raised:
        compiled(source)
    return str(raised.value)
