"""A linear layer and the cross entropy of what it gives, as one function that never has all logits at once."""

import ast

import torch

from . import Blocked
from .calls import Call, caller
from .places import value_of
from .source import own_nodes

# About so many logits are there at once.
PART = 1 << 24

NAME = "linear_cross_entropy"

FUNCTION = '''

def linear_cross_entropy(hidden, head, targets, rows, ignore_index=-100):
    """The mean cross entropy of `head(hidden)`, some rows at a time: all logits are never there at once."""
    hidden, targets = hidden.reshape(-1, hidden.shape[-1]), targets.reshape(-1)

    def part(hidden, targets):
        return torch.nn.functional.cross_entropy(head(hidden), targets, ignore_index=ignore_index, reduction="sum")

    parts = zip(hidden.split(rows), targets.split(rows))
    total = sum(torch.utils.checkpoint.checkpoint(part, *each, use_reentrant=False) for each in parts)
    return total / (targets != ignore_index).sum()
'''

# What gives numbers another shape and leaves them in their order.
SHAPES = ("view", "reshape", "flatten", "contiguous")


def write(edits, shape, ignore_index):
    """Where the loss of logits of this shape is called at this moment."""
    frame = caller()
    call = Call(frame)
    source = call.source
    if len(call.node.args) != 2 or any(each.arg not in ("ignore_index", "reduction") for each in call.node.keywords):
        raise call.blocked("the loss has other arguments")
    scope = source.scope(frame.f_code)
    inner = call.node.args[0]
    is_moved = is_method(inner, ("transpose", "permute"))
    if is_moved and not moves_classes(inner, len(shape)) or is_moved != (len(shape) != 2):
        raise call.blocked("the logits are put into another order")
    inner = same_order(inner.func.value if is_moved else inner)
    slices = None
    if isinstance(inner, ast.Subscript) and keeps_classes(inner.slice):
        slices, inner = text(source, inner.slice), same_order(inner.value)
    if isinstance(inner, ast.Call):
        head, removed = inner, None
    elif isinstance(inner, ast.Name):
        head, removed = assigned(source, scope, inner, call)
    else:
        raise call.blocked("the logits are no variable")
    layer = value_of(head.func, frame)
    if len(head.args) != 1 or head.keywords or not isinstance(layer, torch.nn.Linear) or layer.out_features != shape[1]:
        raise Blocked(source.place(head.lineno), "the logits do not come straight out of a linear layer")
    hidden = text(source, head.args[0])
    if slices is not None:
        hidden = f"{hidden}[{slices}]" if isinstance(head.args[0], (ast.Name, ast.Attribute)) else f"({hidden})[{slices}]"
    targets = text(source, same_order(call.node.args[1]))
    words = [hidden, text(source, head.func), targets, f"rows={max(1, PART // shape[1])}"]
    words += [f"ignore_index={ignore_index}"] * (ignore_index != -100)
    edits.note(source, source.begin(call.node), source.end(call.node), f"{NAME}({', '.join(words)})")
    if removed is not None:
        edits.note(source, *removed)
    define(edits, source)


def is_method(node, names):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names


def same_order(node):
    """What is given another shape, without that."""
    while is_method(node, SHAPES):
        node = node.func.value
    return node


def moves_classes(node, dimensions):
    """Whether it moves the last dimension behind the first and leaves the others in their order, as the loss wants them."""
    try:
        order = [ast.literal_eval(each) for each in node.args]
    except ValueError:
        return False
    if any(type(each) is not int for each in order):
        return False
    order = [each % dimensions for each in order]
    if node.func.attr == "transpose":
        return dimensions == 3 and sorted(order) == [1, 2]
    return order == [0, dimensions - 1, *range(1, dimensions - 1)]


def keeps_classes(node):
    """Whether an index leaves the last dimension alone: `..., :-1, :` and `:, :-1`, of which a linear layer can be given the
    same."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    if not all(isinstance(part, ast.Slice) or isinstance(part, ast.Constant) and part.value is ... for part in parts):
        return False
    is_all = isinstance(parts[-1], ast.Slice) and parts[-1].lower is parts[-1].upper is parts[-1].step is None
    return is_all if any(isinstance(part, ast.Constant) for part in parts) else is_all or len(parts) < 3


def assigned(source, scope, name, call):
    """The call that gives the variable its value, and what to write so that it is not made where the loss is wanted: (call,
    edit)."""
    statement = setting_of(source, scope, name, call)
    inside = {id(node) for node in ast.walk(call.node)}
    same = [node for node in own_nodes(scope) if isinstance(node, ast.Name) and node.id == name.id and id(node) not in inside]
    reading = [node for node in same if isinstance(node.ctx, ast.Load) and begin_of(statement) < begin_of(node)]
    head = statement.value
    changed = {node.id for node in own_nodes(scope) if is_set_between(node, statement, call.node)}
    if changed & {node.id for node in ast.walk(head) if isinstance(node, ast.Name)}:
        raise call.blocked("what the logits are made of gets another value before the loss")
    if not reading:
        return head, (source.before(statement), source.after(statement), "")
    for node in reading:
        if not is_given_back(source, node):
            raise Blocked(source.place(node.lineno), f"`{name.id}` is read here, too")
    # As in Liger's models: where gradients of the loss are wanted, nobody wants the logits.
    wanted = conditions_of(source, call.node, statement)
    if changed & {node.id for test in wanted for node in ast.walk(test) if isinstance(node, ast.Name)}:
        raise call.blocked(f"whether the loss is wanted is not known where `{name.id}` is set")
    conditions = " and ".join(["torch.is_grad_enabled()", *(f"({text(source, test)})" for test in wanted)])
    begin, end = source.begin(head), source.end(head)
    return head, (begin, end, f"None if {conditions} else {source.code(begin, end)}")


def setting_of(source, scope, name, call):
    """The statement that surely gave the variable its value last."""
    loss = next(each for each in source.ancestors(call.node) if isinstance(each, ast.stmt))
    around = [each for each in source.ancestors(loss) if isinstance(each, ast.stmt)]
    found = None
    for node in own_nodes(scope):
        if not (isinstance(node, ast.Name) and node.id == name.id and isinstance(node.ctx, ast.Store)):
            continue
        if begin_of(node) < begin_of(loss) and (found is None or begin_of(found) < begin_of(node)):
            found = node
    statement = source.parents.get(found) if found is not None else None
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or not isinstance(statement.value, ast.Call):
        raise call.blocked(f"`{name.id}` is not set by a call alone")
    if not any(statement in source.block_of(each) for each in around if each is not scope):
        raise call.blocked(f"`{name.id}` is not always set by the same call")
    return statement


def begin_of(node):
    return node.lineno, node.col_offset


def is_set_between(node, statement, call):
    is_store = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    return is_store and (statement.end_lineno, statement.end_col_offset) < begin_of(node) < begin_of(call)


def is_given_back(source, node):
    """Whether a variable is read only as a part of what the function returns: by itself, in a tuple, or under a name."""
    inner, outer = node, source.parents[node]
    while isinstance(outer, (ast.Tuple, ast.Dict, ast.keyword)) or isinstance(outer, ast.Call) and isinstance(inner, ast.keyword):
        inner, outer = outer, source.parents[outer]
    return isinstance(outer, ast.Return)


def conditions_of(source, call, statement):
    """The tests between the block of a statement and the loss."""
    found, block = [], source.block_of(statement)
    inner = call
    for outer in source.ancestors(call):
        if isinstance(outer, ast.If) and inner in outer.orelse or isinstance(outer, (ast.IfExp, ast.Try, ast.While)):
            raise Blocked(source.place(outer.lineno), "it is not clear when the loss is wanted")
        if isinstance(outer, ast.If) and inner is not outer and outer not in block:
            found.insert(0, outer.test)
        inner = outer
        if outer in block:
            break
    # The outermost may be the test itself.
    return [inner.test, *found] if isinstance(inner, ast.If) else found


def text(source, node):
    return source.code(source.begin(node), source.end(node))


def define(edits, source):
    """The function, behind the imports at the top."""
    last = None
    for statement in source.tree.body:
        if not isinstance(statement, (ast.Import, ast.ImportFrom)) and not is_text(statement):
            break
        last = statement
    at = source.after(last) if last is not None else source.first
    if any(isinstance(node, ast.FunctionDef) and node.name == NAME for node in source.tree.body):
        raise Blocked("", f"the file has a function `{NAME}` already")
    source.imports(edits, "import torch.utils.checkpoint")
    edits.note(source, at, at, FUNCTION.replace("\n", source.newline))


def is_text(statement):
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
