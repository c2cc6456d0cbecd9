"""Type unification: whether a type is assignable to another, and the values of type parameters for which it is.

The rules are those of cel-go: dynamic types are always assignable, null is assignable to every type but plain scalars,
and of two types for one parameter the more general one is kept.
"""

from collections.abc import Sequence

from kubestow.api.cel.types import DURATION, DYN, TIMESTAMP, Kind, Type

_PARAMETERISED = (Kind.OPAQUE, Kind.LIST, Kind.MAP)


class Substitutions:
    """The values of type parameters. Each checked call has fresh parameters."""

    def __init__(self) -> None:
        self._known: dict[Type, Type] = {}
        self._changes: list[tuple[Type, Type | None]] = []
        self._fresh = 0

    def fresh(self) -> Type:
        """Return a new parameter without a value."""
        self._fresh += 1
        return Type(Kind.PARAM, f"_var{self._fresh - 1}")

    def assign(self, given: Sequence[Type], wanted: Sequence[Type]) -> bool:
        """Return whether all given types are assignable to the wanted types; if not, parameters are unchanged."""
        self._changes.clear()
        fits = self._all_fit(given, wanted)
        while self._changes and not fits:
            parameter, before = self._changes.pop()
            if before is None:
                del self._known[parameter]
            else:
                self._known[parameter] = before
        return fits

    def resolve(self, type_: Type, *, final: bool = False) -> Type:
        """Return the type with its parameters replaced; if `final`, those without a value become dynamic."""
        if not type_.open:
            return type_
        if type_ in self._known:
            return self.resolve(self._known[type_], final=final)
        if type_.kind is Kind.PARAM:
            return DYN if final else type_
        return Type(type_.kind, type_.name, tuple(self.resolve(param, final=final) for param in type_.params))

    def _all_fit(self, given: Sequence[Type], wanted: Sequence[Type]) -> bool:
        return len(given) == len(wanted) and all(map(self._fits, given, wanted))

    def _fits(self, given: Type, wanted: Type) -> bool:
        if given == wanted:
            return True
        if wanted.kind is Kind.PARAM:
            fits, known = self._substitute(given, wanted)
            if fits or known:
                return fits
        if given.kind is Kind.PARAM:
            return self._substitute(wanted, given)[0]
        if given.unchecked or wanted.unchecked:
            return True
        if given.kind is Kind.NULL or wanted.kind is Kind.NULL:
            other = wanted if given.kind is Kind.NULL else given
            return other.kind in (Kind.NULL, Kind.OPAQUE, Kind.STRUCT) or other in (DURATION, TIMESTAMP)
        if given.kind is Kind.TYPE:
            return wanted.kind is Kind.TYPE
        if given.kind in _PARAMETERISED:
            return (
                given.kind is wanted.kind and given.name == wanted.name and self._all_fit(given.params, wanted.params)
            )
        return False

    def _substitute(self, type_: Type, parameter: Type) -> tuple[bool, bool]:
        """Return whether the parameter can be the type, and whether it had a value."""
        if type_ == parameter:
            return True, True
        known = self._known.get(parameter)
        if known is not None:
            if known == type_:
                return True, True
            if not self._fits(type_, known):
                return False, True
            general = type_ if _no_more_specific(type_, known) else known
            if not self._contains(general, parameter):
                self._set(parameter, general)
            return True, True
        if self._contains(type_, parameter):
            return False, False
        self._set(parameter, type_)
        return True, False

    def _set(self, parameter: Type, type_: Type) -> None:
        self._changes.append((parameter, self._known.get(parameter)))
        self._known[parameter] = type_

    def _contains(self, type_: Type, parameter: Type) -> bool:
        """Return whether a type contains a parameter, so that it cannot be its value."""
        if type_ == parameter or not type_.open:
            return type_ == parameter
        if type_.kind is Kind.PARAM:
            known = self._known.get(type_)
            return known is not None and self._contains(known, parameter)
        return any(self._contains(param, parameter) for param in type_.params)


def more_general(left: Type, right: Type) -> Type:
    return left if _no_more_specific(left, right) else right


def _no_more_specific(left: Type, right: Type) -> bool:
    if left == right or left.dynamic or left.kind is Kind.PARAM:
        return True
    if right.dynamic or right.kind is Kind.PARAM or left.kind is not right.kind:
        return False
    if left.kind in _PARAMETERISED:
        same = left.name == right.name and len(left.params) == len(right.params)
        return same and all(map(_no_more_specific, left.params, right.params))
    return left.kind is Kind.TYPE
