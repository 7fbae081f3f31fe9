#!/usr/bin/env python3
"""Makes tests/sounds/golden.json: the voice-activity model's probabilities as ONNX Runtime computes them.

    python3 tests/sounds/golden.py PATH/TO/silero_vad_16k_op15.onnx

Needs numpy and onnxruntime. The sound is three of the recorded sentences, which lie beside this file, with seconds
of silence between them; the test puts the same together.
"""

import json
import sys
import wave
from pathlib import Path

import numpy as np
import onnxruntime

HERE = Path(__file__).parent
SENTENCES = ["look", "soup", "who"]


def samples(name: str) -> np.ndarray:
    with wave.open(str(HERE / f"{name}.wav")) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768


sound = np.concatenate([part for name in SENTENCES for part in (samples(name), np.zeros(16_000, np.float32))])
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
state = np.zeros((2, 1, 128), np.float32)
context = np.zeros((1, 64), np.float32)
probabilities = []
for frame in sound[: len(sound) // 512 * 512].reshape(-1, 1, 512):
    seen = np.concatenate([context, frame], axis=1)
    out, state = session.run(None, {"input": seen, "state": state, "sr": np.array(16_000, np.int64)})
    context = seen[:, -64:]
    probabilities.append(round(float(out[0, 0]), 8))
(HERE / "golden.json").write_text(json.dumps({"sentences": SENTENCES, "probabilities": probabilities}) + "\n")
print(f"{len(probabilities)} frames, {sum(p > 0.5 for p in probabilities)} of them speech")
