"""The program's life: its folder, its start, its restarts, its end, and its state in words.

Everything here is called from one thread but `state`, which the page asks from others. The program never outlives this
process: the kernel ends it when the thread that started it is gone, however that came about.
"""

import ctypes
import importlib.util
import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path

log = logging.getLogger("reachy_remembers")

NAME = "reachy-remembers"
BRIDGE = "libreachy_bridge.so"
# Where the project's own configuration has the robot's SDK; an app has it in its own environment, as a dependency.
SERVICE_VENV = 'venv = "/venvs/mini_daemon"'
# The program stores the conversation within ten seconds; the dashboard kills an app after twenty. In seconds.
SAFE_END = 15.0
# Between a failure and the next try: the first, and the longest. In seconds; not measured.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
# A program that lived this long had started well.
LIVED_WELL = 60.0
# The state is asked at the program's socket; it answers in milliseconds. In seconds.
PATIENCE = 2.0
# The program's answer to a wrong configuration. Another start would not change it; an edit would.
WRONG_USE = 2
PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


def data_folder() -> Path:
    """Return where settings, memory and models are kept: not in the app, which an update replaces."""
    home = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return Path(home) / "reachy_remembers"


def app_folder() -> Path:
    """Return where this app is installed."""
    return Path(__file__).parent


def sdk_environment() -> dict[str, str]:
    """Return what the program needs to know to find the robot's SDK, and the bridge to it, where this app has them."""
    path = os.environ.get("PATH", os.defpath)
    # Models come through pip: this environment's own, or the system's where this one was made without.
    if importlib.util.find_spec("pip"):
        path = os.path.join(sys.prefix, "bin") + os.pathsep + path
    bridge = str(app_folder() / "bin" / BRIDGE)
    return {"VIRTUAL_ENV": sys.prefix, "PATH": path, "REACHY_BRIDGE": bridge, "REACHY_MINI_TELEMETRY": "0"}


def prepare(data: Path | None = None) -> tuple[Path, Path]:
    """Make the data folder with a first configuration; return the program and the configuration."""
    data = data or data_folder()
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    own = app_folder()
    config = data / "config.toml"
    if not config.exists():
        beside = data / "config.toml.new"
        text = (own / "config.toml").read_text(encoding="utf-8")
        # JSON's strings are TOML's.
        text = text.replace(SERVICE_VENV, f"venv = {json.dumps(sys.prefix, ensure_ascii=False)}", 1)
        beside.write_text(text, encoding="utf-8")
        os.replace(beside, config)
    program = own / "bin" / NAME
    if not program.exists():
        raise FileNotFoundError(f"this app was built without its program ({program}); see app/build.sh")
    if not os.access(program, os.X_OK):
        # Some ways of installing lose the mark of a program.
        try:
            program.chmod(0o755)
        except OSError:
            runnable = data / NAME
            shutil.copyfile(program, runnable)
            runnable.chmod(0o700)
            return runnable, config
    return program, config


def other_service() -> bool:
    """Whether the system service of the same name runs: two of them would fight over the robot."""
    try:
        asked = subprocess.run(["systemctl", "is-active", "--quiet", NAME], check=False, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0


def end_with(parent: int) -> None:
    """In the new process, before the program: ends it safely as soon as `parent` is gone."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(1)


class Program:
    """First fetches the models, then lives; tried again after every failure, with a growing pause."""

    def __init__(self, program: Path, config: Path, environment: Mapping[str, str]):
        """Nothing runs yet; `look_after` starts it."""
        self._command = [str(program), "--config", str(config)]
        self._config = config
        self._environment = {**os.environ, **environment}
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._fetching = True
        self._have_models = False
        self._began = 0.0
        self._pause = FIRST_PAUSE
        self._not_before = 0.0
        self._refused: tuple[int, int] | None = None
        self._left = False
        self._phase, self._sentence = "starting", "Reachy Remembers is starting."

    def leave_to(self, sentence: str) -> None:
        """Start nothing: somebody else does it."""
        self._left = True
        self._say("elsewhere", sentence)

    def look_after(self) -> None:
        """Start what should run, and see to what has ended. Returns at once; to be called again and again."""
        if self._left:
            return
        if self._child is not None:
            code = self._child.poll()
            if code is None:
                if time.monotonic() - self._began > LIVED_WELL:
                    self._pause = FIRST_PAUSE
                return
            self._child = None
            self._ended(code)
        elif self._refused is not None:
            if self._stamp() == self._refused:
                return
            self._refused = None
            self._start()
        elif time.monotonic() >= self._not_before:
            self._start()

    def stop(self) -> None:
        """End it safely; when this returns it is gone."""
        child, self._child, self._left = self._child, None, True
        if child is None:
            return
        self._say("stopping", "Reachy Remembers is storing the conversation.")
        child.send_signal(signal.SIGTERM)
        until = time.monotonic() + SAFE_END
        while child.poll() is None:
            if time.monotonic() >= until:
                log.error("the program did not end within %s seconds and is killed", SAFE_END)
                child.kill()
            try:
                child.wait(timeout=0.2)
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                # Being asked twice does not make it faster, and leaving now would lose what was said.
                continue
        self._say("stopped", "Reachy Remembers has ended.")

    def state(self) -> dict[str, object]:
        """Return the state for the page: a phase, a sentence, and the parts where the program answers."""
        with self._lock:
            phase, sentence = self._phase, self._sentence
        parts = self._ask_health() if phase == "running" else None
        return {"phase": phase, "sentence": sentence, "parts": parts or []}

    def _say(self, phase: str, sentence: str) -> None:
        with self._lock:
            self._phase, self._sentence = phase, sentence
        log.info(sentence)

    def _start(self) -> None:
        arguments = ["models", "fetch"] if self._fetching else ["run"]
        parent = os.getpid()
        try:
            self._child = subprocess.Popen(
                [*self._command, *arguments],
                stdin=subprocess.DEVNULL,
                env=self._environment,
                # An interrupt from the terminal is for this process, which passes it on.
                start_new_session=True,
                preexec_fn=lambda: end_with(parent),
            )
        except OSError as error:
            self._try_later(f"The program could not be started: {error}.")
            return
        self._began = time.monotonic()
        if self._fetching:
            self._say("fetching", "The models are being fetched; this happens once and takes some minutes.")
        else:
            self._say("running", "Reachy Remembers is running.")

    def _ended(self, code: int) -> None:
        if code == WRONG_USE:
            self._refused = self._stamp()
            self._say("refused", f"There is a mistake in {self._config}; the app's log says in which line. Correct it.")
        elif self._fetching:
            # Without models the robot says for each part what is missing, so it is started all the same.
            self._fetching, self._have_models, self._not_before = False, code == 0, 0.0
            if code != 0:
                log.warning("the models could not all be fetched; they are tried again at the next start")
        else:
            how = f"signal {-code}" if code < 0 else f"code {code}"
            self._fetching = not self._have_models
            self._try_later(f"The program ended with {how}.")

    def _try_later(self, sentence: str) -> None:
        self._not_before = time.monotonic() + self._pause
        self._say("waiting", f"{sentence} It is started again in {self._pause:.0f} s.")
        self._pause = min(self._pause * 2, LONGEST_PAUSE)

    def _stamp(self) -> tuple[int, int] | None:
        try:
            about = self._config.stat()
        except OSError:
            return None
        return about.st_ino, about.st_mtime_ns

    def _ask_health(self) -> list[dict[str, object]] | None:
        """Ask the program on its socket; None while it does not answer."""
        try:
            with self._config.open("rb") as file:
                folder = tomllib.load(file).get("remember", {}).get("folder", "shards")
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
                asked.settimeout(PATIENCE)
                asked.connect(str(self._config.parent / folder / "control.sock"))
                asked.sendall(b'{"ask":"health"}\n')
                with asked.makefile("rb") as answer:
                    health = json.loads(answer.readline(1_000_000))
        except (OSError, ValueError):
            return None
        parts = health.get("parts")
        return parts if isinstance(parts, list) else None
