"""What holds for each resource beyond its schema: defaults, admission, validation, what an update may change."""
