"""Parsing of text into a tree, by recursive descent with operator precedence."""

from kubestow.api.cel.errors import CompileError, Issue
from kubestow.api.cel.lexer import Token, tokens, value_of
from kubestow.api.cel.macros import MacroError, expand
from kubestow.api.cel.syntax import Call, Entry, Ident, ListLiteral, Literal, MapLiteral, Node, Select

MAX_BYTES = 10 * 1024
MAX_DEPTH = 250

_PRECEDENCE = {"||": 1, "&&": 2} | dict.fromkeys(("<", "<=", ">=", ">", "==", "!=", "in"), 3)
_PRECEDENCE |= {"+": 4, "-": 4, "*": 5, "/": 5, "%": 5}
_LOGICAL = ("||", "&&")
_RESERVED = {"as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package"}
_RESERVED |= {"namespace", "return", "var", "void", "while"}
_LITERALS = ("int", "uint", "float", "string", "bytes", "true", "false", "null")
_START = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)


def parse(source: str) -> Node:
    """Parse an expression. Raises CompileError."""
    size = len(source.encode(errors="replace"))
    if size > MAX_BYTES:
        raise CompileError(f"compilation failed: the expression has {size} bytes; at most {MAX_BYTES} are allowed")
    try:
        return _Parser(source).whole()
    except MacroError as error:
        raise CompileError.of(source, error.issue) from None


class _Parser:
    def __init__(self, source: str) -> None:
        self._source = source
        self._tokens = list(tokens(source))
        self._place = 0
        self._depth = 0

    def whole(self) -> Node:
        node = self._expression()
        self._expect("end", "<EOF>")
        return node

    @property
    def _next(self) -> Token:
        return self._tokens[self._place]

    def _advance(self) -> Token:
        token = self._tokens[self._place]
        self._place += 1
        return token

    def _accept(self, kind: str) -> Token | None:
        return self._advance() if self._tokens[self._place].kind == kind else None

    def _expect(self, kind: str, expected: str) -> Token:
        return self._accept(kind) or self._mismatch(expected)

    def _mismatch(self, expected: str) -> Token:
        raise self._issue(self._next.offset, f"Syntax error: mismatched input '{self._next.text}' expecting {expected}")

    def _issue(self, offset: int, message: str) -> CompileError:
        return CompileError.of(self._source, Issue(offset, message))

    def _check_depth(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise self._issue(-1, f"expression recursion limit exceeded: {MAX_DEPTH}")

    def _expression(self) -> Node:
        self._depth += 1
        self._check_depth(self._depth)
        node = self._binary(1)
        if question := self._accept("?"):
            then = self._binary(1)
            self._expect(":", "':'")
            node = Call(question.offset, "_?_:_", [node, then, self._expression()])
        self._depth -= 1
        return node

    def _binary(self, lowest: int) -> Node:
        """Parse operands joined by operators of at least a precedence, from left to right."""
        left = self._operand()
        length = 0
        while (precedence := _PRECEDENCE.get(self._next.kind, 0)) >= lowest:
            operator = self._advance()
            right = self._binary(precedence + 1)
            function = "@in" if operator.kind == "in" else f"_{operator.kind}_"
            if operator.kind in _LOGICAL and isinstance(left, Call) and left.function == function:
                left.args.append(right)  # one call of many arguments: `a && b && c` nests nothing
                continue
            length += 1
            self._check_depth(length)
            left = Call(operator.offset, function, [left, right])
        return left

    def _operand(self) -> Node:
        """Parse an operand with its prefix (signs) and its suffixes (fields, indexes, arguments)."""
        sign = self._next
        signs = 0
        if sign.kind in ("!", "-"):
            while self._accept(sign.kind):
                signs += 1
        negative = sign.kind == "-" and signs > 0 and self._next.kind in ("int", "float")
        node = self._postfix(self._primary(negative=negative))
        if (signs - negative) % 2:
            node = Call(sign.offset, f"{sign.kind}_", [node])
        return node

    def _primary(self, *, negative: bool) -> Node:
        token = self._next
        if token.kind in _LITERALS:
            return self._literal(self._advance(), negative=negative)
        if token.kind == "-" and self._tokens[self._place + 1].kind in ("int", "float"):  # as in !-1
            self._advance()
            return self._literal(self._advance(), negative=True)
        if token.kind in (".", "ident"):
            dot = "." if self._accept(".") else ""
            return self._name(dot, self._expect("ident", "IDENTIFIER"))
        if self._accept("("):
            node = self._expression()
            self._expect(")", "')'")
            return node
        if self._accept("["):
            return self._list(token)
        if self._accept("{"):
            return self._map(token)
        self._mismatch(_START)
        raise AssertionError

    def _literal(self, token: Token, *, negative: bool) -> Node:
        try:
            return Literal(token.offset - negative, value_of(token, negative=negative))
        except ValueError as error:
            raise self._issue(token.offset, str(error)) from None

    def _name(self, dot: str, name: Token) -> Node:
        if name.text in _RESERVED:
            raise self._issue(name.offset, f"reserved identifier: {name.text}")
        if bracket := self._accept("("):
            return expand(Call(bracket.offset, dot + name.text, self._arguments()))
        return Ident(name.offset, dot + name.text)

    def _postfix(self, node: Node) -> Node:
        length = 0
        while self._next.kind in (".", "[", "{"):
            token = self._next
            length += 1
            self._check_depth(length)
            if token.kind == "{":
                if name := qualified_name(node):
                    node = self._map(self._advance(), name)
                break
            self._advance()
            optional = bool(self._accept("?"))
            if token.kind == "[":
                node = Call(token.offset, "_[?_]" if optional else "_[_]", [node, self._expression()])
                self._expect("]", "']'")
            else:
                node = self._member(node, token, optional=optional)
        return node

    def _member(self, operand: Node, dot: Token, *, optional: bool) -> Node:
        if self._next.kind == "escaped":
            raise self._issue(self._next.offset, "unsupported syntax: '`'")
        field = self._expect("ident", "IDENTIFIER")
        if not optional and (bracket := self._accept("(")):
            return expand(Call(bracket.offset, field.text, self._arguments(), operand))
        return Select(dot.offset, operand, field.text, optional)

    def _arguments(self) -> list[Node]:
        args: list[Node] = []
        while not self._accept(")"):
            if args:
                self._expect(",", "')'")
            args.append(self._expression())
        return args

    def _list(self, bracket: Token) -> Node:
        elements: list[Node] = []
        optional: set[int] = set()
        while not self._accept("]"):
            if elements:
                self._expect(",", "']'")
            elif self._accept(","):
                self._expect("]", "']'")
                break
            if self._accept("]"):
                break
            if self._accept("?"):
                optional.add(len(elements))
            elements.append(self._expression())
        return ListLiteral(bracket.offset, elements, frozenset(optional))

    def _map(self, bracket: Token, message: str = "") -> Node:
        """Parse a map, or a named message, whose keys are fields and which must not be a single comma."""
        entries: list[Entry] = []
        while not self._accept("}"):
            if entries:
                self._expect(",", "'}'")
            elif not message and self._accept(","):
                self._expect("}", "'}'")
                break
            if self._accept("}"):
                break
            optional = bool(self._accept("?"))
            key = self._field() if message else self._expression()
            self._expect(":", "':'")
            entries.append(Entry(key, self._expression(), optional))
        return MapLiteral(bracket.offset, entries, message)

    def _field(self) -> Node:
        field = self._expect("ident", "IDENTIFIER")
        return Literal(field.offset, field.text)


def qualified_name(node: Node) -> str:
    """Return the dotted name of a tree of selections; an empty text for any other tree."""
    fields: list[str] = []
    while isinstance(node, Select) and not node.test and not node.optional:
        fields.append(node.field)
        node = node.operand
    return ".".join([node.name, *reversed(fields)]) if isinstance(node, Ident) else ""
