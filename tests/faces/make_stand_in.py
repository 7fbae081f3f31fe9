"""Writes stand_in.onnx: a small network that takes a face as SFace does and gives 128 numbers, for tests.

    pip install numpy onnx
    python tests/faces/make_stand_in.py

Two convolutions, two poolings and a projection with seeded random weights: a face is like itself, and nothing is
recognised. It goes the way of a real face model, file, engine and all. The first convolution's filters have no mean and
the projected sums are taken from their own mean, so that light and the average face say nothing.
"""

import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def main():
    random = np.random.default_rng(20260504)
    first = random.normal(0, 0.02, (6, 3, 5, 5)).astype(np.float32)
    first -= first.mean((1, 2, 3), keepdims=True)
    second = random.normal(0, 0.2, (8, 6, 3, 3)).astype(np.float32)
    project = random.normal(0, 0.1, (8 * 7 * 7, 128)).astype(np.float32)
    project -= project.mean(0, keepdims=True)
    tensors = {
        "first": first,
        "second": second,
        "project": project,
        "flat": np.array([1, 8 * 7 * 7], np.int64),
    }
    node = helper.make_node
    nodes = [
        node("Conv", ["data", "first"], ["a"], kernel_shape=[5, 5], strides=[2, 2], pads=[2, 2, 2, 2]),
        node("Relu", ["a"], ["b"]),
        node("AveragePool", ["b"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["c", "second"], ["d"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        node("Relu", ["d"], ["e"]),
        node("AveragePool", ["e"], ["f"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Reshape", ["f", "flat"], ["g"]),
        node("MatMul", ["g", "project"], ["numbers"]),
    ]
    graph = helper.make_graph(
        nodes,
        "stand-in for a face model",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, [1, 3, 112, 112])],
        [helper.make_tensor_value_info("numbers", TensorProto.FLOAT, [1, 128])],
        [numpy_helper.from_array(value, name) for name, value in tensors.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    (pathlib.Path(__file__).resolve().parent / "stand_in.onnx").write_bytes(model.SerializeToString(deterministic=True))


main()
