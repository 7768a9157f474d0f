#!/bin/sh
# A request that is refused: the reply says what is wrong and points at it. curl ends with status 22.
set -eu
url=${ATTND_URL:-http://127.0.0.1:8080}
exec curl --silent --show-error --fail-with-body "$url/v1/attention" --json '{
  "query": [[1, 2], [3, 1e39]]
}'
