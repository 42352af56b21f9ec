"""The script's own part of stacks and errors: where it was, and how it ended, without our frames and the libraries'."""

import traceback

import torch

from .. import contract
from .file_owner import is_library, is_ours


def describe(error):
    """How an uncaught exception ended the script."""
    seen, link = set(), error
    while link is not None and id(link) not in seen:
        if isinstance(link, torch.cuda.OutOfMemoryError):
            where = user_frame_of_traceback(link.__traceback__)
            return contract.end(kind="out_of_memory", message=str(link), **where)
        seen.add(id(link))
        link = link.__cause__ or link.__context__
    where = user_frame_of_traceback(error.__traceback__)
    return contract.end(kind="exception", type=type(error).__name__, message=str(error)[:2000], **where)


def without_ours(trace):
    """A traceback as it would be without us; also where it is printed as part of another error."""
    first = last = None
    while trace is not None:
        if not is_ours(trace.tb_frame.f_code.co_filename):
            if last is None:
                first = trace
            else:
                last.tb_next = trace
            last = trace
        trace = trace.tb_next
    if last is not None:
        last.tb_next = None
    return first


def user_frame(frame):
    """The innermost line of the user's own code."""
    own = None
    while frame is not None:
        if not is_library(frame.f_code.co_filename):
            own = {"file": frame.f_code.co_filename, "line": frame.f_lineno}
            break
        frame = frame.f_back
    return own or {}


def user_frame_of_traceback(trace):
    frames = [f for f in traceback.extract_tb(trace) if not is_library(f.filename)]
    return {"file": frames[-1].filename, "line": frames[-1].lineno} if frames else {}
