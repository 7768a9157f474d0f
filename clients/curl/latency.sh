#!/bin/sh
# Latency against sequence length: sends one request of each length, then asks for the quantiles and the fit.
# LENGTHS may be set; the daemon must see lengths of 128 and more to tell the exponent of growth.
set -eu
url=${ATTND_URL:-http://127.0.0.1:8080}
for length in ${LENGTHS:-16 64 128 256 512}; do
	awk -v n="$length" 'BEGIN {
		printf "{\"weights\":false,\"query\":["
		for (i = 0; i < n; i++)
			printf "%s[%g,%g,%g,%g]", i ? "," : "", i / n, 1 - i / n, (i % 7) / 7, (i % 3) / 3
		printf "]}"
	}' | curl --silent --show-error --fail-with-body --output /dev/null "$url/v1/attention" --json @-
done
exec curl --silent --show-error --fail-with-body "$url/v1/latency"
