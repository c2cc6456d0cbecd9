"""What is wrong with the security context of a pod or a container."""

import re
from collections.abc import Iterator
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.causes import invalid, out_of, required

_IDENTITIES = ("fsGroup", "runAsUser", "runAsGroup")
_SYSCTL = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_SECCOMP = ("Localhost", "RuntimeDefault", "Unconfined")


def wrong_security(context: dict[str, Any], path: str) -> Iterator[Cause]:
    """Identities out of range, profiles and kernel settings that cannot be."""
    for name in _IDENTITIES:
        number = context.get(name)
        if number is not None and not 0 <= number < 2**31:
            yield invalid(f"{path}.{name}", number, "must be between 0 and 2147483647, inclusive")
    for index, setting in enumerate(context.get("sysctls", ())):
        name = setting.get("name", "")
        if not name:
            yield required(f"{path}.sysctls[{index}].name")
        elif len(name) > 253 or not re.match(_SYSCTL, name):
            yield invalid(
                f"{path}.sysctls[{index}].name", name, f"must have at most 253 characters and match regex {_SYSCTL}"
            )
    if "seccompProfile" in context:
        yield from out_of(context["seccompProfile"], f"{path}.seccompProfile", {"type": _SECCOMP})
    if context.get("privileged") and context.get("allowPrivilegeEscalation") is False:
        yield invalid(path, context, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
