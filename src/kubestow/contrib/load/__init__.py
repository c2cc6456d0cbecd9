"""Plugins that score nodes by their measured utilization.

TargetLoadPacking fills nodes up to a utilization. LoadVariationRiskBalancing avoids nodes whose utilization is high or
varies. LowRiskOverCommitment avoids nodes that are likely to use more than was requested. `sources` describes where
measurements come from; old ones do not decide: without recent measurements, all nodes get the same score.
"""

from kubestow.contrib.load.risk import LowRiskOverCommitment
from kubestow.contrib.load.target import TargetLoadPacking
from kubestow.contrib.load.variation import LoadVariationRiskBalancing

__all__ = ["LoadVariationRiskBalancing", "LowRiskOverCommitment", "TargetLoadPacking"]
