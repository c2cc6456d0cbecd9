"""The functions of CEL as Kubernetes has it: the language's own, its extensions, and Kubernetes' libraries.

One module a subject; each declares its functions in a `LIBRARY` with the types they take and what they cost.
"""

from kubestow.api.cel.functions import merge
from kubestow.api.cel.library import (
    conversions,
    formats,
    formatting,
    lists,
    network,
    operators,
    optionals,
    quantity,
    regex,
    semver,
    strings,
    times,
    urls,
)

KUBERNETES = merge(
    module.LIBRARY
    for module in (
        operators,
        conversions,
        times,
        strings,
        formatting,
        lists,
        optionals,
        regex,
        quantity,
        semver,
        network,
        urls,
        formats,
    )
)
