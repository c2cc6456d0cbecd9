"""Benchmark of custom plugins in each of their forms: examples 1 and 6 in addition to the default plugins.

Plain pods on 5,000 nodes, of which a cycle evaluates 500, in memory as in `bench_scheduling`; first without a plugin.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench_rows import MILLIS, Row
from bench_scheduling import NODES, measure
from kubestow.plugin.fast import PodsRead
from kubestow.plugin.loading import load

_EXAMPLES = Path(__file__).parents[1] / "examples"
_PODS = 1_000


def _example(name: str) -> Any:
    (loaded,) = load(str(_EXAMPLES / f"{name}.py"))
    return loaded.plugin


def _forms() -> Iterator[tuple[str, Any]]:
    zone, spare = _example("01_prefer_zone"), _example("06_spare_memory")
    signed_zone = type("SignedZone", (zone,), {"reads_pods": PodsRead.NOTHING, "sign": lambda _self, _pod: ()})

    class PlainSpare:
        name, __init__, pre_filter, filter = spare.name, spare.__init__, spare.pre_filter, spare.filter

    class UnsignedSpare(PlainSpare):
        filter_rows = spare.filter_rows

    class SignedPlainSpare(PlainSpare):
        reads_pods, sign = spare.reads_pods, spare.sign

    yield "no plugin", None
    yield "PreferZone, plain", zone
    yield "PreferZone, plain, signs, reads no pods", signed_zone
    yield "SpareMemory, plain", PlainSpare
    yield "SpareMemory, plain, signs, reads sums", SignedPlainSpare
    yield "SpareMemory, vector", UnsignedSpare
    yield "SpareMemory, vector, signs, reads sums", spare


def rows(full: bool) -> Iterator[Row]:
    """Yield the rows of the section."""
    for what, plugin in _forms():
        found = measure("basic", NODES, _PODS * (5 if full else 1), plugin=plugin)
        yield Row(f"{what}: CPU per pod", found["cpu_ms_per_pod"], MILLIS, f"{found['scheduled']:,} pods")
