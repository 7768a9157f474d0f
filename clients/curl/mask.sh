#!/bin/sh
# A boolean mask: true means "may attend". The first query may attend to nothing and gets zeros.
set -eu
url=${ATTND_URL:-http://127.0.0.1:8080}
exec curl --silent --show-error --fail-with-body "$url/v1/attention" --json '{
  "query": [[1, 0], [0, 1]],
  "value": [[1, 2], [3, 4]],
  "mask":  [[false, false], [true, true]],
  "precision": 7
}'
