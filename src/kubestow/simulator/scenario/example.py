"""The output of `kubestow simulate --init`: a runnable scenario with a comment on every field."""

EXAMPLE = """\
# What happens in a cluster, and when. Run it: kubestow simulate FILE --out results
# Durations are seconds, or text such as 90s, 1h30m, 200ms.
apiVersion: kubestow.dev/v1
kind: Scenario
metadata:
  name: example
spec:
  duration: 2h            # default: until no work is pending
  seed: 1                 # of all random choices; --seed overrides it
  sample: 60s             # interval of samples of utilisation and queues
  latencies:
    request: 5ms          # from a write of the scheduler to its execution
    watch: 5ms            # from a change to its delivery to the scheduler
  pods:                   # default durations
    start: 500ms
    run: 5m               # pods that run to completion
    stop: 500ms
  # include: [cluster.yaml]   # more files, such as kubectl get nodes,pods -A -o yaml
  nodes:
    - count: 6
      name: node-{}
      cpu: 8
      memory: 32Gi
      zones: [a, b, c]    # assigned in turn
  nodeGroups:             # nodes added for pending pods, and removed when empty
    - name: burst
      template: {cpu: 16, memory: 64Gi}
      min: 0
      max: 4
      delay: 2m
      idle: 10m
  arrivals:
    - name: batch
      pod:                # default restartPolicy: Never
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
# Any Kubernetes objects; they exist from the start.
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
