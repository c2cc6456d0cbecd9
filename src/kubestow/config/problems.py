"""What is wrong with a configuration: one `Problem` for each fault, all of them in one `ConfigError`.

A path reads as in the file: `profiles[0].pluginConfig[1].args.resources[0].weight`; it is empty where the whole file is
meant.
"""

import msgspec


class Problem(msgspec.Struct, frozen=True):
    path: str
    message: str

    def __str__(self) -> str:
        """One line, whatever names from the file are in it."""
        line = f"{self.path}: {self.message}" if self.path else self.message
        return line.replace("\n", "\\n")


class ConfigError(ValueError):
    """A configuration that cannot be used; `problems` is never empty."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


def child(path: str, name: str) -> str:
    """The path of a field of what is at `path`."""
    return f"{path}.{name}" if path else name
