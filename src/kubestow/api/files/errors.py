"""Errors in files of objects."""

_MAX_LISTED = 20


class ObjectsError(ValueError):
    """Files are invalid; `problems` is never empty: a line for each, with the file and the position in it."""

    def __init__(self, problems: list[str]) -> None:
        more = [f"... and {len(problems) - _MAX_LISTED} more"] if len(problems) > _MAX_LISTED else []
        super().__init__("\n".join(problems[:_MAX_LISTED] + more))
        self.problems = problems

    def __reduce__(self) -> tuple[type["ObjectsError"], tuple[list[str]]]:
        """Support pickling, to send the error to another process."""
        return ObjectsError, (self.problems,)


class DocumentError(ValueError):
    """A document is invalid; the message is one line with the position in it and the reason."""
