"""Field selectors: parsing, matching pods, writing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.model.fields import FieldSelector, FieldTerm, parse_fields, parse_pod_fields
from kubestow.model.labels import SelectorError
from kubestow.model.meta import ObjectMeta
from kubestow.model.pod import Pod, PodSpec, PodStatus

POD = Pod(ObjectMeta("web-1", "prod"), PodSpec(nodeName="n1", schedulerName="s"), PodStatus(phase="Running"))


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
        ("spec.schedulerName=s,spec.hostNetwork=false,status.nominatedNodeName=,spec.restartPolicy=", True),
    ],
)
def test_pods_are_selected_by_fields(text: str, selected: bool) -> None:
    """All terms must hold; an empty selector selects everything."""
    assert parse_pod_fields(text).matches_pod(POD) is selected


def test_fields_of_other_objects() -> None:
    """A selector can be matched with whatever reads the fields."""
    selector = parse_fields("reason=Killing,count!=1")
    assert selector.matches({"reason": "Killing", "count": "2"}.__getitem__)
    assert not selector.matches({"reason": "Killing", "count": "1"}.__getitem__)


def test_unknown_fields_of_pods_are_refused() -> None:
    """The error names the field and those that are known."""
    with pytest.raises(SelectorError, match=r"'spec.image' is not supported for pods; known are metadata.name"):
        parse_pod_fields("spec.image=nginx")


@pytest.mark.parametrize("text", ["a", "a=b=c", "a=b\\", "a=b\\x"])
def test_bad_selectors_are_refused(text: str) -> None:
    """A term without operator or with a bad escape is an error."""
    with pytest.raises(SelectorError, match="field selector"):
        parse_fields(text)


names = st.from_regex(r"[a-zA-Z.]{1,8}", fullmatch=True)


@given(st.lists(st.tuples(names, st.text(max_size=8), st.booleans()), max_size=4))
def test_text_is_read_back(terms: list[tuple[str, str, bool]]) -> None:
    """Whatever the values hold, a selector's text is the same selector."""
    selector = FieldSelector(tuple(FieldTerm(*term) for term in terms))
    assert sorted(parse_fields(str(selector)).terms) == sorted(selector.terms)
