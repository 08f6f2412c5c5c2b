#!/usr/bin/env bash
# Runs the tests that reach the compiled core with the core built under
# AddressSanitizer and UndefinedBehaviorSanitizer. Called by `make sanitize`,
# which sets BIN to the virtual environment's programs.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(cd "${BIN:-.venv/bin}" && pwd)
python=$("$bin/python" -c 'import sys; print(sys._base_executable)')
site=$("$bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["platlib"])')
out=build/sanitize

PATH=$bin:$PATH cmake -S . -B "$out" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DRESOLVENT_SANITIZE=ON -DPython_EXECUTABLE="$bin/python" >"$out.log" 2>&1 ||
  { cat "$out.log"; exit 1; }
PATH=$bin:$PATH cmake --build "$out"

# A copy of the package beside the sanitized core. The base interpreter with an
# explicit path does not see the editable install, so this copy is what runs.
rm -rf "$out/package" && mkdir -p "$out/package"
cp -r src/resolvent "$out/package/"
cp "$out"/_core*.so "$out/package/resolvent/"

preload=
for library in libasan.so libubsan.so libstdc++.so; do
  preload+=$(${CXX:-g++} -print-file-name=$library):
done
LD_PRELOAD=$preload ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
  PYTHONPATH=$PWD/$out/package:$site \
  "$python" -S -s -m pytest -m "not slow" -p no:xdist "$@" \
  tests/merging tests/exact tests/replay tests/trust tests/refinement tests/reduction tests/machines tests/control tests/laws tests/events tests/noise tests/arithmetic \
  tests/traces/tables/test_table_rows.py tests/traces/test_digest.py tests/traces/test_choosing.py tests/traces/test_vocabulary.py \
  tests/baselines/test_hmm_expectation.py
