#!/usr/bin/env bash
# The oldest versions of all dependencies that pyproject.toml allows, and tests that reach
# them. Called by `make oldest`, which sets PYTHON; takes the wheel in dist/ that fits it, if any.
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
# Named by pyproject.toml they are direct; those that only the wheel names would be the newest.
"$tools/bin/uv" -q pip install --resolution lowest-direct --requirement pyproject.toml "$what"
# Tools for tests are as new as they come, and change nothing that is there already.
"$tools/bin/uv" pip freeze | grep -v '^resolvent' >build/oldest.txt
"$tools/bin/uv" -q pip install --constraint build/oldest.txt pytest hypothesis pandas polars

# The tests from a copy, so that the package is the installed one.
rm -rf build/oldest-tests && mkdir build/oldest-tests
cp -r tests pyproject.toml README.md docs benchmarks examples build/oldest-tests/
cd build/oldest-tests
"$VIRTUAL_ENV/bin/resolvent" doctor
"$VIRTUAL_ENV/bin/python" tests/smoke.py
# Pictures need an extra, and there are none here.
"$VIRTUAL_ENV/bin/python" -m pytest -q -p no:cacheprovider -W default -m "not slow" \
  --deselect tests/cli/test_cli_show.py::test_a_picture \
  --deselect tests/cli/test_cli_show.py::test_a_png_picture_into_a_pipe \
  tests/test_start_up.py tests/cli/test_cli_infer.py tests/cli/test_cli_show.py \
  tests/cli/test_cli_completion.py tests/machines/test_json_files.py tests/environments \
  tests/traces/test_json_lines.py tests/traces/test_parquet.py tests/traces/test_collecting.py \
  tests/control/test_augment_observation.py tests/formats
