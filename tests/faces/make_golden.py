"""Writes golden.json: what OpenCV finds and cuts out of portraits.

    pip install numpy opencv-python-headless
    python tests/faces/portraits.py PORTRAITS
    python tests/faces/make_golden.py YUNET PORTRAITS

YUNET is yunet_s_dynamic.onnx. Only numbers are written, by the hash of each portrait. Detection is OpenCV's own
FaceDetectorYN on the portrait shrunk to the robot's sizes by OpenCV's area average. The crop is what
FaceRecognizerSF.alignCrop does, which cannot be called without its own weights: the same similarity in closed form
(the targets stand below), then OpenCV's own warpAffine with linear interpolation and a black border. Of the crop
every 29th pixel is kept, red, green and blue, so that no portrait can be made out of this file.
"""

import hashlib
import json
import pathlib
import sys

import cv2
import numpy as np

WORKING_SIDE, SIDE = 1280, 640
EVERY = 29
TARGETS = np.array(
    [[38.2946, 51.6963], [73.5318, 51.5014], [56.0252, 71.7366], [41.5493, 92.3655], [70.7299, 92.2041]]
)


def shrunk(picture, most):
    height, width = picture.shape[:2]
    scale = most / max(height, width)
    if scale >= 1:
        return picture
    size = [max(1, int(side * scale + 0.5)) for side in (width, height)]
    return cv2.resize(picture, size, interpolation=cv2.INTER_AREA)


def similarity(points):
    """2 x 3, by Umeyama's closed form with numpy's SVD: another way than the robot's own."""
    of, to = points.mean(0), TARGETS.mean(0)
    p, q = points - of, TARGETS - to
    u, s, v = np.linalg.svd(q.T @ p / len(p))
    sign = np.array([1, np.sign(np.linalg.det(u) * np.linalg.det(v))])
    turn = u @ np.diag(sign) @ v
    scale = (s * sign).sum() / (p**2).sum(1).mean()
    return np.hstack([scale * turn, (to - scale * turn @ of)[:, None]])


def golden(weights, path):
    picture = shrunk(cv2.imread(str(path)), WORKING_SIDE)
    small = shrunk(picture, SIDE)
    detector = cv2.FaceDetectorYN.create(str(weights), "", (small.shape[1], small.shape[0]), 0.6, 0.3, 5000)
    faces = detector.detect(small)[1]
    found = []
    for face in [] if faces is None else faces.astype(float):
        size = np.array([small.shape[1], small.shape[0]])
        place = [*(face[:2] / size), *((face[:2] + face[2:4]) / size)]
        landmarks = face[4:14].reshape(5, 2) / size
        pixels = landmarks * [picture.shape[1], picture.shape[0]]
        crop = cv2.warpAffine(picture, similarity(pixels), (112, 112), flags=cv2.INTER_LINEAR, borderValue=0)
        pixels = crop.reshape(-1, 3)[::EVERY, ::-1]
        found.append(
            {
                "place": [round(float(edge), 5) for edge in place],
                "landmarks": [[round(float(at), 5) for at in point] for point in landmarks],
                "score": round(float(face[14]), 4),
                "pixels": pixels.ravel().tolist(),
            }
        )
    sizes = [[side.shape[1], side.shape[0]] for side in (picture, small)]
    return {"name": path.name, "working": sizes[0], "looked_at": sizes[1], "faces": found}


def main():
    weights, portraits = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    here = pathlib.Path(__file__).resolve().parent
    paths = sorted(path for path in portraits.iterdir() if path.suffix in (".jpg", ".png"))
    written = {hashlib.sha256(path.read_bytes()).hexdigest(): golden(weights, path) for path in paths}
    head = {"weights": hashlib.sha256(weights.read_bytes()).hexdigest(), "opencv": cv2.__version__}
    lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in written.items())
    (here / "golden.json").write_text(json.dumps(head)[:-1] + ', "portraits": {\n' + lines + "\n}}\n")


main()
