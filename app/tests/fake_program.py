#!/usr/bin/env python3
"""Stands in for the program: takes its arguments, answers on its socket, ends safely, and writes down what it did."""

import json
import os
import signal
import socket
import sys
import time
from pathlib import Path

data = Path(sys.argv[sys.argv.index("--config") + 1]).parent
arguments = sys.argv[3:]


def note(what: str) -> None:
    with (data / "notes").open("a") as notes:
        notes.write(f"{what} {os.getpid()}\n")


def told(name: str) -> str:
    try:
        return (data / name).read_text().strip()
    except OSError:
        return ""


if arguments == ["models", "fetch"]:
    note("fetch")
    sys.exit(int(told("fetch-exit") or 0))

note("run")
code = told("run-exit")
if code:
    sys.exit(int(code))


def end(*_: object) -> None:
    time.sleep(float(told("end-seconds") or 0))
    note("stored")
    sys.exit(0)


signal.signal(signal.SIGTERM, end)
(data / "memory").mkdir(exist_ok=True)
path = data / "memory" / "control.sock"
path.unlink(missing_ok=True)
server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
server.bind(str(path))
server.listen()
while True:
    asked, _ = server.accept()
    request = json.loads(asked.makefile("rb").readline())
    assert request == {"ask": "health"}, request
    parts = [{"part": "memory", "works": True, "what": "open"}, {"part": "voice", "works": False, "what": "mute"}]
    asked.sendall(json.dumps({"answer": "health", "parts": parts}).encode() + b"\n")
    asked.close()
