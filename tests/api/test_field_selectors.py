"""Field selectors: parsing, matching, writing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.fields import FieldSelector, FieldTerm, parse_fields
from kubestow.api.labels import SelectorError

POD = {"metadata.name": "web-1", "metadata.namespace": "prod", "spec.nodeName": "n1", "status.phase": "Running"}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("", True),
        ("spec.nodeName=n1", True),
        ("spec.nodeName==n1", True),
        ("spec.nodeName=", False),
        ("spec.nodeName!=", True),
        ("status.phase!=Succeeded,status.phase!=Failed", True),
        ("metadata.name=web-1,metadata.namespace=dev", False),
    ],
)
def test_objects_are_selected_by_fields(text: str, selected: bool) -> None:
    """All terms must hold; an empty selector selects everything."""
    assert parse_fields(text).matches(POD.__getitem__) is selected


@pytest.mark.parametrize("text", ["a", "a=b=c", "a=b\\", "a=b\\x"])
def test_invalid_selectors_are_rejected(text: str) -> None:
    """A term without operator or with an invalid escape is an error."""
    with pytest.raises(SelectorError, match="field selector"):
        parse_fields(text)


names = st.from_regex(r"[a-zA-Z.]{1,8}", fullmatch=True)


@given(st.lists(st.tuples(names, st.text(max_size=8), st.booleans()), max_size=4))
def test_text_round_trips(terms: list[tuple[str, str, bool]]) -> None:
    """The text of a selector with any values parses to the same selector."""
    selector = FieldSelector(tuple(FieldTerm(*term) for term in terms))
    assert sorted(parse_fields(str(selector)).terms) == sorted(selector.terms)
