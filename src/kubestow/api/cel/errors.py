"""Errors of compiling and of evaluating an expression.

The messages are those of cel-go, because kube-scheduler includes them in its own messages.
"""

from typing import NamedTuple


class CelError(Exception):
    """The base class of all errors of this package."""


class Issue(NamedTuple):
    """A fault in an expression; `offset` is -1 if it has no position in the text."""

    offset: int
    message: str

    def display(self, source: str) -> str:
        """Return the issue with its line of the source and a mark below its position."""
        if self.offset < 0:
            return f"ERROR: <input>:-1:0: {self.message}"
        before = source[: self.offset]
        column = self.offset - (before.rfind("\n") + 1)
        line = source.split("\n")[before.count("\n")].replace("\t", " ")
        dots = "".join("." if char.isascii() else "\uff0e" for char in line[:column])
        mark = "^" if line[column : column + 1].isascii() else "\uff3e"
        place = f"<input>:{before.count(chr(10)) + 1}:{column + 1}"
        return f"ERROR: {place}: {self.message}\n | {line}\n | {dots}{mark}"


class CompileError(CelError):
    """An expression has a syntax or a type error; the message names the position of each."""

    @classmethod
    def of(cls, source: str, *issues: Issue) -> "CompileError":
        return cls("compilation failed: " + "\n".join(issue.display(source) for issue in sorted(issues)))


class EvaluationError(CelError):
    """An expression has no value for the given variables."""


class CostLimitError(EvaluationError):
    """The evaluation exceeds its cost limit. Unlike other errors, `||` and `&&` never absorb it."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")
