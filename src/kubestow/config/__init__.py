"""The scheduler's configuration: KubeSchedulerConfiguration v1 and feature gates.

`load` parses the text of a file strictly and returns a complete, valid configuration; `default` is the configuration
without a file; `dump` and `dump_briefly` write one. `policy` reads the legacy Policy.
Promise: all values are frozen, and no file is opened here.
"""

from kubestow.config.configuration import SchedulerConfiguration
from kubestow.config.features import Features
from kubestow.config.loading import default, load
from kubestow.config.problems import ConfigError, Problem
from kubestow.config.writing import dump, dump_briefly

__all__ = ["ConfigError", "Features", "Problem", "SchedulerConfiguration", "default", "dump", "dump_briefly", "load"]
