"""Output of metrics as Prometheus text, or as OpenMetrics for clients that accept nothing else.

The output is that of kube-scheduler: sorted by name, then by label values; whole numbers without a decimal point;
metrics without a value are omitted. OpenMetrics differs in three ways: counters are declared without `_total`, the
bounds of buckets always have a decimal point, and the end is marked. Prometheus prefers OpenMetrics but accepts text;
kube-scheduler serves it text, and rules that name a bucket as `le="1"` depend on that.
"""

from collections.abc import Callable, Iterable, Iterator
from math import isfinite, isnan

from kubestow.telemetry.logs import get_logger
from kubestow.telemetry.metrics.instruments import Counter, Distribution, Family, Histogram, Key, Numbers

log = get_logger(__name__)

TEXT = "text/plain; version=0.0.4; charset=utf-8"
_OPENMETRICS_KIND = "application/openmetrics-text"
OPENMETRICS = f"{_OPENMETRICS_KIND}; version=1.0.0; charset=utf-8"
_OPENMETRICS_VERSIONS = ("", "1.0.0")
_LONGEST_WHOLE = 6


def render(families: Iterable[Family], accept: str = "") -> tuple[bytes, str]:
    """Return the metrics in a format that an Accept header allows, text if possible, and its Content-Type."""
    if _accepts_openmetrics_only(accept):
        lines = _lines(families, _openmetrics_head, _openmetrics_bound)
        return "".join((*lines, "# EOF\n")).encode(), OPENMETRICS
    return "".join(_lines(families, _text_head, number)).encode(), TEXT


def number(value: float) -> str:
    """Return a number in Go's format: the shortest exact form, with an exponent from a million on."""
    if not isfinite(value):
        return "NaN" if isnan(value) else f"{value:+}".replace("inf", "Inf")
    text = repr(float(value))
    whole, _, fraction = text.partition(".")
    exponent = len(whole.removeprefix("-")) - 1
    if exponent < _LONGEST_WHOLE or "e" in text:
        return text.removesuffix(".0")
    sign, digits = whole[: -exponent - 1], (whole[-exponent - 1 :] + fraction).rstrip("0")
    return f"{sign}{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e+{exponent:02d}"


def _openmetrics_bound(value: float) -> str:
    text = number(value)
    return f"{text}.0" if text.isdecimal() else text


def _accepts_openmetrics_only(accept: str) -> bool:
    best = {_OPENMETRICS_KIND: 0.0, "text/plain": 0.0, "text/*": 0.0, "*/*": 0.0}
    for part in accept.split(","):
        kind, *parameters = (token.strip() for token in part.split(";"))
        settings = dict(parameter.partition("=")[::2] for parameter in parameters)
        if kind in best and (kind != _OPENMETRICS_KIND or settings.get("version", "") in _OPENMETRICS_VERSIONS):
            best[kind] = max(best[kind], _weight(settings.get("q", "1")))
    return best.pop(_OPENMETRICS_KIND) > 0.0 and not any(best.values())


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _text_head(family: Family) -> str:
    text = family.text.replace("\\", r"\\").replace("\n", r"\n")
    return f"# HELP {family.name} {text}\n# TYPE {family.name} {family.kind}\n"


def _openmetrics_head(family: Family) -> str:
    name = family.name.removesuffix("_total") if isinstance(family, Counter) else family.name
    text = family.text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return f"# HELP {name} {text}\n# TYPE {name} {family.kind}\n"


def _lines(families: Iterable[Family], head: Callable[[Family], str], bound: Callable[[float], str]) -> Iterator[str]:
    for family in families:
        try:
            samples = list(_samples(family, bound))
        except Exception as error:
            # One source that fails must not hide all other metrics.
            log.unexpected("Metric cannot be read", err=error, metric=family.name)
            continue
        if samples:
            yield head(family)
            yield from samples


def _samples(family: Family, bound: Callable[[float], str]) -> Iterator[str]:
    if isinstance(family, Histogram):
        bounds = [bound(value) for value in (*family.bounds, float("inf"))]
        for key, values in sorted(family.read().items()):
            yield _histogram_lines(family.name, _pairs(family, key), bounds, values)
    elif isinstance(family, Numbers):
        for key, value in sorted(family.read().items()):
            pairs = ",".join(_pairs(family, key))
            yield f"{family.name}{'{' + pairs + '}' if pairs else ''} {number(value)}\n"


def _histogram_lines(name: str, pairs: list[str], bounds: list[str], values: Distribution) -> str:
    lines = []
    count = 0
    before = "".join(f"{pair}," for pair in pairs)
    for bound, in_bucket in zip(bounds, values.counts, strict=True):
        count += in_bucket
        lines.append(f'{name}_bucket{{{before}le="{bound}"}} {number(count)}\n')
    labels = f"{{{','.join(pairs)}}}" if pairs else ""
    lines.append(f"{name}_sum{labels} {number(values.total)}\n{name}_count{labels} {number(count)}\n")
    return "".join(lines)


def _pairs(family: Family, key: Key) -> list[str]:
    return [f'{label}="{_escape(value)}"' for label, value in zip(family.labels, key, strict=True)]


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
