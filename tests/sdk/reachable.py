"""Whether the SDK's kinematics can reach poses: one a line, 16 numbers of the head's matrix and the body's yaw.

Prints the number of poses, the largest share of a leg motor's range that was used, and the largest distance between
a pose and what its legs really make of it, in millimetres and degrees.
"""

import sys

import numpy as np
from reachy_mini.kinematics.analytical_kinematics import AnalyticalKinematics

# The legs' ranges in the robot's description, in radians.
RANGES = [(-0.838, 1.396), (-1.396, 1.222), (-0.838, 1.396), (-1.396, 0.838), (-1.222, 1.396), (-1.396, 0.838)]

kinematics = AnalyticalKinematics()
count, used, far, turned = 0, 0.0, 0.0, 0.0
for line in sys.stdin:
    numbers = np.array([float(number) for number in line.split()])
    pose, body = numbers[:16].reshape(4, 4), numbers[16]
    joints = kinematics.ik(pose, body_yaw=body)
    if joints is None or np.any(np.isnan(joints)):
        sys.exit(f"cannot be reached: {numbers.tolist()}")
    if abs(joints[0] - body) > 1e-6:
        sys.exit(f"the body would be turned to {joints[0]} instead of {body}")
    for joint, (least, most) in zip(joints[1:], RANGES):
        used = max(used, joint / most if joint > 0 else joint / least)
    # From one pose to the next the solver starts where it was, as the daemon's does.
    there = kinematics.fk(joints, no_iterations=20)
    far = max(far, 1000 * float(np.linalg.norm(there[:3, 3] - pose[:3, 3])))
    angle = np.arccos(np.clip((np.trace(there[:3, :3].T @ pose[:3, :3]) - 1) / 2, -1, 1))
    turned = max(turned, float(np.degrees(angle)))
    count += 1
print(count, used, far, turned)
