"""The functions of CEL in Kubernetes: those of the language, its extensions, and Kubernetes' libraries.

Each module declares the functions of one subject in a `LIBRARY`, with their signatures and costs.
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
