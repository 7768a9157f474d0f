#!/bin/sh
# Installs the Debian 12 packages that attnd needs and that are missing.
#
#   ./bootstrap.sh [build|run|demo|test|coverage|container]     default: build
#
# build: compile; run: also curl, to paste examples; demo: also Python; test: everything that `make check` uses;
# coverage and container: what the Makefile's targets of those names use.
# Touches neither network nor system when nothing is missing. Needs root or sudo otherwise.
set -eu

BUILD="gcc libc6-dev make pkg-config libmicrohttpd-dev libjansson-dev libuv1-dev libopenblas-pthread-dev libinih-dev
libsystemd-dev zlib1g-dev libutf8proc-dev libpcre2-dev"
RUN="$BUILD curl"
DEMO="$RUN python3"
TEST="$DEMO check libsubunit-dev python3-pytest python3-numpy python3-yaml python3-venv python3-matplotlib jq valgrind prometheus clang
libclang-rt-14-dev clang-format systemd groff-base"
COVERAGE="$TEST gcovr"
CONTAINER="$RUN buildah debootstrap procps"

kind=${1:-build}
case $kind in
build) wanted=$BUILD ;;
run) wanted=$RUN ;;
demo) wanted=$DEMO ;;
test) wanted=$TEST ;;
coverage) wanted=$COVERAGE ;;
container) wanted=$CONTAINER ;;
*)
	echo "usage: $0 [build|run|demo|test|coverage|container]" >&2
	exit 2
	;;
esac
wanted=$(echo $wanted)

if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
	echo "bootstrap: this system has no apt-get; '$kind' needs what Debian 12 calls: $wanted" >&2
	exit 0
fi

# One line "name status" for each known package; what is not installed is missing.
installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' $wanted 2>/dev/null | sed -n 's/ installed$//p' || true)
missing=
for package in $wanted; do
	case "
$installed
" in
	*"
$package
"*) ;;
	*) missing="$missing $package" ;;
	esac
done
if [ -z "$missing" ]; then
	echo "bootstrap: nothing is missing for '$kind'"
	exit 0
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
	if ! command -v sudo >/dev/null 2>&1; then
		echo "bootstrap: run as root, or install sudo; missing for '$kind':$missing" >&2
		exit 1
	fi
	as_root=sudo
fi
echo "bootstrap: installing for '$kind':$missing"
$as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing </dev/null
echo "bootstrap: done"
