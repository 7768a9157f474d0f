#!/bin/sh
# A batch of two sequences padded to three keys: key_lengths says how many of each are real.
set -eu
url=${ATTND_URL:-http://127.0.0.1:8080}
exec curl --silent --show-error --fail-with-body "$url/v1/attention" --json '{
  "query": [[[0]], [[0]]],
  "key":   [[[0], [0], [0]], [[0], [0], [0]]],
  "value": [[[10], [20], [60]], [[10], [20], [60]]],
  "key_lengths": [2, 3],
  "precision": 7
}'
