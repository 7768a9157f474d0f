#!/bin/sh
# The textbook's four embeddings through projections to queries, keys and values (y = x W).
set -eu
url=${ATTND_URL:-http://127.0.0.1:8080}
exec curl --silent --show-error --fail-with-body "$url/v1/attention" --json '{
  "embeddings": [[0, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 0]],
  "projections": {
    "query": [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]],
    "key":   [[0.9, 0.8, 0.7], [0.6, 0.5, 0.4], [0.3, 0.2, 0.1]],
    "value": [[0.2, 0.4, 0.6], [0.8, 1.0, 1.2], [1.4, 1.6, 1.8]]
  },
  "precision": 7
}'
