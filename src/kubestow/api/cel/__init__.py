"""CEL, the Common Expression Language, as Kubernetes has it, compiled to Python functions.

`lexer` and `parser` (with `macros`) make a tree of an expression (`syntax`). `checker` finds its types (`types`,
`unification`) and the overloads of the functions it calls (`functions`, `library`). `folding` evaluates what is
constant. `generator` fills `templates` to make Python functions of it, which call on `values` and `loops`. `program`
does all this in order; `selectors` asks whether a device will do.

Promise: no I/O, no clock, no randomness. Every expression ends, whatever it is: to compile it takes time for its
length, to evaluate it for its budget. Whatever is wrong with it is a CelError.
"""

from kubestow.api.cel.environment import Environment
from kubestow.api.cel.errors import CelError, CompileError, EvaluationError
from kubestow.api.cel.program import Program
from kubestow.api.cel.selectors import Device, Selector, compile_selector

__all__ = [
    "CelError",
    "CompileError",
    "Device",
    "Environment",
    "EvaluationError",
    "Program",
    "Selector",
    "compile_selector",
]
