#!/bin/sh
# The models that are loaded: their architecture, layers, heads and widths.
set -eu
url=${ATTND_URL:-http://127.0.0.1:8080}
exec curl --silent --show-error --fail-with-body "$url/v1/models"
