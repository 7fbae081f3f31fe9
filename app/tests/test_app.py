"""The app with a stand-in for its program: its start, its state, its restarts, and that it never leaves an orphan.

Run by `python3 -m unittest discover app/tests`. The robot's SDK is used where it is installed, and its base class stood
in for where it is not.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
import types
import unittest
from pathlib import Path

APP = Path(__file__).resolve().parent.parent
FAKE = Path(__file__).resolve().parent / "fake_program.py"
sys.path.insert(0, str(APP))

try:
    import reachy_mini  # noqa: F401
except ImportError:
    stand_in = types.ModuleType("reachy_mini")
    stand_in.ReachyMini = type("ReachyMini", (), {})
    stand_in.ReachyMiniApp = type("ReachyMiniApp", (), {"settings_app": None})
    sys.modules["reachy_mini"] = stand_in

from reachy_remembers import main, program  # noqa: E402

CONFIG = '[remember]\nfolder = "memory"\n'


def alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


class Media:
    closed = False

    def close(self) -> None:
        self.closed = True


class Robot:
    def __init__(self) -> None:
        self.media = Media()


class Routes:
    """What the app uses of its web page's server."""

    def __init__(self) -> None:
        self.routes: dict[str, object] = {}

    def get(self, path: str):
        return lambda answer: self.routes.setdefault(path, answer)


class WithProgram(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        # The socket's path must be short.
        self.data = self.folder / "d"
        self.data.mkdir()
        (self.data / "config.toml").write_text(CONFIG)
        program.FIRST_PAUSE = 0.05

    def started(self) -> program.Program:
        one = program.Program(FAKE, self.data / "config.toml", {})
        self.addCleanup(one.stop)
        return one

    def notes(self, what: str) -> list[int]:
        try:
            lines = (self.data / "notes").read_text().splitlines()
        except OSError:
            return []
        return [int(line.split()[1]) for line in lines if line.split()[0] == what]

    def until(self, true, one: program.Program | None = None, seconds: float = 15.0):
        end = time.monotonic() + seconds
        while not (result := true()):
            self.assertLess(time.monotonic(), end, f"{one.state() if one else ''} {list(self.data.iterdir())}")
            if one:
                one.look_after()
            time.sleep(0.02)
        return result

    def test_models_are_fetched_then_the_program_runs_and_its_parts_are_shown(self) -> None:
        one = self.started()
        self.assertEqual(one.state()["phase"], "starting")
        parts = self.until(lambda: one.state()["parts"], one)
        self.assertEqual([part["part"] for part in parts], ["memory", "voice"])
        self.assertEqual((len(self.notes("fetch")), len(self.notes("run"))), (1, 1))

    def test_stopping_waits_until_the_conversation_is_stored(self) -> None:
        (self.data / "end-seconds").write_text("0.6")
        one = self.started()
        self.until(lambda: one.state()["parts"], one)
        began = time.monotonic()
        one.stop()
        self.assertGreater(time.monotonic() - began, 0.5)
        self.assertEqual(self.notes("stored"), self.notes("run"))
        self.assertFalse(alive(self.notes("run")[0]))
        self.assertEqual(one.state()["phase"], "stopped")
        one.look_after()
        self.assertEqual(len(self.notes("run")), 1)

    def test_a_program_that_does_not_end_is_killed(self) -> None:
        (self.data / "end-seconds").write_text("60")
        program.SAFE_END = 0.3
        self.addCleanup(setattr, program, "SAFE_END", 15.0)
        one = self.started()
        self.until(lambda: one.state()["parts"], one)
        one.stop()
        self.assertFalse(alive(self.notes("run")[0]))
        self.assertEqual(self.notes("stored"), [])

    def test_a_program_that_dies_is_started_again_after_a_growing_pause(self) -> None:
        (self.data / "run-exit").write_text("1")
        one = self.started()
        began = time.monotonic()
        self.until(lambda: len(self.notes("run")) == 4, one)
        # 0.05 + 0.1 + 0.2 s.
        self.assertGreater(time.monotonic() - began, 0.35)
        self.assertEqual(len(self.notes("fetch")), 1)
        (self.data / "run-exit").unlink()
        self.until(lambda: one.state()["parts"], one)

    def test_without_models_it_runs_all_the_same(self) -> None:
        (self.data / "fetch-exit").write_text("1")
        one = self.started()
        self.until(lambda: one.state()["parts"], one)

    def test_a_wrong_configuration_waits_for_its_correction(self) -> None:
        (self.data / "run-exit").write_text("2")
        one = self.started()
        self.until(lambda: one.state()["phase"] == "refused", one)
        for _ in range(20):
            one.look_after()
            time.sleep(0.02)
        self.assertEqual(len(self.notes("run")), 1)
        (self.data / "run-exit").unlink()
        (self.data / "config.toml").write_text(CONFIG + "# corrected\n")
        self.until(lambda: one.state()["parts"], one)

    def test_a_program_that_cannot_be_started_is_a_sentence(self) -> None:
        one = program.Program(self.data / "nothing", self.data / "config.toml", {})
        one.look_after()
        self.assertIn("could not be started", one.state()["sentence"])

    def test_the_first_configuration_is_made_once_and_kept(self) -> None:
        own = self.folder / "app"
        shutil.copytree(APP / "reachy_remembers", own / "reachy_remembers")
        bin_folder = own / "reachy_remembers" / "bin"
        bin_folder.mkdir(exist_ok=True)
        binary = bin_folder / "reachy-remembers"
        shutil.copy(FAKE, binary)
        binary.chmod(0o644)
        shipped = (APP.parent / "config.toml").read_text()
        (own / "reachy_remembers" / "config.toml").write_text(shipped)
        before = program.__file__
        program.__file__ = str(own / "reachy_remembers" / "program.py")
        self.addCleanup(setattr, program, "__file__", before)
        data = self.folder / "new"
        found, config = program.prepare(data)
        self.assertTrue(os.access(found, os.X_OK))
        self.assertEqual(data.stat().st_mode & 0o777, 0o700)
        # The robot's SDK is the one that this app was installed with; nothing else changes.
        first = config.read_text()
        self.assertEqual(tomllib.loads(first)["robot"]["venv"], sys.prefix)
        changed = [ours for ours, theirs in zip(first.splitlines(), shipped.splitlines(), strict=True) if ours != theirs]
        self.assertEqual(len(changed), 1, changed)
        # Also where the program has to be moved away from its bridge.
        bridge = program.sdk_environment()["REACHY_BRIDGE"]
        self.assertEqual(Path(bridge), bin_folder / "libreachy_bridge.so")
        config.write_text(CONFIG + "# the owner was here\n")
        program.prepare(data)
        self.assertIn("the owner was here", config.read_text())
        binary.unlink()
        with self.assertRaisesRegex(FileNotFoundError, "without its program"):
            program.prepare(data)

    def test_the_app_runs_it_until_it_is_stopped(self) -> None:
        app = main.ReachyRemembers.__new__(main.ReachyRemembers)
        app.settings_app = Routes()
        robot, stop = Robot(), threading.Event()
        main.prepare = lambda: (FAKE, self.data / "config.toml")
        main.other_service = lambda: False
        self.addCleanup(setattr, main, "prepare", program.prepare)
        self.addCleanup(setattr, main, "other_service", program.other_service)

        def after_a_while() -> None:
            self.until(lambda: self.notes("run") and app.settings_app.routes["/api/state"]()["parts"])
            stop.set()

        helper = threading.Thread(target=after_a_while)
        helper.start()
        app.run(robot, stop)
        helper.join()
        self.assertTrue(robot.media.closed)
        self.assertEqual(self.notes("stored"), self.notes("run"))

    def test_beside_the_system_service_nothing_is_started(self) -> None:
        one = self.started()
        one.leave_to("elsewhere")
        for _ in range(5):
            one.look_after()
        self.assertEqual((one.state()["phase"], self.notes("fetch")), ("elsewhere", []))

    def run_apart(self) -> subprocess.Popen[bytes]:
        """A process that does what the app does, to be killed."""
        code = (
            "import sys, time\n"
            f"sys.path.insert(0, {str(APP)!r})\n"
            "from pathlib import Path\n"
            "from reachy_remembers.program import Program\n"
            f"one = Program(Path({str(FAKE)!r}), Path({str(self.data / 'config.toml')!r}), {{}})\n"
            "try:\n"
            "    while True:\n"
            "        one.look_after()\n"
            "        time.sleep(0.05)\n"
            "except KeyboardInterrupt:\n"
            "    pass\n"
            "finally:\n"
            "    one.stop()\n"
        )
        apart = subprocess.Popen([sys.executable, "-c", code])
        self.addCleanup(apart.wait)
        self.addCleanup(apart.kill)
        self.until(lambda: (self.data / "memory" / "control.sock").exists() and self.notes("run"))
        return apart

    def test_an_interrupt_as_the_dashboard_sends_it_ends_both_safely(self) -> None:
        apart = self.run_apart()
        apart.send_signal(signal.SIGINT)
        self.assertEqual(apart.wait(timeout=15), 0)
        self.assertEqual(self.notes("stored"), self.notes("run"))

    def test_an_app_that_is_killed_leaves_no_orphan(self) -> None:
        apart = self.run_apart()
        apart.kill()
        apart.wait()
        self.until(lambda: not alive(self.notes("run")[0]))
        # Not killed with it: told to end, so the conversation is stored.
        self.assertEqual(self.notes("stored"), self.notes("run"))


if __name__ == "__main__":
    unittest.main()
