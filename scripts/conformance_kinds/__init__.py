"""One module for each kind of case: `check(case)` returns None, or a description of the first difference."""
