#!/bin/sh
# One attention layer of a loaded model, with its learned projections. MODEL and EMBEDDINGS may be set.
set -eu
url=${ATTND_URL:-http://127.0.0.1:8080}
model=${MODEL:-tiny-mha}
embeddings=${EMBEDDINGS:-[[1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],[0,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0]]}
exec curl --silent --show-error --fail-with-body "$url/v1/models/$model/attention" \
	--json "{\"embeddings\": $embeddings}"
