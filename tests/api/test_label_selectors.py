"""Label selectors: matching compared with a reference, query text, identity."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.labels import (
    EVERYTHING,
    NOTHING,
    Operator,
    SelectorError,
    compile_selector,
    parse_selector,
    selector_from_set,
)
from kubestow.api.meta import LabelSelector, LabelSelectorRequirement

keys = st.sampled_from(["app", "tier", "example.com/rev", "in"])
values = st.sampled_from(["", "web", "db", "1", "notin"])
label_sets = st.dictionaries(keys, values)
with_values = st.builds(
    LabelSelectorRequirement,
    keys,
    st.sampled_from(["In", "NotIn"]),
    st.lists(values, min_size=1, max_size=4, unique=True).map(tuple),
)
without_values = st.builds(LabelSelectorRequirement, keys, st.sampled_from(["Exists", "DoesNotExist"]))
selectors = st.builds(LabelSelector, label_sets, st.lists(with_values | without_values, max_size=4).map(tuple))


def reference_matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Implement the rule as the API documents it."""
    return all(labels.get(k) == v for k, v in selector.matchLabels.items()) and all(
        {
            "In": labels.get(e.key) in e.values,
            "NotIn": e.key not in labels or labels[e.key] not in e.values,
            "Exists": e.key in labels,
            "DoesNotExist": e.key not in labels,
        }[e.operator]
        for e in selector.matchExpressions
    )


@given(selectors, label_sets)
def test_matches_as_documented(selector: LabelSelector, labels: dict[str, str]) -> None:
    """The compiled selector equals the reference."""
    assert compile_selector(selector).matches(labels) is reference_matches(selector, labels)


@given(selectors)
def test_query_text_round_trips(selector: LabelSelector) -> None:
    """The text of a selector parses to the same selector."""
    compiled = compile_selector(selector)
    assert parse_selector(str(compiled)) == compiled


@given(selectors)
def test_order_does_not_matter(selector: LabelSelector) -> None:
    """The same requirements in any order make equal selectors with equal hashes."""
    distinct = {e.key: e for e in selector.matchExpressions if e.key not in selector.matchLabels}
    forwards = compile_selector(LabelSelector(selector.matchLabels, tuple(distinct.values())))
    backwards = compile_selector(
        LabelSelector(dict(reversed(selector.matchLabels.items())), tuple(reversed(distinct.values())))
    )
    assert forwards == backwards
    assert hash(forwards) == hash(backwards)


@given(st.text(max_size=20))
def test_any_text_is_parsed_or_rejected(text: str) -> None:
    """Every query is a selector or raises SelectorError."""
    try:
        selector = parse_selector(text)
    except SelectorError:
        return
    assert parse_selector(str(selector)) == selector


def test_no_selector_and_an_empty_one() -> None:
    """None selects nothing, an empty selector everything."""
    assert compile_selector(None) is NOTHING
    assert not NOTHING.matches({"app": "web"})
    assert not NOTHING.is_everything
    assert compile_selector(LabelSelector()) is EVERYTHING
    assert EVERYTHING.matches({})
    assert EVERYTHING.is_everything
    assert NOTHING != EVERYTHING
    assert selector_from_set({}) == EVERYTHING


def test_selectors_are_equal_and_hashable_by_content() -> None:
    """Selectors with the same requirements find the same entry of an index."""
    index = {selector_from_set({"app": "web", "tier": "a"}): 1}
    assert index[parse_selector("tier=a,app=web")] == 1
    assert parse_selector("app in (b,a)") == parse_selector("app in (a,b)")
    assert parse_selector("app=web") != parse_selector("app!=web")


def test_further_requirements_narrow_a_selector() -> None:
    """`and_also` adds requirements; NOTHING stays NOTHING."""
    narrowed = parse_selector("app=web").and_also(*parse_selector("!debug").requirements)
    assert str(narrowed) == "app=web,!debug"
    assert narrowed.matches({"app": "web"})
    assert not narrowed.matches({"app": "web", "debug": ""})
    assert NOTHING.and_also(*narrowed.requirements) is NOTHING


@pytest.mark.parametrize(
    ("text", "written", "matching", "others"),
    [
        ("a=1", "a=1", [{"a": "1"}], [{}, {"a": "2"}]),
        ("a==1", "a==1", [{"a": "1"}], [{}]),
        ("a != 1", "a!=1", [{}, {"a": "2"}], [{"a": "1"}]),
        ("a in (x, ,y)", "a in (,x,y)", [{"a": ""}, {"a": "x"}], [{}, {"a": "z"}]),
        ("a notin ()", "a notin ()", [{}, {"a": "1"}], [{"a": ""}]),
        ("a,!b", "a,!b", [{"a": ""}], [{"a": "", "b": ""}, {}]),
        ("a>5,b<1", "a>5,b<1", [{"a": "6", "b": "0"}], [{"a": "5", "b": "0"}, {"a": "x", "b": "0"}, {}]),
        ("in in (in,notin)", "in in (in,notin)", [{"in": "notin"}], [{}]),
        ("a=", "a=", [{"a": ""}], [{}, {"a": "1"}]),
        ("", "", [{}, {"a": "1"}], []),
    ],
)
def test_queries(text: str, written: str, matching: list[dict[str, str]], others: list[dict[str, str]]) -> None:
    """Every operator of the query language is parsed, written and matched."""
    selector = parse_selector(text)
    assert str(selector) == written
    assert all(selector.matches(labels) for labels in matching)
    assert not any(selector.matches(labels) for labels in others)


@pytest.mark.parametrize(
    "text", [",", "a,", "a b", "a in", "a in (", "a in (x y)", "!a=1", "a=b=c", "=1", "a>x", "-a-"]
)
def test_invalid_queries_are_rejected(text: str) -> None:
    """An invalid query raises SelectorError."""
    with pytest.raises(SelectorError):
        parse_selector(text)


@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        (LabelSelectorRequirement("a", "Nope"), '"Nope" is not a valid label selector operator'),
        (LabelSelectorRequirement("a", "In"), "values: Invalid value: null: .* can't be empty"),
        (LabelSelectorRequirement("a", "Exists", ("x",)), r'values: Invalid value: \["x"\]: values set must be empty'),
        (LabelSelectorRequirement("-bad-", "Exists"), 'key: Invalid value: "-bad-": name part must consist'),
        (LabelSelectorRequirement("a/b/c", "Exists"), "a valid label key must consist"),
        (LabelSelectorRequirement("/b", "Exists"), "prefix part must be non-empty"),
        (LabelSelectorRequirement("A_/b", "Exists"), "prefix part a lowercase RFC 1123 subdomain"),
        (LabelSelectorRequirement("a" * 64, "Exists"), "name part must be no more than 63 bytes"),
        (LabelSelectorRequirement("a", "In", ("bad value!",)), r"values\[0\]\[a\]: Invalid value"),
        (LabelSelectorRequirement("a", "In", ("x" * 64,)), "must be no more than 63 bytes"),
        (LabelSelectorRequirement("", "In"), r"^\[key: .*, values: "),
    ],
)
def test_invalid_selectors_name_the_field(requirement: LabelSelectorRequirement, message: str) -> None:
    """The message has the field and the reason; several problems are in one list."""
    with pytest.raises(SelectorError, match=message):
        compile_selector(LabelSelector(matchExpressions=(requirement,)))


def test_requirements_are_public() -> None:
    """An index can read the requirements, sorted by key."""
    selector = compile_selector(LabelSelector({"tier": "a"}, (LabelSelectorRequirement("app", "In", ("y", "x")),)))
    assert [(r.key, r.operator, r.values) for r in selector.requirements] == [
        ("app", Operator.IN, ("x", "y")),
        ("tier", Operator.EQUALS, ("a",)),
    ]
