"""Node selectors: terms, names, comparisons, and invalid terms."""

from typing import Any

import pytest

from kubestow.api.codec import convert
from kubestow.api.labels import SelectorError
from kubestow.api.node import NodeSelector
from kubestow.api.node_selector import (
    NodeTerms,
    PreferredTerm,
    compile_node_selector,
    compile_preferred,
    required_node_affinity,
)
from kubestow.api.pod import Pod, PreferredSchedulingTerm

LABELS = {"zone": "za", "gen": "3", "odd": "x"}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def term(*expressions: dict[str, Any], fields: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"matchExpressions": list(expressions), "matchFields": list(fields)}


def compiled(*terms: dict[str, Any]) -> NodeTerms:
    return compile_node_selector(convert(NodeSelector, {"nodeSelectorTerms": list(terms)}))


@pytest.mark.parametrize(
    ("condition", "met"),
    [
        (expression("zone", "In", "za", "zb"), True),
        (expression("zone", "In", "zb"), False),
        (expression("zone", "NotIn", "zb"), True),
        (expression("none", "NotIn", "zb"), True),
        (expression("zone", "Exists"), True),
        (expression("none", "Exists"), False),
        (expression("none", "DoesNotExist"), True),
        (expression("gen", "Gt", "2"), True),
        (expression("gen", "Gt", "3"), False),
        (expression("gen", "Lt", "4"), True),
        (expression("odd", "Gt", "2"), False),
        (expression("none", "Lt", "2"), False),
    ],
)
def test_requirements_on_labels(condition: dict[str, Any], met: bool) -> None:
    """Every operator; a label that is missing or not a number meets no comparison."""
    assert compiled(term(condition)).matches(LABELS, "node-1") is met


def test_one_term_suffices_and_all_its_requirements_must_hold() -> None:
    """Terms are alternatives, the requirements of a term are not."""
    both = term(expression("zone", "In", "za"), expression("gen", "In", "1"))
    assert not compiled(both).matches(LABELS, "node-1")
    assert compiled(both, term(expression("gen", "In", "3"))).matches(LABELS, "node-1")


def test_requirements_on_the_name() -> None:
    """matchFields supports equality of the node's name."""
    here = compiled(term(fields=(expression("metadata.name", "In", "node-1"),)))
    elsewhere = compiled(term(fields=(expression("metadata.name", "NotIn", "node-1"),)))
    assert here.matches({}, "node-1")
    assert not here.matches({}, "node-2")
    assert elsewhere.matches({}, "node-2")
    assert not elsewhere.matches({}, "node-1")


def test_a_term_without_requirements_matches_no_node() -> None:
    """An empty term, or no term at all, selects nothing."""
    assert not compiled(term()).matches(LABELS, "node-1")
    assert not compiled().matches(LABELS, "node-1")


def test_an_invalid_term_does_not_affect_the_others() -> None:
    """Its problems are in `errors`; `checked` raises them."""
    selector = compiled(term(expression("gen", "Gt", "x")), term(expression("zone", "Exists")))
    assert selector.matches(LABELS, "node-1")
    assert not selector.matches({}, "node-1")
    assert len(selector.errors) == 1
    with pytest.raises(SelectorError, match=r"nodeSelectorTerms\[0\].matchExpressions\[0\].values\[0\]"):
        selector.checked()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (term(expression("a", "Like", "x")), r'matchExpressions\[0\].operator: Unsupported value: "Like"'),
        (term(expression("a", "Gt", "1", "2")), "exactly one value is required"),
        (term(fields=(expression("metadata.name", "Exists"),)), r"matchFields\[0\].operator: Unsupported value"),
        (term(fields=(expression("metadata.name", "In", "a", "b"),)), "must have one element"),
    ],
)
def test_errors_name_the_field(bad: dict[str, Any], message: str) -> None:
    """The message has the path of the field from the selector down."""
    with pytest.raises(SelectorError, match=rf"^nodeSelectorTerms\[0\]\..*{message}"):
        compiled(bad).checked()


def test_preferred_terms_without_weight_or_requirements_do_not_count() -> None:
    """Terms that cannot add to a score are omitted, even if invalid."""
    terms = [
        convert(PreferredSchedulingTerm, {"weight": 0, "preference": term(expression("a", "Like"))}),
        convert(PreferredSchedulingTerm, {"weight": 5, "preference": {}}),
        convert(PreferredSchedulingTerm, {"weight": 7, "preference": term(expression("zone", "In", "za"))}),
    ]
    (counted,) = compile_preferred(terms)
    assert isinstance(counted, PreferredTerm)
    assert counted.weight == 7
    assert counted.term.matches(LABELS, "")


def test_invalid_preferred_terms_are_rejected() -> None:
    """A preferred term with a problem raises SelectorError."""
    bad = convert(PreferredSchedulingTerm, {"weight": 1, "preference": term(expression("a", "Like"))})
    with pytest.raises(SelectorError, match=r"\[0\].matchExpressions\[0\].operator"):
        compile_preferred([bad])


def test_node_selector_and_affinity_must_both_hold() -> None:
    """A pod's nodeSelector applies in addition to its required node affinity."""
    required = {"nodeSelectorTerms": [term(expression("gen", "In", "3"))]}
    spec = {
        "nodeSelector": {"zone": "za"},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
    }
    affinity = required_node_affinity(convert(Pod, {"spec": spec}))
    assert affinity.matches(LABELS, "n")
    assert not affinity.matches({**LABELS, "zone": "zb"}, "n")
    assert not affinity.matches({**LABELS, "gen": "4"}, "n")
    assert not affinity.is_everything


def test_most_pods_accept_any_node() -> None:
    """Pods without nodeSelector and affinity match every node."""
    affinity = required_node_affinity(Pod())
    assert affinity.is_everything
    assert affinity.matches({}, "n")
