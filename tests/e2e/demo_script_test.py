"""`./dev demo` as people end it: Ctrl-C on a terminal, SIGTERM, `timeout`, its own time.

Usage: demo_script_test.py DEV_SCRIPT FOLDER_OF_PROGRAMS [unittest arguments]

Runs the real script on programs that are built already. Whatever ends it, the summary is printed, the
exit status is 0, and no process is left: each run carries a marker in its environment, by which its
processes are found in /proc.
"""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
import unittest
import uuid

DEV = PROGRAMS = ""
# Far above what any step takes on a busy machine; only a failure waits for so long.
PATIENCE_S = 60
SUMMARY = "every one acknowledged, and n agrees"


def processes(marker):
    """Ids and names of the processes that have `marker` in their environment, zombies left out."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if marker.encode() not in file.read():
                    continue
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                name, state = re.match(r"\d+ \((.*)\) (\S)", file.read()).groups()
        except OSError:
            continue  # ended, or not ours
        found[int(pid)] = f"{name} {state}"
    return found


class Demo:
    """The script in a session of its own, on a terminal or on a pipe."""

    def __init__(self, *arguments, terminal):
        self.marker = f"TIDEMARK_DEMO_TEST={uuid.uuid4()}"
        name, value = self.marker.split("=")
        ours, theirs = pty.openpty() if terminal else os.pipe()
        self.fd = ours
        self.text = ""
        # The session's leader makes the terminal its own by opening it.
        start = (lambda: os.close(os.open(os.ttyname(1), os.O_RDWR))) if terminal else None
        self.process = subprocess.Popen(
            [DEV, "demo", *arguments],
            stdin=theirs if terminal else subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, name: value, "TIDEMARK_BIN": PROGRAMS, "TERM": "xterm"},
            start_new_session=True,
            preexec_fn=start,
        )
        os.close(theirs)

    def read_until(self, text):
        """Everything printed so far, once `text` is part of it; None: until the end."""
        deadline = time.monotonic() + PATIENCE_S
        while text is None or text not in self.text:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise AssertionError(f"waited {PATIENCE_S} s for {text!r}; read:\n{self.text}")
            try:
                data = os.read(self.fd, 65536)
            except OSError:  # EIO: nobody has the terminal open any more
                data = b""
            if not data:
                if text is None:
                    break
                raise AssertionError(f"ended without {text!r}:\n{self.text}")
            self.text += data.decode(errors="replace")
        return self.text

    def type(self, key):
        os.write(self.fd, key)

    def wait_for(self, process):
        """Until there is such a process, reading what is printed: a full terminal stops its writers."""
        deadline = time.monotonic() + PATIENCE_S
        while process not in processes(self.marker).values():
            if time.monotonic() > deadline:
                raise AssertionError(f"no {process}: {processes(self.marker)}")
            if select.select([self.fd], [], [], 0.02)[0]:
                self.text += os.read(self.fd, 65536).decode(errors="replace")

    def close(self):
        for pid in processes(self.marker):
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.fd)


class DemoScriptTest(unittest.TestCase):
    def start(self, *arguments, terminal=False):
        demo = Demo(*arguments, terminal=terminal)
        self.addCleanup(demo.close)
        return demo

    def ends_well(self, demo):
        text = demo.read_until(None)
        self.assertEqual(demo.process.wait(PATIENCE_S), 0, text)
        self.assertEqual(processes(demo.marker), {}, "processes that are left")
        self.assertIn(SUMMARY, text)
        self.assertNotIn("CANCELLED", text)
        self.assertNotIn("tidemark-demo:", text)

    def running(self, *arguments, terminal):
        """A demo that has shown answers."""
        demo = self.start(*arguments, terminal=terminal)
        demo.read_until("values acknowledged" if terminal else "phi 0.5")
        return demo

    def test_its_own_time(self):
        self.ends_well(self.start("--seconds", "2"))

    def test_one_ctrl_c_on_a_terminal(self):
        demo = self.running(terminal=True)
        demo.type(b"\x03")
        self.ends_well(demo)

    def test_ctrl_z_pauses_and_goes_on(self):
        demo = self.running(terminal=True)
        demo.type(b"\x1a")
        demo.wait_for("tidemark-demo T")
        demo.wait_for("bash T")
        os.killpg(demo.process.pid, signal.SIGCONT)
        demo.type(b"\x03")
        self.ends_well(demo)

    def test_sigterm_to_the_script(self):
        demo = self.running(terminal=False)
        demo.process.send_signal(signal.SIGTERM)
        self.ends_well(demo)

    def test_the_same_wish_twice(self):
        """As `timeout` has it: a signal to the process, and one to its group."""
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number):
                demo = self.running(terminal=False)
                demo.process.send_signal(number)
                time.sleep(0.05)
                os.killpg(demo.process.pid, number)
                self.ends_well(demo)

    def test_a_script_that_is_killed_leaves_nothing(self):
        demo = self.running(terminal=False)
        demo.process.kill()
        demo.process.wait(PATIENCE_S)
        deadline = time.monotonic() + PATIENCE_S
        while processes(demo.marker) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(processes(demo.marker), {})


if __name__ == "__main__":
    DEV, PROGRAMS = map(os.path.abspath, sys.argv[1:3])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
