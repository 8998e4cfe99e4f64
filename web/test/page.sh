#!/bin/sh
# Builds the pages, compares them with the committed files (the folders named as arguments), and tests them, in a browser where there is one.
set -eu
command -v npm >/dev/null || { echo "skipped: the pages are neither built nor tested without npm"; exit 0; }
sums() { find "$@" -type f | sort | xargs sha256sum; }
before=$(sums "$@")
# What the lock file names is installed once: a second run needs no network.
(cd web && { [ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --silent --no-audit --no-fund; } && npm run --silent build && npm run --silent check && npm test --silent)
[ "$(sums "$@")" = "$before" ] || { echo "the committed pages are not what web/ builds: commit the result of the build"; exit 1; }
command -v chromium >/dev/null || { echo "skipped: the tests of the page in a browser need chromium"; exit 0; }
cd web && npm run --silent test:browser
