"""Decodes the inputs of recorded cases."""

from functools import cache
from typing import Any

import msgspec

from kubestow import config
from kubestow.api.codec import convert
from kubestow.api.kinds import KINDS


def object_of(manifest: dict[str, Any]) -> Any:
    """Return the object of a manifest of any known kind."""
    return convert(KINDS[manifest["apiVersion"], manifest["kind"]], manifest)


def configuration_of(case: dict[str, Any]) -> config.SchedulerConfiguration:
    """Return the configuration of a case, by default the default one; raises ConfigError."""
    return _load(msgspec.json.encode(case["config"]).decode()) if "config" in case else config.default()


@cache
def _load(text: str) -> config.SchedulerConfiguration:
    return config.load(text)
