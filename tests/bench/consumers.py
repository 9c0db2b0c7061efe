"""Works on events; at each line on its standard input the one who works is killed, and another takes over.

They are forked from a process that has imported everything: what a storm is about is dying, not importing.
"""

import asyncio
import os
import signal
import sys

from tests.core.webhooks.consuming_process import consume

while True:
    worker = os.fork()
    if worker == 0:
        asyncio.run(consume(sys.argv[1]))
    if not sys.stdin.readline():
        break
    os.kill(worker, signal.SIGKILL)
    os.waitpid(worker, 0)
    print("killed", flush=True)
os.kill(worker, signal.SIGKILL)
