#!/bin/sh
# The whole of a loaded model: the likeliest next tokens, and where the heads of its last layer look from the last
# position. MODEL is one with stacks, as models.sh says; TOKENS is what it reads.
set -eu
url=${ATTND_URL:-http://127.0.0.1:8080}
model=${MODEL:-alice}
tokens=${TOKENS:-[538,315,733]}
exec curl --silent --show-error --fail-with-body "$url/v1/models/$model/forward" --json "{
	\"tokens\": $tokens, \"top_logits\": 5,
	\"outputs\": [\"weights\"], \"layers\": [-1], \"queries\": [-1], \"top_k\": 3}"
