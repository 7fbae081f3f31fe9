"""The app that the robot's dashboard starts: lets the program live as long as the app does, and shows its state.

The program does everything else, through a connection of its own to the robot.
"""

import threading

from reachy_mini import ReachyMini, ReachyMiniApp

from reachy_remembers.program import Program, other_service, prepare, sdk_environment

# The program's restarts and the edits of its settings are looked after this often, in seconds.
LOOK = 0.5


class ReachyRemembers(ReachyMiniApp):
    """The memory of this robot."""

    # Read from this file by the dashboard, without running it. The page shows no memories, only how the parts are.
    custom_app_url: str | None = "http://0.0.0.0:8042"
    # "no_media" would take camera and microphone away from everybody.
    request_media_backend: str | None = "local"

    def run(self, reachy_mini: ReachyMini, stop_event: threading.Event) -> None:
        """Run the program until the app is stopped; it has ended when this returns."""
        # The program reads camera and microphone itself; a second reader would only cost time.
        reachy_mini.media.close()
        program = Program(*prepare(), sdk_environment())
        if self.settings_app is not None:
            self.settings_app.get("/api/state")(lambda: program.state())
        try:
            if other_service():
                program.leave_to("Reachy Remembers is installed on this robot as a service, and that is running.")
            while not stop_event.is_set():
                program.look_after()
                stop_event.wait(LOOK)
        finally:
            program.stop()


if __name__ == "__main__":
    app = ReachyRemembers()
    try:
        app.wrapped_run()
    except KeyboardInterrupt:
        app.stop()
