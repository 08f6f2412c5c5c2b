#!/usr/bin/env bash
# Installs Chromium, in which tests open the report, as Debian's package. Does nothing
# where a browser that they take is there already. Called by `make browser`.
set -euo pipefail
for browser in chromium chromium-browser google-chrome; do
  if command -v "$browser" >/dev/null; then exit 0; fi
done

if ! command -v apt-get >/dev/null; then
  echo "no apt-get here: install Chromium or Chrome by hand, so that 'chromium' or" \
    "'google-chrome' starts it" >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "installing Chromium needs root, and there is no sudo: run as root" \
      "'apt-get install chromium'" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "installing Chromium, in which tests open the report (once)"
get=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq
  -o Acquire::Retries=5 -o DPkg::Lock::Timeout=120)
"${get[@]}" update || echo "going on with the lists of packages that are there" >&2
"${get[@]}" install -y --no-install-recommends -o Dpkg::Use-Pty=0 chromium >/dev/null
