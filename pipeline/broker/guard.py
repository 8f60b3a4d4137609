"""Run a broker for as long as standard input is open, then end it and delete its folder.

``python -P guard.py FOLDER COMMANDS``, with the commands as JSON: each is run in the folder, the next when
the one before has ended well. The one who starts this holds the other end of the pipe and never writes to it.
The kernel closes that end when its holder is gone, also after SIGKILL, so nothing is left behind in any case.

Linux could signal a child on its parent's death (``PR_SET_PDEATHSIG``), but does so as soon as the *thread*
that started the child ends, other systems do not have it, and the folder would stay. This file imports
nothing of the package, to be up at once.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from asyncio.subprocess import DEVNULL
from contextlib import suppress


async def guard(folder: str, commands: list[list[str]]) -> int:
    """Run the commands; give the exit code of the last that ran, and leave the folder, if one fails."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer
    )
    closed = asyncio.ensure_future(reader.read())
    code = 0
    for command in commands:
        process = await asyncio.create_subprocess_exec(*command, cwd=folder, stdin=DEVNULL)
        ended = asyncio.ensure_future(process.wait())
        await asyncio.wait({closed, ended}, return_when=asyncio.FIRST_COMPLETED)
        if closed.done():
            with suppress(ProcessLookupError):  # it has ended by itself at the same moment
                process.kill()  # nothing of it will be kept, so it need not tidy up
            await ended
            shutil.rmtree(folder)
            return 0
        if code := await ended:
            break
    closed.cancel()
    return code


if __name__ == "__main__":
    sys.exit(asyncio.run(guard(sys.argv[1], json.loads(sys.argv[2]))))
