"""What can go wrong: an expression that does not compile, or one that cannot be evaluated.

The messages are those of cel-go, because kube-scheduler passes them on to users in its own.
"""

from typing import NamedTuple


class CelError(Exception):
    """Every error of this package."""


class Issue(NamedTuple):
    """A fault in an expression; `offset` is -1 where no place in the text can be named."""

    offset: int
    message: str

    def display(self, source: str) -> str:
        """The issue with the line of the source it is on and a mark below the place."""
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
    """An expression that is no CEL, or whose types do not fit; the message names each place."""

    @classmethod
    def of(cls, source: str, *issues: Issue) -> "CompileError":
        return cls("compilation failed: " + "\n".join(issue.display(source) for issue in sorted(issues)))


class EvaluationError(CelError):
    """An expression that has no value for what it was given."""


class CostLimitError(EvaluationError):
    """An expression that would take too long. Unlike other errors it is never absorbed by `||` or `&&`."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")
