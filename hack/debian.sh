#!/usr/bin/env bash
# Makes sure that the named Debian packages are there, and installs those that
# are not. Says what to do where it may not install.
set -euo pipefail

missing=()
for package in "$@"; do
	dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ "${#missing[@]}" -gt 0 ] || exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
	echo "the tests need: ${missing[*]}. Install them, then run this again." >&2
	exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
apt-get -qq install --no-install-recommends -y "${missing[@]}" >/dev/null
