"""Clusters in virtual time: the scheduler that runs in production, with the embedded control plane's controllers.

    from kubestow.simulator import Simulation

    simulation = Simulation()
    simulation.add(*objects)
    simulation.run_for(3600)

Promise: no rule of scheduling is here. What happens depends on the objects, the seed and the settings alone, never on
the wall clock, on the machine or on the order of a set.
"""

from kubestow.simulator.contents import ObjectError
from kubestow.simulator.settings import ArgumentError, Latencies, Settings
from kubestow.simulator.simulation import Simulation

__all__ = ["ArgumentError", "Latencies", "ObjectError", "Settings", "Simulation"]
