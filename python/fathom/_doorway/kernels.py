"""The end of a run inside a notebook's kernel. `SystemExit` would be an error of its cell there, and the tool that
executes the notebook would give up with a traceback: so the cell ends quietly, and those behind it are not executed.
"""

import sys


class StoppedCell(BaseException):
    """Ends the cell in which the last step was taken."""


def shell():
    """The shell of the kernel that this process is; None in any other process."""
    get = getattr(sys.modules.get("IPython"), "get_ipython", None)
    found = get() if get is not None else None
    return found if hasattr(found, "kernel") else None


def stop():
    """Raises what ends the cell, where there is one."""
    kernel = shell()
    if kernel is None:
        return
    theirs, known = kernel.CustomTB, tuple(kernel.custom_exceptions)

    def handle(self, kind, error, trace, tb_offset=None):
        if not isinstance(error, StoppedCell):
            return theirs(kind, error, trace, tb_offset=tb_offset)
        result = self.displayhook.exec_result
        if result is not None:
            result.error_in_exec = None
        print("fathom: enough steps were seen; what follows in this notebook is not executed", file=sys.stderr)
        return None

    async def skip(code_obj, result=None, *, async_=False):
        return False

    kernel.set_custom_exc((*known, StoppedCell), handle)
    kernel.run_code = skip
    raise StoppedCell
