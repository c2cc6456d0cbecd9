"""The beta distribution, which describes a utilization between 0 and 1 by its average and standard deviation."""

from math import exp, lgamma, log, sqrt

_MAX_TERMS = 400


def probability_below(threshold: float, average: float, deviation: float) -> float:
    """Return the probability of a utilization up to `threshold`; the deviation must be smaller than that of a coin."""
    scale = average * (1 - average) / deviation**2 - 1
    return regularized(threshold, average * scale, (1 - average) * scale)


def regularized(x: float, a: float, b: float) -> float:
    """Return the regularized incomplete beta function, for positive `a` and `b`."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - regularized(1 - x, b, a)
    factor = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x)) / a
    # The continued fraction, from its last term to its first one; it needs about sqrt(max(a, b)) terms.
    fraction = 1.0
    for m in range(min(20 + int(3 * sqrt(max(a, b))), _MAX_TERMS), 0, -1):
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        fraction = 1 + even / (1 + odd / fraction)
    return min(max(factor / (1 - (a + b) * x / (a + 1) / fraction), 0.0), 1.0)
