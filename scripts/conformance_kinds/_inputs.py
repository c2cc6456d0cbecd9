"""Reading what the recorded cases give."""

from functools import cache
from typing import Any

import msgspec

from kubestow import config
from kubestow.api.codec import convert
from kubestow.api.kinds import KINDS


def object_of(manifest: dict[str, Any]) -> Any:
    """An object of whatever kind the manifest is."""
    return convert(KINDS[manifest["apiVersion"], manifest["kind"]], manifest)


def configuration_of(case: dict[str, Any]) -> config.SchedulerConfiguration:
    """The configuration of a case, the default one if it has none; raises ConfigError."""
    return _load(msgspec.json.encode(case["config"]).decode()) if "config" in case else config.default()


@cache
def _load(text: str) -> config.SchedulerConfiguration:
    return config.load(text)
