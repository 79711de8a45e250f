#!/usr/bin/env bash
# Fails when what is generated under api/ is not what hack/generate.sh writes,
# and leaves the files as it wrote them.
set -euo pipefail
cd "$(dirname "$0")/.."

generated() { find api \( -name 'zz_generated.*' -o -path '*/crds/bases/*.yaml' \) -print | sort; }

before=$(mktemp -d)
trap 'rm -rf "$before"' EXIT
mkdir "$before/old" "$before/new"
generated | xargs -r cp --parents -t "$before/old"
hack/generate.sh
generated | xargs -r cp --parents -t "$before/new"

if ! diff -ru "$before/old" "$before/new"; then
  echo "generated files were out of date: commit what hack/generate.sh wrote" >&2
  exit 1
fi
