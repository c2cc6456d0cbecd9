"""Simulation of a cluster in virtual time: the production scheduler with the embedded control plane's controllers.

    from kubestow.simulator import Simulation

    simulation = Simulation()
    simulation.add(*objects)
    simulation.run_for(3600)

Promise: this package contains no scheduling rule. A run depends on the objects, the seed and the settings alone, never
on the wall clock, the machine or the iteration order of a set.
"""

from kubestow.simulator.contents import ObjectError
from kubestow.simulator.settings import ArgumentError, Latencies, Settings
from kubestow.simulator.simulation import Simulation

__all__ = ["ArgumentError", "Latencies", "ObjectError", "Settings", "Simulation"]
