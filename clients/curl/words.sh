#!/bin/sh
# Text in, words named: the three words that each head of the last layer looks at most from the last word.
# Needs jq. The alphabet of byte-level vocabularies writes a space before a word as "Ġ".
set -eu
url=${ATTND_URL:-http://127.0.0.1:8080}
reply=$(curl --silent --show-error --fail-with-body "$url/v1/models/alice/forward" --json '{
  "text": "Alice looked at the little door",
  "outputs": ["weights"],
  "layers": [-1],
  "queries": [-1],
  "top_k": 3,
  "precision": 3
}')
printf '%s\n' "$reply" | jq --raw-output '
  .token_strings as $tokens
  | .weights[0]
  | [.indices, .values]
  | transpose
  | to_entries[]
  | "head \(.key): " + ([.value[0][0], .value[1][0]] | transpose
      | map("\($tokens[.[0]] | ltrimstr("Ġ")) \(.[1])") | join(", "))'
