#!/bin/sh
# The page in a real browser, on a real server with the demo machine; $PYTHON has gpulse and its extra `serve`.
set -eu
cd "$(dirname "$0")/.."
export PYTHON=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
umask 077
od -An -N16 -tx1 /dev/urandom | tr -d ' \n' > "$folder/token"
port=$("$PYTHON" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export GPULSE_URL="http://127.0.0.1:$port/" GPULSE_TOKEN="$(cat "$folder/token")"
export GPULSE_SERVE="$PYTHON -m gpulse serve --demo --port $port --token-file $folder/token --history $folder/history.db"
npm run --silent test:browser
