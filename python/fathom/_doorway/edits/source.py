"""A file of the user's: its text, its syntax tree, and where things stand in it, in bytes."""

import ast
import functools
import io
import os
import tokenize

from ..file_owner import is_library
from . import Blocked

# Some editors begin a file with it.
MARK = b"\xef\xbb\xbf"

LAYOUT = (tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT)


@functools.cache
def source_of(path):
    """The file, read once; `Blocked` if it is no file of the user's that can be changed."""
    if not os.path.isfile(path):
        raise Blocked("", f"`{path}` is no file")
    if is_library(path):
        raise Blocked("", f"`{path}` belongs to a library")
    try:
        with open(path, "rb") as file:
            return Source(os.path.realpath(path), file.read())
    except (OSError, SyntaxError, ValueError) as error:
        raise Blocked("", f"`{path}` cannot be read: {error}") from None


class Source:
    def __init__(self, path, raw):
        self.path = path
        self.raw = raw
        self.first = len(MARK) if raw.startswith(MARK) else 0
        body = raw[self.first :]
        self.text = body.decode("utf-8")
        self.tree = ast.parse(raw)
        self.lines = body.split(b"\n")
        self.newline = "\r\n" if b"\r\n" in raw else "\n"
        self.starts = [self.first]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def place(self, line):
        return f"{self.path}:{line}"

    def offset(self, line, column):
        return self.starts[line - 1] + column

    def begin(self, node):
        return self.offset(node.lineno, node.col_offset)

    def end(self, node):
        return self.offset(node.end_lineno, node.end_col_offset)

    def code(self, begin, end):
        return self.raw[begin:end].decode("utf-8")

    @functools.cached_property
    def tokens(self):
        """(kind, text, begin, end) of all that is no layout."""
        found = []
        for token in tokenize.generate_tokens(io.StringIO(self.text, newline="").readline):
            if token.type in LAYOUT or not token.string:
                continue
            begin, end = (self.starts[row - 1] + len(self.characters(row)[:column].encode()) for row, column in (token.start, token.end))
            found.append((token.type, token.string, begin, end))
        return found

    def characters(self, row):
        return self.lines[row - 1].decode("utf-8")

    # -- statements ---------------------------------------------------------------------------------------------

    def scope(self, code):
        """The function that a code object was made of; the module for its own."""
        if code.co_name == "<module>":
            return self.tree
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name:
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                if code.co_firstlineno in (first, node.lineno):
                    return node
        raise Blocked(self.place(code.co_firstlineno), f"`{code.co_name}` is not a function that can be changed")

    def statement(self, scope, line):
        """The innermost statement of a scope that a line belongs to."""
        found = None
        for node in own_nodes(scope):
            if isinstance(node, ast.stmt) and node.lineno <= line <= node.end_lineno:
                found = node if found is None or is_inside(node, found) else found
        if found is None:
            raise Blocked(self.place(line), "no statement of its function stands here")
        return found

    def is_shared(self, scope, line):
        """Whether statements that follow each other stand on one line."""
        here = [node for node in own_nodes(scope) if isinstance(node, ast.stmt) and node.lineno <= line <= node.end_lineno]
        return any(not is_inside(one, other) and not is_inside(other, one) for one in here for other in here)

    def block_of(self, statement):
        """The list of statements that it stands in."""
        parent = self.parents[statement]
        for _, value in ast.iter_fields(parent):
            if isinstance(value, list) and statement in value:
                return value
        raise Blocked(self.place(statement.lineno), "no block of statements")

    def ancestors(self, node):
        while node is not None:
            yield node
            node = self.parents.get(node)

    def indentation(self, statement):
        """What stands before a statement that has its line to itself."""
        before = self.raw[self.starts[first_line(statement) - 1] : self.offset(first_line(statement), statement.col_offset)]
        if before.strip():
            raise Blocked(self.place(statement.lineno), "other code stands in front of the statement")
        return before.decode()

    def after(self, statement):
        """Where a new line after a statement begins."""
        end = self.end(statement)
        rest = self.raw[end : self.starts[statement.end_lineno] - 1]
        if rest.strip() and not rest.strip().startswith(b"#"):
            raise Blocked(self.place(statement.end_lineno), "other code stands behind the statement")
        return min(self.starts[statement.end_lineno], len(self.raw))

    def before(self, statement):
        self.indentation(statement)
        return self.starts[first_line(statement) - 1]

    def lines_after(self, edits, statement, lines):
        """New lines behind a statement, as far to the right as it stands."""
        margin, at = self.indentation(statement), self.after(statement)
        lead = "" if self.raw[at - 1 : at] == b"\n" else self.newline
        edits.note(self, at, at, lead + "".join(margin + line + self.newline for line in lines))

    def imports(self, edits, line):
        """An import that the file does not have, behind those that stand at its top."""
        wanted = ast.dump(ast.parse(line).body[0])
        last = None
        for statement in self.tree.body:
            is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                if ast.dump(statement) == wanted or self.has_import(statement, line):
                    return
                last = statement
            elif is_text and last is None:
                last = statement
            elif last is not None and not isinstance(last, ast.Expr):
                break
        if last is None:
            edits.note(self, self.first, self.first, line + self.newline)
        else:
            self.lines_after(edits, last, [line])

    def free_name(self, name):
        """The name, or one like it, that nothing in the file has."""
        used = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)}
        used |= {node.arg for node in ast.walk(self.tree) if isinstance(node, ast.arg)}
        return next(each for each in (name, *(f"{name}_{index}" for index in range(2, 100))) if each not in used)

    def has_import(self, statement, line):
        name = line.removeprefix("import ")
        return isinstance(statement, ast.Import) and any(each.name == name and not each.asname for each in statement.names)


def own_nodes(scope):
    """All nodes of a function or a module, without those of functions and classes inside of it."""
    waiting = list(scope.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))


def is_inside(inner, outer):
    begins = (outer.lineno, outer.col_offset) <= (inner.lineno, inner.col_offset)
    return begins and (inner.end_lineno, inner.end_col_offset) <= (outer.end_lineno, outer.end_col_offset)


def first_line(statement):
    decorators = getattr(statement, "decorator_list", None)
    return min([statement.lineno, *(each.lineno for each in decorators or ())])
