"""Searches for the fastest kernel end with the first candidate that runs.

No kernel takes time on the phantom: all candidates tie, and the first is kept. So no other is compiled. What a
search takes from the card is still taken: the first candidate is timed by Triton's and Inductor's own code, with
their copies of arguments and their buffer that clears the cache. The other candidates would take the same: they
differ in tile sizes, warps and stages. A kernel whose candidates allocate differently is not told apart.

Choices that were made here are not kept for later runs: a real card would find them, and not search.
"""

import math

from .border import DOORWAY
from .import_hooks import when_imported

NEVER = [math.inf] * 3  # the times of a candidate that was not tried: median, shortest, longest


def install():
    when_imported("triton.runtime.autotuner", DOORWAY.callback(_shorten_triton))
    when_imported("torch._inductor.runtime.triton_heuristics", DOORWAY.callback(_shorten_inductor))
    when_imported("torch._inductor.select_algorithm", DOORWAY.callback(_shorten_selection))


def _shorten_triton(module):
    """`triton.autotune`: a search begins with `prune_configs` and asks `_bench` for each candidate."""

    def make_prune(theirs):
        def prune_configs(self, *args, **kwargs):
            self.fathom_has_chosen = False
            return theirs(self, *args, **kwargs)

        return prune_configs

    def make_bench(theirs):
        def bench(self, *args, **kwargs):
            if getattr(self, "fathom_has_chosen", False):
                return NEVER
            times = theirs(self, *args, **kwargs)
            self.fathom_has_chosen = math.isfinite(times[0] if isinstance(times, (list, tuple)) else times)
            return times

        return bench

    def make_disk_cache(theirs):
        def check_disk_cache(_self, _key, _configs, search):
            theirs.like(search)()
            return False

        return check_disk_cache

    kind = module.Autotuner
    DOORWAY.instead(kind, "prune_configs", make_prune)
    DOORWAY.instead(kind, "_bench", make_bench)
    if hasattr(kind, "check_disk_cache"):
        DOORWAY.instead(kind, "check_disk_cache", make_disk_cache)


def _shorten_inductor(module):
    """Kernels of torch's compiler, which compiles all candidates before it times them.

    Where there is something to search, `run` is told that it may tune further: that is where the one candidate is
    timed, in each process that runs it, also if its code was compiled earlier.
    """

    def make_init(theirs):
        def init(self, *args, **kwargs):
            theirs(self, *args, **kwargs)
            first, *self.fathom_untried = self.configs
            meta = self.inductor_meta
            further = meta.get("coordinate_descent_tuning") or meta.get("combo_tuning_groups")
            self.configs, self.save_cache_hook = [first], None
            self.inductor_meta = {
                **meta,
                "coordinate_descent_tuning": bool(self.fathom_untried or further),
                "combo_tuning_groups": None,
                "dynamic_scale_rblock": False,
            }

        return init

    def make_precompile(theirs):
        def precompile(self, *args, **kwargs):
            while True:
                try:
                    return theirs(self, *args, **kwargs)
                except RuntimeError:  # it needs more shared memory than the card has, or the compiler gave up
                    if not _take_next(self):
                        raise

        return precompile

    def make_tuning(theirs):
        def coordinate_descent_tuning(self, _launcher, *args, **kwargs):
            self.inductor_meta["coordinate_descent_tuning"] = False
            while True:
                (time,) = theirs.like(self.benchmark_all_configs)(*args, **kwargs).values()
                if math.isfinite(time) or not _take_next(self):
                    return self.launchers[0]
                theirs.like(self.precompile)()

        return coordinate_descent_tuning

    kind = module.CachingAutotuner
    DOORWAY.instead(kind, "__init__", make_init)
    DOORWAY.instead(kind, "precompile", make_precompile)
    DOORWAY.instead(kind, "coordinate_descent_tuning", make_tuning)


def _take_next(tuner):
    """Goes on to the next candidate, which is not compiled yet; says whether there is one."""
    if not tuner.fathom_untried:
        return False
    tuner.configs, tuner.compile_results, tuner.launchers = [tuner.fathom_untried.pop(0)], [], []
    if tuner.fn.fn is None and hasattr(tuner, "_ensure_kernel_loaded"):
        tuner._ensure_kernel_loaded()
    return True


def _shorten_selection(module):
    """`max-autotune`: ready-made kernels against templates. The first of each kind is left: a template can be fused
    with what follows and a ready-made kernel cannot, so that which kinds there are decides about temporaries."""

    def make_call(theirs):
        def call(self, name, choices, *args, **kwargs):
            kept = list({type(choice): choice for choice in reversed(choices)}.values())[::-1]
            has_ready_made = any(isinstance(choice, module.ExternKernelCaller) for choice in kept)
            if kwargs.get("return_multi_template") and not has_ready_made:
                kept = choices  # compiled later, when it is too late to try another
            try:
                return theirs(self, name, kept, *args, **kwargs)
            except module.NoValidChoicesError:
                return theirs(self, name, choices, *args, **kwargs)

        return call

    DOORWAY.instead(module.AlgorithmSelectorCache, "__call__", make_call)
