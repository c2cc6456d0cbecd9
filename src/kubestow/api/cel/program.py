"""Compiled expressions."""

from collections.abc import Callable
from typing import Any

from kubestow.api.cel.checker import check
from kubestow.api.cel.environment import Environment
from kubestow.api.cel.errors import CompileError, CostLimitError, EvaluationError, Issue
from kubestow.api.cel.folding import fold
from kubestow.api.cel.generator import generate
from kubestow.api.cel.parser import MAX_DEPTH, parse
from kubestow.api.cel.syntax import Node
from kubestow.api.cel.types import Type, TypeTooLargeError


class Program:
    """A compiled expression; `type` is the type of its value, which may be dynamic."""

    __slots__ = ("_careful", "_environment", "_fast", "source", "tree", "type")

    def __init__(self, source: str, environment: Environment) -> None:
        """Compile an expression. Raises CompileError."""
        try:
            tree = parse(source)
            type_ = check(tree, environment, source)
            if issues := list(fold(tree)):
                raise CompileError.of(source, *issues)
            fast = generate(tree, environment, careful=False)
        except (RecursionError, TypeTooLargeError):
            problem = f"expression recursion limit exceeded: {MAX_DEPTH}"
            raise CompileError.of(source, Issue(-1, problem)) from None
        self.source = source
        self.type: Type = type_
        self.tree: Node = tree
        self._environment = environment
        self._fast = fast
        self._careful: Callable[..., Any] | None = None

    def evaluate(self, *variables: Any) -> Any:
        """Return the value for these values of the variables. Raises EvaluationError."""
        try:
            return self._fast(*variables)
        except Exception as error:
            return self._evaluate_carefully(error, *variables)

    def _evaluate_carefully(self, error: Exception, *variables: Any) -> Any:
        """Return the value after the fast function failed; the careful one determines the result or the error."""
        if isinstance(error, CostLimitError):
            raise error
        try:
            if self._careful is None:
                self._careful = generate(self.tree, self._environment, careful=True)
            return self._careful(*variables)
        except RecursionError:
            raise EvaluationError("the values are nested too deeply") from None
