"""Run a broker while standard input is open, then end it and delete its folder.

Usage: ``python -P guard.py FOLDER COMMANDS SIGNAL``, with the commands as JSON and the number of the signal
that ends them. They run in the folder one after another, each after the success of the one before.

The process that starts this one holds the other end of the pipe, and never writes to it. The kernel closes
that end when the holder ends, also after SIGKILL. So no process and no folder is left over in any case.

``PR_SET_PDEATHSIG`` is not an alternative. Linux sends that signal as soon as the *thread* ends that started
the child, other systems do not have it, and the folder would stay.

This file imports nothing of the package, so that it starts at once.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from asyncio.subprocess import DEVNULL
from contextlib import suppress


async def guard(folder: str, commands: list[list[str]], end_signal: int) -> int:
    """Run the commands one after another until one fails or standard input is closed.

    Parameters
    ----------
    folder : str
        The folder to run them in. It is deleted when standard input is closed, and stays otherwise.
    commands : list of list of str
        The commands, each with its arguments.
    end_signal : int
        The signal that ends a command when standard input is closed.

    Returns
    -------
    int
        The exit code of the last command that ended by itself; 0 after standard input was closed.
    """
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
            with suppress(ProcessLookupError):  # the process ended by itself at the same moment
                process.send_signal(end_signal)
            await ended
            shutil.rmtree(folder)
            return 0
        if code := await ended:
            break
    closed.cancel()
    return code


if __name__ == "__main__":
    sys.exit(asyncio.run(guard(sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3]))))
