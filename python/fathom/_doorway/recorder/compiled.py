"""Code that torch's compiler made: what in the model each of its allocations stands for.

Before every block of such code stands a comment with the nodes of the graph that it computes. The graph says of each
node which module, operator and line of the script it comes from. So an allocation is found by the line of the made
code, which PyTorch's history names.
"""

import ast
import contextlib
import re
import threading

from ..border import DOORWAY, guarded
from ..import_hooks import when_imported

SOURCES = re.compile(r"Source Nodes: \[(.*?)\], Original ATen: \[(.*?)\]")
STATEMENT = re.compile(r"\s*(\w+) = ")
ALLOCATION = re.compile(r"\s*(\w+) = empty_strided\w*\((\([^()]*\)), \([^()]*\), (?:device=[^,]+, dtype=)?torch\.(\w+)\)")
REUSE = re.compile(r"\s*(\w+) = (?:reinterpret_tensor\()?(\w+)[,;]")
CALL = re.compile(r"\.run\(|extern_kernels\.|torch\.ops\.|\bout=")
READY_MADE = re.compile(r"(?:extern_kernels|torch\.ops\.aten)\.(?:bias_)?(\w+)")
WORD = re.compile(r"\w+")
FRAME = re.compile(r'File "(.+)", line (\d+), in (.+)')
ROOT = re.compile(r"^[A-Z]\[[^\]]*\](?:\[[^\]]*\])*\.?")

# They compute nothing of their own, so that what stands beside them says more.
MOVES = {
    "view", "_unsafe_view", "reshape", "t", "transpose", "permute", "expand", "_to_copy", "clone", "unsqueeze", "squeeze",
    "slice", "select", "alias", "detach", "split", "unbind", "cat", "arange", "iota", "scalar_tensor", "full", "eq",
    "getitem", "constant_pad_nd", "as_strided", "empty", "zeros", "ones", "fill",
}  # fmt: skip

# What autograd makes before it calls a compiled backward pass.
ZEROS = "zeros for an unused gradient"

# In a backward pass these only bring gradients together.
SUMS = {"add", "sum"}


class Node:
    """What the compiler's graph says of one of its nodes."""

    def __init__(self, node):
        meta = node.meta
        operator = meta.get("original_aten") or node.target
        self.operator = re.sub(r"\.\w+$", "", str(operator).removeprefix("aten.").removeprefix("prims."))
        stack = meta.get("nn_module_stack") or meta.get("fwd_nn_module_stack") or {}
        modules = [value for value in stack.values() if isinstance(value, tuple) and len(value) == 2]
        self.path, self.kind = "", ""
        if modules:
            path, kind = modules[-1]
            self.path, self.kind = relative(str(path)), getattr(kind, "__name__", str(kind)).rsplit(".", 1)[-1]
        found = FRAME.findall(meta.get("stack_trace") or "")
        self.frames = [(file, name, int(line)) for file, line, name in found]
        self.name = next((each.name for each in meta.get("from_node") or [] if hasattr(each, "name")), node.name)


class Compiled:
    """What is known of all code that was made."""

    def __init__(self, party, modules, expect):
        self.party = party
        self.modules = modules
        self.expect = expect  # is told once that there is such code
        self.running = threading.local()  # the graph that this thread compiles
        self.graphs = {}  # file of made code -> (nodes by name, whether it is a backward pass)
        self.blocks = {}  # file -> what its lines allocate
        self.known = {}  # (file, line, module) -> what is answered
        self.numbers = {}  # path -> number of a module
        when_imported("torch._inductor.compile_fx", DOORWAY.callback(self.watch_compiler))
        when_imported("torch._inductor.codecache", DOORWAY.callback(self.watch_code))
        when_imported("torch._functorch.config", DOORWAY.callback(self.see_graphs))

    def see_graphs(self, config):
        """A cache of whole passes keeps code without its graph. The cache of code stays."""
        if getattr(config, "enable_autograd_cache", False):
            config.enable_autograd_cache = False

    def watch_compiler(self, module):
        if hasattr(module, "_compile_fx_inner"):
            self.party.around(module, "_compile_fx_inner", self.begin, self.end)

    def watch_code(self, module):
        self.party.around(module.PyCodeCache, "load_by_key_path", before=self.loaded)

    def begin(self, args, kwargs):
        graphs = self.running.__dict__.setdefault("graphs", [])
        graphs.append(self.read(args[0], bool((kwargs or {}).get("is_backward"))))

    def end(self, *_):
        self.running.graphs.pop()

    @staticmethod
    def read(module, is_backward):
        nodes = {}
        for node in module.graph.nodes:
            if node.op == "call_function":
                said = Node(node)
                for name in {said.name, node.name}:
                    nodes.setdefault(name, []).append(said)
        return nodes, is_backward

    def loaded(self, args, kwargs):
        """A file of made code is read."""
        graphs = getattr(self.running, "graphs", None)
        path = args[1] if len(args) > 1 else (kwargs or {}).get("path")
        if graphs and path not in self.graphs:
            if not self.graphs:
                self.expect()
            self.graphs[path] = graphs[-1]

    @guarded
    def origin(self, file, line, module):
        """What a line of made code allocates, when this module runs: the module's number, the operator, the node, the
        frames of the script, and the tensor. `None` if that is not known. Without a file it is what autograd gives to a
        backward pass of made code: gradients of results that nobody used."""
        key = file, line, module
        if key not in self.known:
            self.known[key] = self.find(file, line, module)
        return self.known[key]

    def find(self, file, line, module):
        if not file:
            return self.numbers_of(module)[0], "", ZEROS, [], ""
        if file not in self.blocks:
            with contextlib.suppress(OSError), open(file, encoding="utf-8") as made:
                self.blocks[file] = read_blocks(made.read().splitlines())
        names, operators, form = self.blocks.get(file, {}).get(line, ((), (), ""))
        nodes, is_backward = self.graphs[file]
        found = [node for name in names for node in nodes.get(name, ())]
        if not found:
            return None
        node = main(found, operators, is_backward)
        others = [operator for operator in operators if operator != node.operator]
        text = node.operator + (f" (a guess: fused with {', '.join(others)})" if others else "")
        number = self.number(module, node)
        return number, "" if is_backward else text, text if is_backward else "", node.frames, form

    def number(self, outer, node):
        """The module of a node, of a model that runs as module `outer`."""
        whole, bases = self.numbers_of(outer)
        classes = self.modules.classes
        for base in bases if node.path else ():
            number = self.numbers.get(f"{base}.{node.path}".lstrip("."))
            if number and classes[number] == node.kind:
                return number
        ends = [number for path, number in self.numbers.items() if node.path and f".{path}".endswith(f".{node.path}")]
        if len(ends) == 1 and classes[ends[0]] == node.kind:
            return ends[0]
        return whole

    def numbers_of(self, outer):
        """The number of the model that runs as module `outer`, and where its parts may have their paths."""
        if not self.modules.roots:  # a function was compiled, and no module has been called
            self.modules.searches += 1
            self.modules.search()
        paths = self.modules.paths
        if len(self.numbers) != len(paths):
            self.numbers = {path: number for number, path in enumerate(paths)}
        # What the compiler puts around a model has the model's path, and comes before it.
        is_wrapper = self.modules.classes[outer] == "OptimizedModule"
        return self.numbers[paths[outer]] if is_wrapper else outer, [paths[outer], ""]


def main(nodes, operators, is_backward):
    """The one that says most of several that were fused: the last that is no mere move."""
    for weak in (MOVES | SUMS if is_backward else MOVES, MOVES, set()):
        for operator in reversed(operators):
            of_operator = [node for node in nodes if node.operator == operator]
            if of_operator and operator not in weak:
                return of_operator[-1]
    return nodes[-1]


def relative(path):
    """`blocks.0.fc` of `L['self'].blocks.0.fc`, and of other ways to say so."""
    path = re.sub(r"\._modules\['(\w+)'\]", r".\1", path)
    path = re.sub(r"(?<=\w)\[(\d+)\]", r".\1", ROOT.sub("", path))
    return path.removeprefix("_orig_mod.").removeprefix("_orig_mod")


def read_blocks(lines):
    """(names of nodes, operators, tensor) for each line of made code that may allocate, from 1 on.

    A tensor belongs to the block that uses it first, which begins with a comment; a function that allocates by itself
    stands in its own.
    """
    found, waiting, said = {}, {}, None
    for number, line in enumerate(lines, 1):
        if comment := SOURCES.search(line):
            said = names(comment[1]), tuple(dict.fromkeys(map(operator_of, names(comment[2]))))
            continue
        statement = STATEMENT.match(line)
        if reuse := REUSE.match(line):
            if reuse[2] in waiting:
                waiting[reuse[1]] = waiting.pop(reuse[2])
            continue
        if allocation := ALLOCATION.match(line):
            waiting[allocation[1]] = number, form(allocation[2], allocation[3])
            if said and allocation[1].startswith("workspace"):  # scratch memory of the kernel after it
                found[number] = *said, waiting.pop(allocation[1])[1]
            continue
        if said is None:
            continue
        is_call = CALL.search(line)
        block = said if not (ready := READY_MADE.search(line)) else (said[0], with_last(said[1], ready[1]))
        if statement or is_call:
            found[number] = *block, ""
        used = set(WORD.findall(line)) if is_call else ()
        for name in [name for name in waiting if name in used]:
            place, tensor = waiting.pop(name)
            found[place] = *block, tensor
    return found


def with_last(operators, last):
    """A kernel that is not made computes this one, whatever is named beside it."""
    return (*(each for each in operators if each != last), last) if last in operators else operators


def names(text):
    return tuple(name.strip() for name in text.split(",") if name.strip())


def operator_of(name):
    return name.removeprefix("aten.").removeprefix("prims.")


def form(shape, dtype):
    """`float32[2, 3]`; empty where sizes are not written as numbers."""
    with contextlib.suppress(ValueError, SyntaxError):
        return f"{dtype}[{', '.join(map(str, ast.literal_eval(shape)))}]"
    return ""
