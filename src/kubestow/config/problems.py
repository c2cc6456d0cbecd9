"""Problems of a configuration, reported together in one `ConfigError`.

A path is that of the field in the file: `profiles[0].pluginConfig[1].args.resources[0].weight`; it is empty for a
problem of the file as a whole.
"""

import msgspec


class Problem(msgspec.Struct, frozen=True):
    path: str
    message: str

    def __str__(self) -> str:
        """Return one line, even if a name from the file contains line breaks."""
        line = f"{self.path}: {self.message}" if self.path else self.message
        return line.replace("\n", "\\n")


class ConfigError(ValueError):
    """A configuration is invalid; `problems` is never empty."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


def child(path: str, name: str) -> str:
    """Return the path of a field of the section at `path`."""
    return f"{path}.{name}" if path else name
