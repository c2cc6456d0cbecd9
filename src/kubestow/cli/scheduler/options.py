"""What flags say that a live scheduler is made from; light, so that flags are judged before the scheduler is loaded."""

import msgspec


class DecisionOptions(msgspec.Struct, frozen=True):
    """What is kept of decisions, and where it goes."""

    record_bytes: int = 0
    """0: nothing is kept."""
    log: str = ""
    """A file, or `-`; empty: none."""
    log_bytes: int = 0
    log_backups: int = 0
    log_nodes: bool = False
    annotates: bool = False
    """Whether pods are annotated with decisions."""
