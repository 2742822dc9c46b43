#!/bin/sh
# Builds the wheel and the source distribution, installs each into an empty virtual environment with torch, and checks
# that the compiled kernels are used and right. Some minutes, and a download of torch; not part of CI.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m venv "$work/build"
"$work/build/bin/pip" install -q build
"$work/build/bin/python" -m build --outdir "$work/dist" . # the wheel is built from the source distribution
ls -l "$work/dist"
"$python" -m zipfile -l "$work"/dist/*.whl
if "$python" -m zipfile -l "$work"/dist/*.whl | grep -E '(tests|build|csrc|docs|benchmarks)/'; then
    echo "the wheel holds what it should not" >&2
    exit 1
fi
for file in "$work"/dist/*.whl "$work"/dist/*.tar.gz; do
    echo "== $(basename "$file")"
    rm -rf "$work/empty"
    "$python" -m venv "$work/empty"
    "$work/empty/bin/pip" install -q -c constraints.txt "$file"
    (cd "$work" && "$work/empty/bin/python" "$OLDPWD/tests/check_wheel.py" --torch)
done
