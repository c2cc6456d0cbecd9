"""What is wrong with files of objects."""

_TOLD = 20


class ObjectsError(ValueError):
    """Files that cannot be used; `problems` is never empty: a line for each, with the file and the place in it."""

    def __init__(self, problems: list[str]) -> None:
        more = [f"... and {len(problems) - _TOLD} more"] if len(problems) > _TOLD else []
        super().__init__("\n".join(problems[:_TOLD] + more))
        self.problems = problems

    def __reduce__(self) -> tuple[type["ObjectsError"], tuple[list[str]]]:
        """Also between processes."""
        return ObjectsError, (self.problems,)


class DocumentError(ValueError):
    """One document that cannot be used; the message is one line that says where in it and why."""
