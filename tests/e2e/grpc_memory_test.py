#!/usr/bin/env python3
"""Strangers cannot fill gRPC with messages that do not end: beyond limits.max_grpc_bytes they are refused.

They begin calls whose one message is 7.5 MiB, send all of it but its end, and wait: raw HTTP/2, as no client
library does that. Without a limit nobody would be refused. How much is resident by then is told and not judged:
gRPC looks at its limit now and then, not at each byte.

usage: grpc_memory_test.py TIDEMARKD TIDEMARK
"""
import json
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

LIMIT = 32 << 20
STRANGERS = 40
MESSAGE = 15 << 19
PATIENCE_S = 40


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def text(value):
    return bytes([len(value)]) + value


# HPACK literals: :method POST, :scheme http, :path, :authority, content-type, te.
HEADERS = (b"\x83\x86\x04" + text(b"/tidemark.v1.QueryService/Quantiles") + b"\x01" + text(b"localhost")
           + b"\x0f\x10" + text(b"application/grpc") + b"\x00" + text(b"te") + text(b"trailers"))


class Stranger:
    """Keeps to the windows that the daemon grants, so that it has no reason to refuse the bytes."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setblocking(False)
        self.window = self.stream_window = self.stream_first = 65535
        self.read = b""
        self.out = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") + frame(1, 4, 1, HEADERS)
        self.sent = 0
        self.ended = False

    def done(self):
        return self.ended or (self.sent >= MESSAGE - 100 and not self.out)

    def step(self):
        try:
            while not self.ended:
                got = self.socket.recv(65536)
                self.ended = not got
                self.read += got
        except BlockingIOError:
            pass
        except OSError:
            self.ended = True
        while len(self.read) >= 9 and len(self.read) >= 9 + int.from_bytes(self.read[:3], "big"):
            end = 9 + int.from_bytes(self.read[:3], "big")
            self.take(self.read[3], self.read[4], int.from_bytes(self.read[5:9], "big"), self.read[9:end])
            self.read = self.read[end:]
        while not self.ended and len(self.out) < 1 << 17:
            size = min(16384, self.window, self.stream_window, MESSAGE - 100 - self.sent)
            if size < 6:
                break
            head = b"" if self.sent else b"\0" + struct.pack(">I", MESSAGE)
            self.out += frame(0, 0, 1, head + b"x" * (size - len(head)))
            self.window -= size
            self.stream_window -= size
            self.sent += size
        try:
            while self.out and not self.ended:
                self.out = self.out[self.socket.send(self.out):]
        except BlockingIOError:
            pass
        except OSError:
            self.ended = True

    def take(self, kind, flags, stream, payload):
        if kind == 4 and not flags & 1:  # SETTINGS
            for at in range(0, len(payload), 6):
                if payload[at:at + 2] == b"\0\x04":
                    first = int.from_bytes(payload[at + 2:at + 6], "big")
                    self.stream_window += first - self.stream_first
                    self.stream_first = first
            self.out += frame(4, 1, 0, b"")
        elif kind == 8:  # WINDOW_UPDATE
            if stream:
                self.stream_window += int.from_bytes(payload, "big")
            else:
                self.window += int.from_bytes(payload, "big")
        elif kind == 6 and not flags & 1:  # PING
            self.out += frame(6, 1, 0, payload)
        elif kind in (1, 3, 7):  # an answer, RST_STREAM, GOAWAY: refused
            self.ended = True


def resident_bytes(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    return int(status.partition("VmRSS:")[2].split()[0]) << 10


def main(arguments):
    if len(arguments) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        ports_file = pathlib.Path(folder) / "ports.json"
        listen = [flag for name in ("grpc", "tcp", "http", "statsd") for flag in (f"--{name}", "127.0.0.1:0")]
        daemon = subprocess.Popen([arguments[1], *listen, "--ports-file", str(ports_file), "--sorter", "cpu",
                                   "--measure-budget-ms", "10", "--max-grpc-bytes", str(LIMIT)],
                                  stderr=subprocess.DEVNULL)
        try:
            while not ports_file.exists():
                assert daemon.poll() is None, "the daemon did not start"
                time.sleep(0.01)
            port = json.loads(ports_file.read_text(encoding="utf-8"))["grpc"]
            before = most = resident_bytes(daemon)
            strangers = [Stranger(port) for _ in range(STRANGERS)]
            end = time.monotonic() + PATIENCE_S
            while not all(one.done() for one in strangers) and time.monotonic() < end:
                for one in strangers:
                    one.step()
                most = max(most, resident_bytes(daemon))
                if sum(one.ended for one in strangers) > STRANGERS // 2:
                    break
            refused = sum(one.ended for one in strangers)
            print(f"{sum(one.sent for one in strangers) >> 20} MiB sent by {STRANGERS} strangers, {refused} refused; "
                  f"resident memory grew by {(most - before) >> 20} MiB, limit {LIMIT >> 20}")
            assert refused > 0, "nobody was refused"
            for one in strangers:
                one.socket.close()
            # Others are served.
            info = subprocess.run([arguments[2], "--server", f"127.0.0.1:{port}", "info"], check=False,
                                  capture_output=True, text=True, timeout=PATIENCE_S)
            assert info.returncode == 0, info.stderr
        finally:
            daemon.send_signal(signal.SIGTERM)
            status = daemon.wait(timeout=PATIENCE_S)
        assert status == 0, f"exit status {status}"
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
