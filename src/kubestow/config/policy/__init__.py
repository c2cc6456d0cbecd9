"""The legacy Policy: the configuration of kube-scheduler up to v1.22, with predicates and priorities by name.

`load` parses one strictly and returns an equivalent configuration: the profile `default-scheduler` with the plugins
that replaced the predicates and priorities, in the order and with the weights of kube-scheduler v1.22. All other fields
of a configuration are unchanged. `notes` lists what kube-scheduler v1.37 does not support.
"""

from kubestow.config.policy.loading import load
from kubestow.config.policy.notes import notes

__all__ = ["load", "notes"]
