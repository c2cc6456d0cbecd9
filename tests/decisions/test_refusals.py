"""Refusals are kept in few bits, and say what was said."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kubestow.decisions.refusals import RefusalsKnown
from kubestow.framework.results import Rejection
from kubestow.framework.verdicts import Told

KINDS = st.dictionaries(st.integers(0, 300), st.integers(0, 20))
"""By row what is said of it; 0: it passes."""


def told(kinds: dict[int, int]) -> Told:
    """What filters would tell."""
    rows = np.array(sorted(kinds), np.int64)
    said = np.array([kinds[row] for row in sorted(kinds)], np.int64)
    distinct = [(Rejection((f"for {kind}",)), np.flatnonzero(said == kind)) for kind in sorted({*kinds.values()} - {0})]
    return Told(rows, distinct)


@given(KINDS)
def test_every_row_has_its_refusal(kinds: dict[int, int]) -> None:
    """All at once, and one by one; rows that passed, or were not judged, have none."""
    refusals = RefusalsKnown().of(told(kinds))
    refused = {row: Rejection((f"for {kind}",)) for row, kind in kinds.items() if kind}
    assert dict(refusals) == refused
    assert [row for row, _ in refusals] == sorted(refused)
    assert {row: why for row in range(400) if (why := refusals.of(row)) is not None} == refused
    assert len(refusals) == len(kinds)


@given(KINDS, KINDS)
def test_what_is_the_same_is_kept_once(kinds: dict[int, int], others: dict[int, int]) -> None:
    """Also if something else was said in between."""
    known = RefusalsKnown()
    first, other, again = (known.of(told(said)) for said in (kinds, others, kinds))
    assert again is first
    assert (other is first) == (kinds == others or not (kinds or others))


def test_one_reason_for_thousands_of_nodes_takes_a_bit_for_each() -> None:
    refusals = RefusalsKnown().of(told(dict.fromkeys(range(8_000), 1)))
    assert refusals.size <= 8_000 / 8 + 400
