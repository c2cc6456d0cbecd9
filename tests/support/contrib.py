"""Configurations with a plugin of `kubestow.contrib`."""

import json
from typing import Any


def configured(plugin: str, args: dict[str, Any]) -> str:
    """Return a configuration with a plugin and its arguments."""
    return json.dumps(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {
                    "plugins": {"multiPoint": {"enabled": [{"name": plugin}]}},
                    "pluginConfig": [{"name": plugin, "args": args}],
                }
            ],
        }
    )
