#!/usr/bin/env bash
# Runs go vet on all packages, or on those that are named. Of what others wrote, go vet
# wants to know which functions are like Printf, or never return, and parses and checks all
# of it for that. Here it does so for what our own packages import, and for the internal
# packages that this imports: nothing else is called by ours, and most of Kubernetes stays unread.
set -euo pipefail
cd "$(dirname "$0")/.."

[ "$#" -gt 0 ] || set -- ./...
VET_IMPORTS=$(mktemp)
trap 'rm -f "$VET_IMPORTS"' EXIT
go list -deps -test -f '{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}
{{end}}{{range .TestImports}}{{$p}} {{.}}
{{end}}{{range .XTestImports}}{{$p}} {{.}}
{{end}}' ./... | awk '
	$1 ~ /^github\.com\/flotilla-io\/flotilla/ { ours[$NF] }
	$NF ~ /\/internal/ { inside[$1] = inside[$1] " " $NF }
	END {
		for (p in ours) {
			print p
			n = split(inside[p], found, " ")
			for (i = 1; i <= n; i++) print found[i]
		}
	}' | sort -u >"$VET_IMPORTS"
VET=$(go tool -n vet)
export VET VET_IMPORTS
go vet -vettool="$PWD/hack/vettool.sh" "$@"
