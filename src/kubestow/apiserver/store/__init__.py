"""Where objects live: encoded once, versioned by one counter, remembered for a while so that watches can resume."""
