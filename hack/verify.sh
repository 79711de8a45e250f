#!/usr/bin/env bash
# Fails when a Go file is not formatted, when a module's content is not the one
# that go.sum names, and when what is generated is not what hack/generate.sh
# writes; it leaves these files as that wrote them.
set -euo pipefail
cd "$(dirname "$0")/.."

unformatted=$(git ls-files -z '*.go' | xargs -0 gofmt -l)
if [ -n "$unformatted" ]; then
  echo "not formatted: run make fmt" >&2
  echo "$unformatted" >&2
  exit 1
fi
go mod verify
(cd hack/protos && go mod verify)

generated() { find api docs/flags.md \( -name 'zz_generated.*' -o -path '*/crds/bases/*.yaml' -o -name flags.md \) -print | sort; }

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
