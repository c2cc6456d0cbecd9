"""Node selectors evaluated on columns: which rows have the required labels and name.

A label condition is evaluated once for each distinct value of the label's column, not for each node; the rows take the
result of their value.
"""

import numpy as np

from kubestow.api.labels import NONE_OF, ONE_OF, Operator, Requirement, Selector
from kubestow.api.node_selector import NODE_NAME_FIELD, NodeTerm, NodeTerms, RequiredNodeAffinity
from kubestow.scheduler.cluster.arrays import BoolArray, Rows, row_count, row_numbers
from kubestow.scheduler.cluster.view import NodeView


def labels_match(view: NodeView, rows: Rows, condition: Requirement) -> BoolArray:
    """Return a mask of the rows whose labels meet one condition."""
    ids = view.label_ids(condition.key)[rows]
    operator = condition.operator
    if operator is Operator.EXISTS or operator is Operator.DOES_NOT_EXIST:
        exists: BoolArray = ids != 0
        return exists if operator is Operator.EXISTS else ~exists
    if operator in ONE_OF or operator in NONE_OF:
        wanted = [view.label_id(condition.key, value) for value in condition.values]
        one_of: BoolArray = np.zeros(len(ids), np.bool_)
        for value_id in wanted:
            if value_id > 0:
                one_of |= ids == value_id
        return one_of if operator in ONE_OF else ~one_of
    values = view.label_values(condition.key)
    by_value = np.fromiter((condition.matches({condition.key: value}) for value in values), np.bool_, len(values))
    by_value[0] = False
    return by_value[ids]


def selector_match(view: NodeView, rows: Rows, selector: Selector) -> BoolArray:
    """Return a mask of the rows whose labels a selector matches."""
    matched: BoolArray = np.ones(row_count(rows), np.bool_)
    if not selector.requirements and not selector.matches({}):
        return ~matched
    for condition in selector.requirements:
        matched &= labels_match(view, rows, condition)
    return matched


def node_term_match(view: NodeView, rows: Rows, term: NodeTerm) -> BoolArray:
    """Return a mask of the rows that meet every condition of a term."""
    matched: BoolArray = np.ones(row_count(rows), np.bool_)
    if term.errors:
        return ~matched
    for condition in term.labels:
        matched &= labels_match(view, rows, condition)
    for field in term.fields:
        matched &= _names_match(view, rows, field)
    return matched


def node_terms_match(view: NodeView, rows: Rows, terms: NodeTerms) -> BoolArray:
    """Return a mask of the rows that meet one of the terms."""
    matched: BoolArray = np.zeros(row_count(rows), np.bool_)
    for term in terms.terms:
        matched |= node_term_match(view, rows, term)
    return matched


def required_affinity_match(view: NodeView, rows: Rows, affinity: RequiredNodeAffinity) -> BoolArray:
    """Return a mask of the rows that meet the node selector and the required node affinity of a pod."""
    if affinity.selector is None:
        matched: BoolArray = np.ones(row_count(rows), np.bool_)
    else:
        matched = selector_match(view, rows, affinity.selector)
    if affinity.terms is not None:
        matched &= node_terms_match(view, rows, affinity.terms)
    return matched


def _names_match(view: NodeView, rows: Rows, field: Requirement) -> BoolArray:
    return np.fromiter(
        (field.matches({NODE_NAME_FIELD: view.names[row]}) for row in row_numbers(rows).tolist()),
        np.bool_,
        row_count(rows),
    )
