#!/bin/sh
# Serves the embedded model and, once the daemon answers, prints lines to paste into another terminal.
#
#   clients/run.sh PATH-OF-ATTND HOST:PORT
set -eu
attnd=$1 listen=$2

say_when_ready() {
	tries=0
	until "$attnd" --healthcheck --listen "$listen" >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ "$tries" -lt 300 ] || return 0
		sleep 0.1
	done
	cat <<EOF

attnd answers on http://$listen. In another terminal:

  curl http://$listen/v1/attention --json '{"query":[[1,0],[0,1]],"value":[[1,2],[3,4]],"precision":6}'

  curl http://$listen/v1/models/alice/forward --json '{"text":"Alice was beginning to get very tired","outputs":["weights"],"layers":[-1],"queries":[-1],"top_k":3,"precision":3}'

  curl http://$listen/v1/models/tiny-mha/attention --json '{"embeddings":[[1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],[0,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0],[0,0,1,0,0,0,0,0,0,0,0,0,0,0,0,0]],"precision":4}'

Ctrl-C stops it.

EOF
}

say_when_ready &
exec "$attnd" --listen "$listen"
