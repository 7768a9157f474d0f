#!/bin/sh
# Cross-attention: one query over keys and values of another length and width, two heads, weights averaged.
set -eu
url=${ATTND_URL:-http://127.0.0.1:8080}
exec curl --silent --show-error --fail-with-body "$url/v1/attention" --json '{
  "query": [[0, 0]],
  "key":   [[0, 0], [0, 0], [0, 0]],
  "value": [[10, 1, 2, 3], [20, 1, 2, 3], [60, 1, 2, 3]],
  "heads": 2,
  "weights": "mean",
  "precision": 7
}'
