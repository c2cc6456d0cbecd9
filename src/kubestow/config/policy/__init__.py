"""The legacy Policy: predicates and priorities by name, as kube-scheduler up to v1.22 was configured.

`load` reads one, strictly, and returns the configuration that does the same: the profile `default-scheduler` with the
plugins that the predicates and priorities became, in the order and with the weights of kube-scheduler v1.22. Everything
else of a configuration stays as it was. `notes` says what of it kube-scheduler v1.36 would not understand.
"""

from kubestow.config.policy.loading import load
from kubestow.config.policy.notes import notes

__all__ = ["load", "notes"]
