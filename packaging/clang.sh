#!/usr/bin/env bash
# Build the core and its bindings with Clang 16 or newer, with its warnings as errors, except for
# deprecated functions that libstdc++ itself uses. On Debian: apt-get install clang-16. Called by
# `make clang`, which sets BIN to the virtual environment's programs.
set -euo pipefail
cd "$(dirname "$0")/.."
clang=${CLANG:-$(compgen -c clang++ | sort -rV | head -n 1 || true)}
if [ -z "$clang" ]; then
  echo "no clang++ here: nothing was built (install Clang, or name one by CLANG=...)"
  exit 0
fi
bin=$(cd "${BIN:-.venv/bin}" && pwd)
PATH=$bin:$PATH cmake -S . -B build/clang -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_COMPILER="$clang" -DCMAKE_CXX_FLAGS=-Wno-deprecated-declarations \
  -DPython_EXECUTABLE="$bin/python" >/dev/null
PATH=$bin:$PATH cmake --build build/clang --parallel 2
echo "built without a warning by $("$clang" --version | head -n 1)"
