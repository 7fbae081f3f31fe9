"""Brings the portraits that the tests look at into a folder, once.

    python3 tests/faces/portraits.py FOLDER

They are public-domain photographs out of the source package of `face_recognition`, which pip downloads and checks by
its hash; nothing of the package is run or installed. They never become part of the project.
"""

import pathlib
import subprocess
import sys
import tarfile
import tempfile

PACKAGE = "face_recognition==1.3.0 --hash=sha256:5e5efdd1686aa566af0d3cc1313b131e4b197657a8ffd03669e6d3fad92705ec"
INSIDE = "face_recognition-1.3.0/tests/test_images/"
PORTRAITS = ["biden.jpg", "obama.jpg", "obama2.jpg", "obama3.jpg", "obama_partial_face.jpg", "obama_partial_face2.jpg"]


def main():
    folder = pathlib.Path(sys.argv[1])
    if all((folder / name).is_file() for name in PORTRAITS):
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        work = pathlib.Path(work)
        (work / "list.txt").write_text(PACKAGE + "\n")
        # pip asks a source package for its name and version, which needs setuptools and wheel; it brings them itself.
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps", "--no-binary=:all:"]
        subprocess.run([*pip, "--dest", str(work), "-r", str(work / "list.txt")], check=True)
        with tarfile.open(next(work.glob("*.tar.gz"))) as package:
            for name in PORTRAITS:
                (work / name).write_bytes(package.extractfile(INSIDE + name).read())
        for name in PORTRAITS:
            (work / name).replace(folder / name)


main()
