#!/usr/bin/env bash
# Run tests with the oldest dependencies that pyproject.toml allows. Called by `make oldest`, which
# sets PYTHON; installs the wheel in dist/ for that Python if there is one.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
tools=build/oldest-tools
oldest=build/oldest

[ -x "$tools/bin/python" ] || "$python" -m venv "$tools"
"$tools/bin/python" -m pip -qq install uv
rm -rf "$oldest" && "$tools/bin/uv" -q venv --python "$python" "$oldest"
export VIRTUAL_ENV=$PWD/$oldest
rm -rf build/oldest-wheel && mkdir build/oldest-wheel
if "$tools/bin/python" -m pip -qq download --no-index --find-links dist --only-binary resolvent \
  --no-deps --dest build/oldest-wheel resolvent 2>/dev/null; then
  what=$(echo build/oldest-wheel/*.whl)
else
  what=.
fi
echo "the oldest dependencies of $what"
# pyproject.toml makes them direct dependencies; those of the wheel alone would be the newest.
"$tools/bin/uv" -q pip install --resolution lowest-direct --requirement pyproject.toml "$what"
# The newest tools for tests, without a change to what is installed.
"$tools/bin/uv" pip freeze | grep -v '^resolvent' >build/oldest.txt
"$tools/bin/uv" -q pip install --constraint build/oldest.txt pytest hypothesis pandas polars

# The tests from a copy, so that the package is the installed one.
rm -rf build/oldest-tests && mkdir build/oldest-tests
cp -r tests pyproject.toml README.md docs benchmarks examples build/oldest-tests/
cd build/oldest-tests
"$VIRTUAL_ENV/bin/resolvent" doctor
"$VIRTUAL_ENV/bin/python" tests/smoke.py
# Pictures need an extra, which is not installed here.
"$VIRTUAL_ENV/bin/python" -m pytest -q -p no:cacheprovider -W default -m "not slow" \
  --deselect tests/cli/test_cli_show.py::test_a_picture \
  --deselect tests/cli/test_cli_show.py::test_a_png_picture_into_a_pipe \
  tests/test_start_up.py tests/cli/test_cli_infer.py tests/cli/test_cli_show.py \
  tests/cli/test_cli_completion.py tests/traces/io/test_json_lines.py tests/traces/io/test_table_parquet.py \
  tests/formats tests/rl/test_collect.py tests/rl/test_augment.py tests/worlds
