"""What we rely on of the robot's SDK, checked against the installed one. An update that breaks us fails here."""

import inspect
import os
import sys

os.environ["REACHY_MINI_TELEMETRY"] = "0"

from reachy_mini import ReachyMini  # noqa: E402
from reachy_mini.daemon.utils import CAMERA_SOCKET_PATH  # noqa: E402
from reachy_mini.io.protocol import (  # noqa: E402
    DaemonState,
    DaemonStatus,
    MockupSimBackendStatus,
    MotorControlMode,
    MujocoBackendStatus,
    RobotBackendStatus,
    SetVolumeCmd,
)
from reachy_mini.io.ws_client import WSClient  # noqa: E402
from reachy_mini.media.audio_gstreamer import GStreamerAudio  # noqa: E402
from reachy_mini.media.camera_constants import ReachyMiniWirelessCamSpecs  # noqa: E402
from reachy_mini.media.media_manager import MediaBackend, MediaManager  # noqa: E402

# Each function with the parameters that we give it.
GIVEN = [
    (ReachyMini.__init__, "host port connection_mode media_backend timeout automatic_body_yaw log_level"),
    (ReachyMini.set_target, "head antennas body_yaw"),
    (ReachyMini.get_current_head_pose, ""),
    (ReachyMini.get_current_joint_positions, ""),
    (ReachyMini.enable_motors, ""),
    (ReachyMini.disable_motors, ""),
    (WSClient.is_connected, ""),
    (WSClient.get_status, "wait"),
    (WSClient.send_command, "cmd"),
    (WSClient.disconnect, ""),
    (MediaManager.get_frame, ""),
    (MediaManager.get_audio_sample, ""),
    (MediaManager.get_input_audio_samplerate, ""),
    (MediaManager.push_audio_sample, "data"),
    (MediaManager.get_DoA, ""),
    (MediaManager.start_recording, ""),
    (MediaManager.start_playing, ""),
    (MediaManager.close, ""),
    (GStreamerAudio.clear_player, ""),
]

# Everything else, as (what, is it so).
SO = [
    ("ReachyMini.media", isinstance(inspect.getattr_static(ReachyMini, "media"), property)),
    ("media backends", {"local", "webrtc"} <= {backend.value for backend in MediaBackend}),
    ("motor modes", {mode.value for mode in MotorControlMode} == {"enabled", "disabled", "gravity_compensation"}),
    ("daemon states", {"running", "starting"} <= {state.value for state in DaemonState}),
    ("daemon status", {"state", "error", "backend_status"} <= set(DaemonStatus.model_fields)),
    ("set volume", set(SetVolumeCmd.model_fields) == {"type", "volume"}),
    ("rates", (GStreamerAudio.SAMPLE_RATE, GStreamerAudio.CHANNELS) == (16000, 2)),
    ("the daemon's camera socket", CAMERA_SOCKET_PATH.startswith("/")),
]
for backend in (RobotBackendStatus, MujocoBackendStatus, MockupSimBackendStatus):
    SO.append((backend.__name__, "motor_control_mode" in backend.model_fields))

wrong = []
for function, names in GIVEN:
    parameters = inspect.signature(function).parameters
    wrong += [f"{function.__qualname__} has no {name}" for name in names.split() if name not in parameters]
    needed = [
        name
        for name, parameter in parameters.items()
        if name != "self" and parameter.default is inspect.Parameter.empty and name not in names.split()
    ]
    wrong += [f"{function.__qualname__} wants {name}" for name in needed]
wrong += [f"{what} is another" for what, so in SO if not so]

# The constants that the gaze is computed with, from the camera's calibration over the sensor's full width.
K = ReachyMiniWirelessCamSpecs().K
half = (1920 / K[0][0], 1080 / K[1][1])
if abs(half[0] - 0.959) > 0.002 or abs(half[1] - 0.539) > 0.002:
    wrong.append(f"the camera's half picture is {half}")

print("\n".join(wrong) if wrong else f"{len(GIVEN)} functions and {len(SO)} facts are as we know them")
sys.exit(1 if wrong else 0)
