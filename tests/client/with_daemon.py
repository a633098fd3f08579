"""Runs a program while a daemon runs: with_daemon.py DAEMON PROGRAM

The program gets the daemon's gRPC and framed TCP ports as arguments. Exit status: the program's; 1 if
the daemon does not start, or does not end with 0.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

# Far above what either takes on a busy machine.
LIMIT_S = 60


def main(daemon, program):
    with tempfile.TemporaryDirectory() as folder:
        ports_file = os.path.join(folder, "ports.json")
        flags = [f"--{name}=127.0.0.1:0" for name in ("grpc", "tcp", "http", "statsd")]
        server = subprocess.Popen([daemon, *flags, "--ports-file", ports_file])
        try:
            deadline = time.monotonic() + LIMIT_S
            while not os.path.exists(ports_file):
                if server.poll() is not None or time.monotonic() > deadline:
                    print("the daemon did not start", file=sys.stderr)
                    return 1
                time.sleep(0.01)
            with open(ports_file, encoding="utf-8") as file:
                ports = json.load(file)
            status = subprocess.run(
                [program, str(ports["grpc"]), str(ports["tcp"])], timeout=LIMIT_S, check=False
            ).returncode
            server.terminate()
            return status or (1 if server.wait(LIMIT_S) else 0)
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
