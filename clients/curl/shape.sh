#!/bin/sh
# Tensors as a shape and flat data; an empty sequence of keys gives a context of zeros.
set -eu
url=${ATTND_URL:-http://127.0.0.1:8080}
exec curl --silent --show-error --fail-with-body "$url/v1/attention" --json '{
  "query": {"shape": [1, 2], "data": [1, 2]},
  "key":   {"shape": [0, 2], "data": []},
  "value": {"shape": [0, 3], "data": []}
}'
