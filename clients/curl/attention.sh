#!/bin/sh
# Attention of raw queries, keys and values: two queries, two keys, values of width 2.
set -eu
url=${ATTND_URL:-http://127.0.0.1:8080}
exec curl --silent --show-error --fail-with-body "$url/v1/attention" --json '{
  "query": [[1, 0], [0, 1]],
  "key":   [[1, 0], [0, 1]],
  "value": [[1, 2], [3, 4]],
  "precision": 7
}'
