"""Reading a scheduler configuration from where the command line says."""

import sys
from pathlib import Path

from kubestow import config
from kubestow.config import ConfigError, Features, Problem, SchedulerConfiguration


def load(file: str, features: Features) -> SchedulerConfiguration:
    """The configuration in a file, `-` for standard input; raises ConfigError."""
    return config.load(read(file), features)


def read(file: str) -> str:
    """The text of a file; raises ConfigError."""
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return content.decode()
    except OSError as error:
        raise ConfigError([Problem("", f"cannot be read: {error.strerror or error}")]) from None
    except UnicodeDecodeError as error:
        raise ConfigError([Problem("", f"is not UTF-8 text: {error.reason} at byte {error.start}")]) from None
