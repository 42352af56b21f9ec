"""What a file of the script's says: where it evaluates, what each of its functions names, and what is over at a line."""

import ast

LOOPS = (ast.For, ast.AsyncFor, ast.While)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Text(ast.NodeVisitor):
    def __init__(self, file, is_main):
        self.is_main = is_main
        self.evaluations = []  # (the function around it, its first line, its last)
        self.names = []  # (a name, the function around it, its line)
        self.functions = []  # around the node that is visited
        self.tree = None
        try:
            with open(file, encoding="utf-8", errors="replace") as text:
                self.tree = ast.parse(text.read())
            self.visit(self.tree)
        except (OSError, SyntaxError, ValueError, RecursionError):
            pass  # nothing is known of it

    def visit_FunctionDef(self, node):
        self.functions.append(node.name)
        self.generic_visit(node)
        self.functions.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_If(self, node):
        is_start = isinstance(node.test, ast.Compare) and getattr(node.test.left, "id", None) == "__name__"
        if self.is_main or not is_start:
            self.generic_visit(node)

    def visit_Name(self, node):
        self.names.append((node.id, self.around(), node.lineno))

    def visit_Attribute(self, node):
        self.names.append((node.attr, self.around(), node.lineno))
        self.generic_visit(node)

    def visit_Call(self, node):
        if is_evaluation(node):
            self.evaluations.append((self.around(), node.lineno, node.end_lineno))
        self.generic_visit(node)

    def around(self):
        return self.functions[-1] if self.functions else None

    def over(self, function, line):
        """For a function that is at this line, called once: ranges of lines of the ways that it did not take, and whether
        it is in a loop."""
        ranges = []
        body = self.body_of(function, line)
        while body:
            at = None
            for statement in body:
                if statement.end_lineno < line:
                    ranges += ways_out(statement)
                elif at is None and statement.lineno <= line <= statement.end_lineno:
                    at = statement
            if isinstance(at, LOOPS):
                return ranges, True
            if isinstance(at, ast.If):
                if line < at.body[0].lineno:
                    break  # it asks which way to go
                is_then = line <= at.body[-1].end_lineno
                other = at.orelse if is_then else at.body
                ranges += [lines(other)] if other else []
                body = at.body if is_then else at.orelse
            elif isinstance(at, (ast.With, ast.AsyncWith, ast.Try)):
                body = at.body
            else:
                body = None
        return ranges, False

    def body_of(self, function, line):
        """The statements of a function, or of the file itself."""
        if self.tree is None or function == "<module>":
            return self.tree and self.tree.body
        around = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, FUNCTIONS) and node.name == function and node.lineno <= line <= node.end_lineno
        ]
        return around[-1].body if around else None


def ways_out(statement):
    """Branches that would have left the function: it is behind them, so they were not taken."""
    ways = []
    while isinstance(statement, ast.If):
        if leaves(statement.body[-1]):
            ways.append(lines(statement.body))
        statement = statement.orelse[0] if len(statement.orelse) == 1 else None
    return ways


def leaves(statement):
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        called = statement.value.func
        return getattr(called, "attr", getattr(called, "id", None)) in ("exit", "_exit", "quit")
    return isinstance(statement, (ast.Return, ast.Raise))


def lines(body):
    return body[0].lineno, body[-1].end_lineno


def is_evaluation(call):
    return isinstance(call.func, ast.Attribute) and call.func.attr == "eval" and not call.args and not call.keywords
