#!/usr/bin/env bash
# Runs the tests that reach the compiled core, and the fuzzer of its calls, with the core built
# under sanitizers: tests/sanitize.sh address,undefined (the default) or tests/sanitize.sh thread.
# Called by `make sanitize` and `make sanitize-threads`, which set BIN to the virtual
# environment's programs. INPUTS says how many random calls there are of each kind; further
# arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(cd "${BIN:-.venv/bin}" && pwd)
sanitizers=${1:-address,undefined}
[ $# -gt 0 ] && shift
inputs=${INPUTS:-2000}
python=$("$bin/python" -c 'import sys; print(sys._base_executable)')
site=$("$bin/python" -c 'import msgspec, pathlib; print(pathlib.Path(msgspec.__file__).parents[1])')
out=build/sanitize-${sanitizers%%,*}
mkdir -p build

PATH=$bin:$PATH cmake -S . -B "$out" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DRESOLVENT_SANITIZE="$sanitizers" -DPython_EXECUTABLE="$bin/python" >"$out.log" 2>&1 ||
  { cat "$out.log"; exit 1; }
PATH=$bin:$PATH cmake --build "$out"

# A copy of the package beside the sanitized core. The base interpreter with an
# explicit path does not see the editable install, so this copy is what runs.
rm -rf "$out/package" && mkdir -p "$out/package"
cp -r src/resolvent "$out/package/"
rm -f "$out"/package/resolvent/_core*.so
cp "$out"/_core*.so "$out/package/resolvent/"

libraries="libasan.so libubsan.so"
[ "$sanitizers" = thread ] && libraries=libtsan.so
preload=
for library in $libraries libstdc++.so; do
  preload+=$(${CXX:-g++} -print-file-name=$library):
done
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
# Locks of libraries that are seen in part would count as held for ever, and as deadlocks.
export TSAN_OPTIONS=halt_on_error=1:detect_deadlocks=0:history_size=4:suppressions=$PWD/tests/threads_of_others.txt
export PYTHONPATH=$PWD/$out/package:$PWD/tests:$site

# What a sanitizer reports is not captured. Ray is left out: it is not the core, nor does it begin.
pytest="-m pytest -p no:xdist --capture=sys"
tests="not slow and not xdist_group"

core=$(LD_PRELOAD=$preload "$python" -S -s -c 'from fuzz.core_calls import TARGETS; print(*[one.name for one in TARGETS])')
if [ "$sanitizers" = thread ]; then
  # Threads share columns and trees; every call gives what it gives alone.
  LD_PRELOAD=$preload "$python" -S -s -m fuzz.core_threads --inputs "$inputs"
  LD_PRELOAD=$preload "$python" -S -s $pytest -m "$tests" "$@" tests/replay tests/_util/test_parallel.py
else
  targets=
  for name in $core; do targets+=" --target $name"; done
  LD_PRELOAD=$preload "$python" -S -s -m fuzz --no-limits --inputs "$inputs" $targets
  LD_PRELOAD=$preload "$python" -S -s $pytest -m "$tests" "$@" \
    tests/inference tests/machines tests/noise tests/planning tests/preprocess tests/replay tests/laws \
    tests/_util/test_math.py tests/traces/io/test_table.py tests/traces/test_digest.py \
    tests/traces/test_vocabulary.py tests/paper/baselines/test_hmm_em.py
fi
