#!/bin/sh
# A virtual environment with the tools that check and build this package, at the versions of requirements-check.txt, or
# with what another file of requirements lists:
#
#   clients/python/make_venv.sh FOLDER [PYTHON [REQUIREMENTS]]
#
# Does nothing when FOLDER has them already. Needs python3-venv and a package index.
set -eu
wanted=${3:-$(dirname "$0")/requirements-check.txt}
folder=$1
python=${2:-/usr/bin/python3}
if cmp -s "$wanted" "$folder/installed.txt"; then
	exit 0
fi
"$python" -m venv --clear "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --timeout 15 --retries 1 --requirement "$wanted"
cp "$wanted" "$folder/installed.txt"
