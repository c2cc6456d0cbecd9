"""Options from flags. A small module, so that flags are validated before the scheduler is imported."""

import msgspec


class DecisionOptions(msgspec.Struct, frozen=True):
    """Storage and output of decisions."""

    record_bytes: int = 0
    """0: no records."""
    log: str = ""
    """A file, or `-` for standard output; empty: no log."""
    log_bytes: int = 0
    log_backups: int = 0
    log_nodes: bool = False
    annotates: bool = False
    """Whether pods are annotated with decisions."""
