"""What `kubestow simulate --init` prints: a scenario that runs as it is, with a word on every field."""

EXAMPLE = """\
# What happens in a cluster, and when. Run it: kubestow simulate FILE --out results
# Durations are seconds, or text such as 90s, 1h30m, 200ms.
apiVersion: kubestow.dev/v1
kind: Scenario
metadata:
  name: example
spec:
  duration: 2h            # without it: until nothing happens by itself
  seed: 1                 # of every choice by chance; --seed goes before it
  sample: 60s             # how often utilisation and queues are looked at
  latencies:
    request: 5ms          # until a write of the scheduler is carried out
    watch: 5ms            # until the scheduler hears of a change
  pods:                   # for pods that do not say so themselves
    start: 500ms
    run: 5m               # those that are meant to end
    stop: 500ms
  # include: [cluster.yaml]   # more files, such as kubectl get nodes,pods -A -o yaml
  nodes:
    - count: 6
      name: node-{}
      cpu: 8
      memory: 32Gi
      zones: [a, b, c]    # given out in turn
  nodeGroups:             # nodes that come when pods wait, and go when they are empty
    - name: burst
      template: {cpu: 16, memory: 64Gi}
      min: 0
      max: 4
      delay: 2m
      idle: 10m
  arrivals:
    - name: batch
      pod:                # restartPolicy is Never
        spec:
          containers:
            - name: main
              image: batch:1
              resources: {requests: {cpu: "2", memory: 4Gi}}
      poisson: {every: 30s}   # or times: [0s, 10s], or trace: file.csv
      until: 1h
      run: {exponential: 10m} # or 10m; uniform, lognormal, choice
  events:                 # fail, drain, cordon, uncordon, remove, scale, apply, delete
    - at: 30m
      fail: {labels: {topology.kubernetes.io/zone: a}}
      lasts: 20m
    - at: 70m
      scale: {kind: Deployment, name: web, replicas: 12}
---
# Any objects of Kubernetes, there from the start.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 6
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
        - name: web
          image: web:1
          resources: {requests: {cpu: "1", memory: 1Gi}}
"""
