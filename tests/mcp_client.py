"""A client of the Model Context Protocol, as agents are: starts `fathom mcp`, calls its tools, and prints what came as JSON.

Run by the Python of `.venvs/mcp`, which has the package `mcp`; test_mcp.py says what to expect.
"""

import json
import os
import sys

import anyio
from mcp import ClientSession, StdioServerParameters, stdio_client

CALLS = json.loads(sys.argv[2])


def below(root):
    """Processes below one, by /proc."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                parents[int(name)] = int(file.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            pass  # it has ended meanwhile
    found, open_ = [], [root]
    while open_:
        children = [pid for pid, parent in parents.items() if parent in open_]
        found += children
        open_ = children
    return found


async def call(session, words):
    """One call; with `cancel_after` it is given up after so many seconds."""
    told = []

    async def hear(progress, _total, message):
        told.append([progress, message])

    with anyio.move_on_after(words.get("cancel_after", 600)) as scope:
        answer = await session.call_tool(words["tool"], words["arguments"], progress_callback=hear)
    if scope.cancelled_caught:
        was = len(below(os.getpid()))
        with anyio.move_on_after(30):
            while len(below(os.getpid())) > 1:
                await anyio.sleep(0.1)
        return {"cancelled": True, "processes": was, "left": len(below(os.getpid())), "told": told}
    texts = [block.text for block in answer.content]
    return {"is_error": answer.is_error, "texts": texts, "answer": answer.structured_content, "told": told}


async def main():
    server = StdioServerParameters(command=sys.argv[1], args=["mcp"], env=dict(os.environ))
    with open(os.devnull, "w") as nowhere:
        async with stdio_client(server, errlog=nowhere) as streams, ClientSession(*streams) as session:
            hello = await session.initialize()
            tools = (await session.list_tools()).tools
            answers = [await call(session, words) for words in CALLS]
    shown = [[tool.name, tool.input_schema, tool.output_schema] for tool in tools]
    print(json.dumps({"server": hello.server_info.name, "tools": shown, "answers": answers}))


anyio.run(main)
