"""The commands around simulations: `simulate`, `sweep`, `compare`, `capacity`, `record`, `replay` and `view`."""
