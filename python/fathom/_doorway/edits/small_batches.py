"""The statements from the model to the backward pass, once for each part of a batch."""

import ast

from . import Blocked
from .passage import bound_in_loop, names_read, names_read_later


def write(edits, found, parts, batch, is_sum=False):
    if isinstance(found, Exception):
        raise found
    source = found.source
    statements = found.statements(through_backward=True)
    sizes = {size for size in ((batch or 0) // parts, batch) if size}
    inside, read = bound_in_loop(found), names_read(statements)
    names = [name for name, (_, size) in found.variables.items() if name in read & inside and size in sizes]
    if not names:
        raise Blocked(found.place(), "no variable of the loop holds the batch")
    later = names_read_later(found)
    bound = names_bound(statements)
    for name in names:
        if name in bound:
            raise Blocked(found.place(), f"`{name}` gets another value before the backward pass")
        if name in later:
            raise Blocked(found.place(), f"`{name}` is read again behind the backward pass")
    first = [each for each in statements[:-1] if is_zero_grad(each)]
    for statement in statements:
        if statement not in first and any(speaks_of_gradients(node) for node in ast.walk(statement)):
            raise Blocked(source.place(statement.lineno), "gradients are dropped or read before the backward pass")
    loss = loss_of(source, statements[-1])
    only = bound & later
    if only - {getattr(loss, "id", None)}:
        name = min(only - {getattr(loss, "id", None)})
        raise Blocked(found.place(), f"`{name}` is read again behind the backward pass, and would be of the last part alone")
    header = [source.code(source.begin(each), source.end(each)) for each in first]
    if not is_sum:
        whole = source.free_name("whole")
        size = rows_of(names[0], found.variables)
        header.append(f"{whole} = {size}")
        divide(edits, source, loss, f"({size} / {whole})")
    if only:
        header.append(f"# behind this loop, `{loss.id}` is that of its last part")
    found.wrapped(edits, [*header, loop_over(names, found.variables, parts)], through_backward=True, without=first)
    for statement in first:
        begin = source.before(statement)
        edits.note(source, begin, source.after(statement), "")


def is_zero_grad(statement):
    call = statement.value if isinstance(statement, ast.Expr) else None
    is_method = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
    return is_method and call.func.attr == "zero_grad" and statement.lineno == statement.end_lineno


def speaks_of_gradients(node):
    return isinstance(node, ast.Attribute) and node.attr in ("grad", "zero_grad", "step")


def loss_of(source, statement):
    """What `loss.backward()` and `accelerator.backward(loss)` are called with."""
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    calls = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr in ("backward", "manual_backward")]
    if len(calls) != 1:
        raise Blocked(source.place(statement.lineno), "it is not clear what the backward pass is called with")
    return calls[0].args[0] if calls[0].args else calls[0].func.value


def divide(edits, source, loss, share):
    """A part of the loss: as large as the part of the batch, of which the last may be smaller."""
    begin, end = source.begin(loss), source.end(loss)
    is_receiver = isinstance(source.parents[loss], ast.Attribute)
    is_name = isinstance(loss, (ast.Name, ast.Attribute, ast.Call))
    text = f"{source.code(begin, end) if is_name else '(' + source.code(begin, end) + ')'} * {share}"
    edits.note(source, begin, end, f"({text})" if is_receiver else text)


def names_bound(statements):
    nodes = (node for statement in statements for node in ast.walk(statement) if isinstance(node, ast.Name))
    return {node.id for node in nodes if isinstance(node.ctx, ast.Store)}


def rows_of(name, variables):
    return f"len(next(iter({name}.values())))" if variables[name][0] else f"len({name})"


def loop_over(names, variables, parts):
    def chunks(name):
        if variables[name][0]:
            return f"[dict(zip({name}, part)) for part in zip(*(each.chunk({parts}) for each in {name}.values()))]"
        return f"{name}.chunk({parts})"

    if len(names) == 1:
        return f"for {names[0]} in {chunks(names[0])}:"
    return f"for {', '.join(names)} in zip({', '.join(map(chunks, names))}):"
