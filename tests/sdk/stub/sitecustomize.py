"""A stand-in for the SDK's media: camera and sound without hardware. It is no part of the SDK.

Python loads this by itself when its folder is in PYTHONPATH. The SDK's own classes stay as they are; only the name of
its media manager stands for this one. Where REACHY_STUB=echo, what was played comes back as what is heard. Where it is
the path of a folder, somebody says 0.wav as soon as there is a file 0.go, then 1.wav, and so on. The rest is a quiet room.
"""

import os
import sys
import threading
import time
import wave
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import PathFinder

RATE, CHANNELS, CHUNK = 16_000, 2, 160
# The camera's pictures a second, and the frames that the SDK keeps: one.
FRAMES = 10.0


class Audio:
    """Ten milliseconds of sound every ten milliseconds, from a queue as long as the SDK's."""

    def __init__(self):
        self.lock = threading.Lock()
        self.played = []
        self.cleared = 0
        self.began = time.monotonic()
        self.read = 0
        self.spoken = 0
        self.saying = None

    def clear_player(self):
        with self.lock:
            self.played.clear()
            self.cleared += 1

    def cleanup(self):
        pass


class Camera:
    pass


class StubMedia:
    """What the bridge uses of the SDK's MediaManager."""

    def __init__(self, **_settings):
        import numpy

        self.numpy = numpy
        self.audio = Audio()
        self.camera = Camera()
        self.shot = -1
        self.noise = numpy.random.default_rng(1)
        self.still = numpy.full((720, 1280, 3), 90, dtype=numpy.uint8)
        self.still[:, :640] = (200, 60, 60)

    def start_recording(self):
        pass

    def start_playing(self):
        pass

    def close(self):
        pass

    def get_input_audio_samplerate(self):
        return RATE

    def get_audio_sample(self):
        audio = self.audio
        due = audio.began + (audio.read + 1) * CHUNK / RATE
        wait = due - time.monotonic()
        # The SDK waits for 20 ms, and keeps two seconds.
        if wait > 0:
            time.sleep(min(wait, 0.02))
            if wait > 0.02:
                return None
        late = time.monotonic() - due
        if late > 2.0:
            audio.read += int((late - 2.0) * RATE / CHUNK)
        audio.read += 1
        sound = (self.noise.random((CHUNK, CHANNELS), dtype=self.numpy.float32) - 0.5) * 0.001
        if os.environ["REACHY_STUB"] != "echo":
            self.speak(os.environ["REACHY_STUB"])
        if audio.saying is not None:
            piece = audio.saying[:CHUNK]
            audio.saying = audio.saying[CHUNK:] if len(audio.saying) > CHUNK else None
            sound[: len(piece)] += piece[:, None]
        if os.environ["REACHY_STUB"] == "echo":
            with audio.lock:
                if audio.played:
                    piece = audio.played[0][:CHUNK]
                    audio.played[0] = audio.played[0][CHUNK:]
                    if len(audio.played[0]) == 0:
                        audio.played.pop(0)
                    sound[: len(piece)] += piece[:, None]
        return sound

    def speak(self, folder):
        """The next recording, where its time has come; 16-bit, one channel, at this rate."""
        audio = self.audio
        path = os.path.join(folder, str(audio.spoken))
        if audio.saying is not None or not os.path.exists(path + ".go"):
            return
        audio.spoken += 1
        with wave.open(path + ".wav") as recording:
            assert (recording.getframerate(), recording.getnchannels(), recording.getsampwidth()) == (RATE, 1, 2)
            raw = recording.readframes(recording.getnframes())
        audio.saying = self.numpy.frombuffer(raw, dtype=self.numpy.int16).astype(self.numpy.float32) / 32_768

    def push_audio_sample(self, data):
        with self.audio.lock:
            self.audio.played.append(self.numpy.array(data))

    def get_frame(self):
        now = int(time.monotonic() * FRAMES)
        if now == self.shot:
            time.sleep(0.02)
            now = int(time.monotonic() * FRAMES)
            if now == self.shot:
                return None
        self.shot = now
        # Its number in the first pixel, blue left of the middle, noise below, as a camera has.
        frame = self.still
        frame[700:, :, 0] = self.noise.integers(0, 255, (20, 1280), dtype=self.numpy.uint8)
        frame[0, 0] = (now % 256, now // 256 % 256, 0)
        return self.numpy.frombuffer(frame.tobytes(), dtype=self.numpy.uint8).reshape(frame.shape)

    def get_DoA(self):
        # To the right of ahead.
        return 2.0, True


class Replaces(MetaPathFinder, Loader):
    """Puts the stand-in into the SDK's module when that is imported."""

    NAME = "reachy_mini.reachy_mini"

    def find_spec(self, name, path, target=None):
        if name != self.NAME:
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            self.real = spec.loader
            spec.loader = self
        return spec

    def create_module(self, spec):
        return self.real.create_module(spec)

    def exec_module(self, module):
        self.real.exec_module(module)
        module.MediaManager = StubMedia


if os.environ.get("REACHY_STUB"):
    sys.meta_path.insert(0, Replaces())
