#!/usr/bin/env bash
# Builds the Dockerfile with buildah and asks the image a question. Needs root, buildah, debootstrap and curl.
#
# BASE names a base image; without it one is made from Debian's own packages, from the mirror of this machine,
# and kept for the next time as localhost/debian:bookworm-slim.
set -euo pipefail
cd "$(dirname "$0")/../.."
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
BASE=${BASE:-localhost/debian:bookworm-slim}
IMAGE=localhost/attnd:test
work=$(mktemp -d)
container=
daemon=

clean_up() {
	[ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
	[ -z "$container" ] || buildah rm "$container" >/dev/null
	rm -rf "$work"
}
trap clean_up EXIT

say() { printf 'container: %s\n' "$*"; }
fail() {
	say "$*" >&2
	[ ! -e "$work/log" ] || cat "$work/log" >&2
	exit 1
}

make_base() {
	local mirror root
	mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
		sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)*\(http[^ ]*\).*/\2/p' | head -n 1)
	say "making the base image with debootstrap"
	debootstrap --variant=minbase bookworm "$work/root" "${mirror:-http://deb.debian.org/debian}" >"$work/log"
	rm "$work/log"
	root=$(buildah from scratch)
	buildah add --quiet "$root" "$work/root" / >/dev/null
	buildah config --cmd bash --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$root"
	buildah commit --quiet --format docker "$root" "$BASE" >/dev/null
	buildah rm "$root" >/dev/null
}

inspect() { buildah inspect --type image --format "{{$1}}" "$IMAGE"; }

# The process named attnd below a process, waited for.
attnd_below() {
	local tries child
	for ((tries = 0; tries < 100; tries++)); do
		for child in $(pgrep -x attnd || true); do
			local up=$child
			while [ "$up" -gt 1 ]; do
				[ "$up" -ne "$1" ] || { echo "$child" && return 0; }
				up=$(awk '/^PPid:/ { print $2 }' "/proc/$up/status" 2>/dev/null || echo 1)
			done
		done
		sleep 0.1
	done
	return 1
}

# Port of the ready line in the log, waited for.
ready_port() {
	local tries port
	for ((tries = 0; tries < 300; tries++)); do
		port=$(sed -n 's/.*event=ready .*listen=[^ ]*:\([0-9]*\).*/\1/p' "$work/log" | head -n 1)
		[ -z "$port" ] || { echo "$port" && return 0; }
		sleep 0.1
	done
	return 1
}

buildah images "$BASE" >/dev/null 2>&1 || make_base

say "building $IMAGE on $BASE"
buildah bud --quiet --network host --pull-never --format docker --build-arg "BASE=$BASE" \
	--build-arg "VERSION=$(cat VERSION)" --tag "$IMAGE" .

[ "$(inspect .Docker.Config.User)" = attnd ] || fail "the image does not run as attnd"
[ "$(inspect .Docker.Config.Entrypoint)" = "[attnd]" ] || fail "the entry point is not [attnd]"
[ "$(inspect .Docker.Config.Healthcheck.Test)" = "[CMD attnd --healthcheck]" ] || fail "the health check is another"
inspect .Docker.Config.Env | grep -q ATTND_LISTEN=0.0.0.0:8080 || fail "the image does not listen on every address"

inspect .Docker.Config.Labels | grep -q "image.version:$(cat VERSION)" || fail "its labels do not tell the version"

# Size and name of each file of an image.
files_of() {
	local from mounted
	from=$(buildah from --pull-never "$1") && mounted=$(buildah mount "$from") &&
		(cd "$mounted" && find . -xdev -type f -printf '%s %p\n' | LC_ALL=C sort) && buildah rm "$from" >/dev/null
}
files_of "$BASE" >"$work/base" && files_of "$IMAGE" >"$work/image"
added=$(LC_ALL=C comm -13 "$work/base" "$work/image" | awk '{ bytes += $1 } END { print int(bytes / 1000000) + 1 }')
[ "$added" -lt 70 ] || fail "it adds $added MB to its base"
say "it adds $added MB to its base"

say "running it"
container=$(buildah from --pull-never "$IMAGE")
root=$(buildah mount "$container")
touch "$work/before"
buildah run --network host --env ATTND_LISTEN=127.0.0.1:0 "$container" -- attnd >"$work/log" 2>&1 &
daemon=$!
port=$(ready_port) || fail "it did not become ready"
attnd=$(attnd_below "$daemon") || fail "there is no process attnd"
[ "$(stat -c %u "/proc/$attnd")" -ne 0 ] || fail "it runs as root"
buildah run --network host --env "ATTND_LISTEN=127.0.0.1:$port" "$container" -- attnd --healthcheck ||
	fail "its own health check fails"
reply=$(curl --silent --show-error --fail-with-body "http://127.0.0.1:$port/v1/attention" \
	--json '{"query":[[0],[0]],"key":[[0],[0],[0]],"value":[[10],[20],[60]],"causal":true,"precision":7}')
case $reply in
*'"context":[[15],[30]]'*) ;;
*) fail "a wrong reply: $reply" ;;
esac
curl --silent --show-error --fail-with-body "http://127.0.0.1:$port/v1/models" | grep -q '"tiny-mha"' ||
	fail "it does not serve the embedded model"
kill -TERM "$attnd"
wait "$daemon" || fail "it did not end with status 0"
daemon=
# What buildah itself puts there for a run is not the daemon's.
written=$(find "$root" -xdev -type f -newer "$work/before" -not -path "$root/etc/*" -not -path "$root/run/*")
[ -z "$written" ] || fail "it wrote to its root: $written"
say "the image answers, as a user of its own, and stops when asked"
