"""Tables: the columns that `kubectl get` shows. Promise: pure functions of objects and the current time."""
