"""Tolerations: the taints that they match."""

import pytest

from kubestow.api.node import Taint
from kubestow.api.pod import Toleration
from kubestow.api.tolerations import tolerates, untolerated

NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "PreferNoSchedule", "NoExecute"
TAINT = Taint("dedicated", "10", NO_SCHEDULE)


@pytest.mark.parametrize(
    ("toleration", "covered"),
    [
        (Toleration("dedicated", "Equal", "10", NO_SCHEDULE), True),
        (Toleration("dedicated", "", "10"), True),
        (Toleration("dedicated", "Equal", "11"), False),
        (Toleration("dedicated", "Exists"), True),
        (Toleration("", "Exists"), True),
        (Toleration("other", "Exists"), False),
        (Toleration("dedicated", "Exists", "", NO_EXECUTE), False),
        (Toleration("", "Equal", "10"), True),
        (Toleration("dedicated", "Near", "10"), False),
        (Toleration("dedicated", "Gt", "9"), True),
        (Toleration("dedicated", "Gt", "10"), False),
        (Toleration("dedicated", "Lt", "11"), True),
        (Toleration("dedicated", "Lt", "-11"), False),
        (Toleration("dedicated", "Lt", "011"), False),
        (Toleration("dedicated", "Lt", "+11"), False),
        (Toleration("dedicated", "Lt", "x"), False),
        (Toleration("dedicated", "Lt", "99999999999999999999"), False),
    ],
)
def test_matching(toleration: Toleration, covered: bool) -> None:
    """Effect, key and value must be equal; empty ones match all; comparisons need plain 64-bit integers."""
    assert tolerates(toleration, TAINT, comparison_operators=True) is covered


def test_comparisons_can_be_disabled() -> None:
    """Without the feature, Lt and Gt match nothing."""
    assert not tolerates(Toleration("dedicated", "Gt", "9"), TAINT, comparison_operators=False)


def test_a_taint_without_a_number_is_not_compared() -> None:
    """Gt and Lt do not match taints with other values."""
    assert not tolerates(Toleration("dedicated", "Gt", "9"), Taint("dedicated", "many"), comparison_operators=True)


def test_the_first_untolerated_taint_is_returned() -> None:
    """Taints of other effects and tolerated ones are skipped."""
    taints = [Taint("soft", "", PREFER_NO_SCHEDULE), Taint("a", "", NO_SCHEDULE), Taint("b", "", NO_EXECUTE)]
    hard = (NO_SCHEDULE, NO_EXECUTE)
    tolerate_a, tolerate_b = Toleration("a", "Exists"), Toleration("b", "Exists")
    assert untolerated(taints, [], hard, True) == taints[1]
    assert untolerated(taints, [tolerate_a], hard, True) == taints[2]
    assert untolerated(taints, [tolerate_a, tolerate_b], hard, True) is None
    assert untolerated(taints, [tolerate_a], (PREFER_NO_SCHEDULE,), True) == taints[0]
