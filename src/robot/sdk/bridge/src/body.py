"""The body's Python side: the robot's SDK, its connection, and nothing that decides anything.

One thread of the program calls a Body. Two threads of its own watch the connection and make a new one; they share one
reference to the SDK's object with the caller. A part that is not there is a LookupError, everything else that goes
wrong a RuntimeError (or the SDK's own exception); each has a sentence.
"""

import json
import os
import threading
import time
from importlib.metadata import version

os.environ["REACHY_MINI_TELEMETRY"] = "0"

import numpy as np  # noqa: E402
import requests  # noqa: E402
from reachy_mini import ReachyMini  # noqa: E402
from reachy_mini.io.protocol import SetVolumeCmd  # noqa: E402

SDK_VERSION = version("reachy_mini")

# Pause between two looks at the connection, in seconds. A look at a lost one takes a second itself, so a loss is known
# after at most a second and this.
LOOK_EVERY = 0.25
# Pause before the next try to connect, in seconds. Not measured.
TRY_EVERY = 1.0
# How long the SDK may wait for the first state of a new connection, in seconds. Its daemon sends fifty a second.
FIRST_STATE = 3.0
# How long the daemon may take to say what is wrong, in seconds.
ASKED = 2.0
MOTORS = {"disabled": 0.0, "enabled": 1.0, "gravity_compensation": 2.0}
UNKNOWN = -1.0


class Body:
    """The robot as the program asks for it."""

    def __init__(self, settings: str) -> None:
        given = json.loads(settings)
        self._host = given["host"]
        self._port = given["port"]
        self._local = given["local"]
        self._volume = given["volume"]
        self._robot = None
        self._connection = 0
        self._alive = False
        self._why = "not connected yet"
        self._building = None
        self._renew = False
        self._closed = False
        threading.Thread(target=self._watch, name="body-watch", daemon=True).start()

    # The connection.

    def _watch(self) -> None:
        while not self._closed:
            robot = self._robot
            # Waits up to a second for the next word of the robot's daemon.
            alive = robot is not None and robot.client.is_connected()
            if robot is not self._robot:
                # A new connection came meanwhile.
                continue
            if alive and self._stopped(robot):
                alive = False
            elif self._alive and not alive:
                self._why = "it has stopped answering"
            self._alive = alive
            if (not alive or self._renew) and self._building is None and not self._closed:
                self._building = threading.Thread(target=self._build, name="body-build", daemon=True)
                self._building.start()
            time.sleep(LOOK_EVERY)

    def _stopped(self, robot: ReachyMini) -> bool:
        """Whether the daemon answers but says that the robot does not run."""
        status = self._status(robot)
        if status is None or status.state.value in ("running", "starting"):
            return False
        self._why = f"it says that it is in state {status.state.value}" + (f": {status.error}" if status.error else "")
        return True

    def _build(self) -> None:
        """Makes one new connection and puts it in the place of the old one."""
        robot = None
        try:
            robot = ReachyMini(
                host=self._host,
                port=self._port,
                connection_mode="localhost_only" if self._local else "network",
                media_backend="local" if self._local else "webrtc",
                timeout=FIRST_STATE,
                automatic_body_yaw=True,
                log_level="ERROR",
            )
            # The old one may have come back meanwhile.
            if self._closed or (self._alive and not self._renew):
                self._let_go(robot)
                return
            if robot.media.audio is not None:
                robot.media.start_recording()
                robot.media.start_playing()
            before, self._robot = self._robot, robot
            self._renew = False
            self._connection += 1
            self._why = ""
            self._alive = True
            if self._closed:
                self._let_go(robot)
            if before is not None:
                self._let_go(before)
            if self._volume is not None:
                self._set_volume(self._volume)
        except Exception as error:
            self._why = self._diagnosis() or str(error) or type(error).__name__
            if robot is not None and robot is not self._robot:
                self._let_go(robot)
            time.sleep(TRY_EVERY)
        finally:
            self._building = None

    def _diagnosis(self) -> str | None:
        """What the daemon itself says of a robot that cannot be connected to."""
        try:
            status = requests.get(f"http://{self._host}:{self._port}/api/daemon/status", timeout=ASKED).json()
            return f"it says that it is in state {status['state']}" + (f": {status['error']}" if status["error"] else "")
        except requests.ConnectionError:
            return f"nothing answers at {self._host}:{self._port}: is it running?"
        except Exception:
            # It is there and gives no sense; the SDK's own words are better.
            return None

    @staticmethod
    def _let_go(robot: ReachyMini) -> None:
        """Closes a connection beside everything else: a daemon that stands still makes this wait for seconds."""

        def close() -> None:
            for end in (robot.media.close, robot.client.disconnect):
                try:
                    end()
                except Exception:
                    # Nobody uses it any more.
                    pass

        threading.Thread(target=close, name="body-close", daemon=True).start()

    @staticmethod
    def _status(robot: ReachyMini):
        try:
            return robot.client.get_status(wait=False)
        except AssertionError:
            # None has come yet.
            return None

    def _connected(self) -> ReachyMini:
        robot = self._robot
        if robot is None or not self._alive:
            raise RuntimeError(self._why or "the connection to the robot's own daemon is lost")
        return robot

    def _audio(self) -> ReachyMini:
        """Sound does not pass through the daemon: it goes on while the connection is lost."""
        robot = self._robot
        if robot is None:
            raise RuntimeError(self._why)
        if robot.media.audio is None:
            raise LookupError("the robot's own daemon runs without sound")
        return robot

    # What the program asks.

    def state(self):
        robot = self._robot
        numbers = [0.0] * 24
        numbers[0] = float(self._alive)
        numbers[1] = float(self._connection)
        numbers[2] = UNKNOWN
        if robot is not None:
            status = self._status(robot)
            backend = getattr(status, "backend_status", None)
            if backend is not None:
                numbers[2] = MOTORS.get(backend.motor_control_mode.value, UNKNOWN)
            numbers[3] = float(robot.media.camera is not None)
            numbers[4] = float(robot.media.audio is not None)
            joints, antennas = robot.get_current_joint_positions()
            numbers[5:21] = [float(value) for value in robot.get_current_head_pose().flatten()]
            numbers[21:23] = [float(value) for value in antennas]
            numbers[23] = float(joints[0])
        return numbers, "" if self._alive else self._why

    def target(self, numbers) -> None:
        head = np.array(numbers[:16], dtype=np.float64).reshape(4, 4)
        self._connected().set_target(head=head, antennas=list(numbers[16:18]), body_yaw=float(numbers[18]))

    def motors(self, on: bool) -> None:
        robot = self._connected()
        if on:
            robot.enable_motors()
        else:
            robot.disable_motors()

    def hear(self):
        robot = self._audio()
        samples = robot.media.get_audio_sample()
        if samples is None:
            return None
        return samples, float(robot.media.get_input_audio_samplerate())

    def play(self, samples: bytes) -> None:
        self._audio().media.push_audio_sample(np.frombuffer(samples, dtype=np.float32))

    def hush(self) -> None:
        self._audio().media.audio.clear_player()

    def picture(self):
        robot = self._connected()
        if robot.media.camera is None:
            raise LookupError("the robot's own daemon shows no camera")
        return robot.media.get_frame()

    def direction(self):
        return self._audio().media.get_DoA()

    def volume(self, percent: float) -> None:
        self._volume = int(percent)
        self._connected()
        # Reading it back waits for the daemon.
        threading.Thread(target=self._set_volume, args=(self._volume,), name="body-volume", daemon=True).start()

    def _set_volume(self, percent: int) -> None:
        robot = self._connected()
        robot.client.send_command(SetVolumeCmd(volume=percent))

    def renew(self) -> None:
        self._renew = True

    def close(self) -> None:
        self._closed = True
        self._alive = False
        self._why = "the body is at rest"
        robot, self._robot = self._robot, None
        if robot is not None:
            self._let_go(robot)
