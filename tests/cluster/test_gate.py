"""The gate holds changes back in order and loses none."""

from kubestow.scheduler.cluster.gate import Gate


def test_changes_are_made_in_order_when_it_opens() -> None:
    """Even those that come of one another, and if one fails."""
    gate, made = Gate(), []

    def change(name: str) -> None:
        if gate.is_closed:
            gate.hold(change, name)
            return
        if name == "bad":
            raise ValueError(name)
        made.append(name)

    gate.close()
    for name in ("a", "bad", "b"):
        change(name)
    assert made == []
    gate.open()
    assert made == ["a", "b"]
    change("c")
    assert made == ["a", "b", "c"]
