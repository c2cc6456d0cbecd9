"""The gate defers changes in order and loses none."""

from kubestow.scheduler.cluster.gate import Gate


def test_deferred_changes_are_applied_in_order() -> None:
    """A change that fails does not stop the others."""
    gate, made = Gate(), []

    def change(name: str) -> None:
        if gate.is_closed:
            gate.defer(change, name)
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
