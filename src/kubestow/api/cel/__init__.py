"""CEL, the Common Expression Language, in the variant of Kubernetes, compiled to Python functions.

`lexer` and `parser` (with `macros`) build the tree of an expression (`syntax`). `checker` determines its types
(`types`, `unification`) and the overloads of the functions that it calls (`functions`, `library`). `folding` evaluates
constants. `generator` fills `templates` to create Python functions, which use `values` and `loops`. `program` runs
these steps in order; `selectors` are programs that select devices, or
derive attributes of them.

Promise: no I/O, no clock, no randomness. Every expression terminates: the time to compile it is limited by its length,
the time to evaluate it by its budget. Every error is a CelError.
"""

from kubestow.api.cel.environment import Environment
from kubestow.api.cel.errors import CelError, CompileError, EvaluationError
from kubestow.api.cel.program import Program
from kubestow.api.cel.selectors import Derivation, Device, Selector, compile_selector

__all__ = [
    "CelError",
    "CompileError",
    "Derivation",
    "Device",
    "Environment",
    "EvaluationError",
    "Program",
    "Selector",
    "compile_selector",
]
