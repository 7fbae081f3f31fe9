"""Writes golden.json: what YOLOX-nano finds in photographs, by ONNX Runtime and OpenCV.

    pip install numpy onnxruntime opencv-python-headless
    python tests/detecting/make_golden.py WEIGHTS PHOTOS

WEIGHTS is yolox_nano.onnx, PHOTOS the folder skimage/data out of scikit-image 0.26.0. Only numbers are written; the
tests take the photographs out of the same package. The recipe is written here a second time, with arrays, so that the
robot's own one is held against something else.
"""

import hashlib
import json
import pathlib
import sys

import cv2
import numpy as np
import onnxruntime

PHOTOS = ["astronaut.png", "chelsea.png", "coffee.png", "motorcycle_left.png"]
SIDE = 416
LEAST_SCORE = 0.1
SAME_THING = 0.45


def square(photo):
    height, width = photo.shape[:2]
    scale = min(SIDE / height, SIDE / width)
    small = cv2.resize(photo, (int(width * scale), int(height * scale)), interpolation=cv2.INTER_LINEAR)
    canvas = np.full((SIDE, SIDE, 3), 114, np.uint8)
    canvas[: small.shape[0], : small.shape[1]] = small
    return canvas.transpose(2, 0, 1)[None].astype(np.float32), scale


def decoded(answer):
    grids, strides = [], []
    for stride in (8, 16, 32):
        rows, columns = np.mgrid[: SIDE // stride, : SIDE // stride]
        grids.append(np.stack([columns.ravel(), rows.ravel()], 1))
        strides.append(np.full((grids[-1].shape[0], 1), stride))
    grid, stride = np.concatenate(grids), np.concatenate(strides)
    centre = (answer[:, :2] + grid) * stride
    half = np.exp(answer[:, 2:4]) * stride / 2
    return np.concatenate([centre - half, centre + half], 1), answer[:, 4:5] * answer[:, 5:]


def kept(boxes, scores):
    """Indices that stay, the best first."""
    order = list(np.argsort(-scores))
    stays = []
    while order:
        best = order.pop(0)
        stays.append(best)

        def overlap(other):
            low = np.maximum(boxes[best, :2], boxes[other, :2])
            high = np.minimum(boxes[best, 2:], boxes[other, 2:])
            common = np.prod(np.clip(high - low, 0, None))
            area = np.prod(boxes[best, 2:] - boxes[best, :2]) + np.prod(boxes[other, 2:] - boxes[other, :2])
            return common / (area - common)

        order = [other for other in order if overlap(other) <= SAME_THING]
    return stays


def detections(session, labels, photo):
    tensor, scale = square(photo)
    boxes, scores = decoded(session.run(None, {session.get_inputs()[0].name: tensor})[0][0])
    best, sure = scores.argmax(1), scores.max(1)
    size = np.array([photo.shape[1], photo.shape[0]] * 2)
    found = []
    for label in sorted(set(best[sure >= LEAST_SCORE])):
        mine = np.flatnonzero((best == label) & (sure >= LEAST_SCORE))
        for index in mine[kept(boxes[mine], sure[mine])]:
            place = np.clip(boxes[index] / scale / size, 0, 1)
            place = [round(float(edge), 5) for edge in place]
            found.append({"label": labels[label], "score": round(float(sure[index]), 4), "place": place})
    return sorted(found, key=lambda detection: -detection["score"])


def main():
    weights, photos = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    here = pathlib.Path(__file__).resolve().parent
    labels = (here.parent.parent / "src/see/detect/coco.txt").read_text().splitlines()
    session = onnxruntime.InferenceSession(str(weights), providers=["CPUExecutionProvider"])
    found = {name: detections(session, labels, cv2.imread(str(photos / name))) for name in PHOTOS}
    golden = {"weights": hashlib.sha256(weights.read_bytes()).hexdigest(), "photos": found}
    (here / "golden.json").write_text(json.dumps(golden, indent=1) + "\n")


main()
