"""A scenario to simulate, and a configuration that packs its pods."""

SCENARIO = """apiVersion: kubestow.dev/v1
kind: Scenario
spec:
  duration: 10m
  sample: 10s
  nodes:
  - {count: 3, name: "node-{}", cpu: 4, memory: 32Gi}
  arrivals:
  - name: p
    pod: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 3}}}]}}
    times: [10, 11, 12, 13]
    run: 5m
  - name: small
    pod: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 500m}}}]}}
    times: [400, 401]
    run: 1m
"""


PACKING = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""
