#!/bin/sh
# Causal attention: no query sees a later key. Queries and keys are zero, so every key seen weighs the same.
set -eu
url=${ATTND_URL:-http://127.0.0.1:8080}
exec curl --silent --show-error --fail-with-body "$url/v1/attention" --json '{
  "query": [[0], [0]],
  "key":   [[0], [0], [0]],
  "value": [[10], [20], [60]],
  "causal": true,
  "precision": 7
}'
