"""Program that uses the embedded server until its standard input ends."""

import sys
from pathlib import Path

from infrastructure.database.embedded_postgres import EmbeddedPostgres

server = EmbeddedPostgres(Path(sys.argv[1]))
server.start()
sys.stdout.write("started\n")
sys.stdout.flush()
sys.stdin.read()
server.stop()
