#!/usr/bin/env bash
# Known vulnerabilities in the dependencies of `resolvent`, and their licenses.
# Called by `make audit`, which sets BIN to the virtual environment's programs.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(cd "${BIN:-.venv/bin}" && pwd)
tools=build/audit-tools

"$bin/python" packaging/licenses.py
[ -x "$tools/bin/python" ] || "$bin/python" -m venv "$tools"
"$tools/bin/python" -m pip -qq install pip-audit
"$bin/python" - >build/audit.txt <<'PYTHON'
import sys
from importlib import metadata
sys.path.insert(0, "packaging")
from licenses import installed_with
for name in installed_with("resolvent"):
    if name != "resolvent":
        print(f"{name}=={metadata.version(name)}")
PYTHON
"$tools/bin/pip-audit" --no-deps --disable-pip --requirement build/audit.txt \
  >build/audit.log 2>&1 && failed=0 || failed=1
if grep -qiE "could not be audited|connection|timed out|unreachable" build/audit.log; then
  echo "vulnerabilities were not looked up for all packages: the service cannot be reached from here"
  [ "${CI:-}" != true ] || { cat build/audit.log; exit 1; }  # there it must be
  exit 0
fi
cat build/audit.log
exit $failed
