#!/usr/bin/env bash
# Runs the short tests of the packages that have goroutines of their own, or of
# those that are named, under the race detector. With --no-servers those are left out
# whose tests run an API server: it is what takes longest to compile. SHUFFLE=SEED
# repeats an order. More packages than there are cores run at once: they wait for
# servers for a third of the time.
set -euo pipefail
cd "$(dirname "$0")/.."

export CGO_ENABLED=1 # the race detector is C
servers=yes
if [ "${1:-}" = --no-servers ]; then
	servers=no
	shift
fi
[ "$#" -gt 0 ] || set -- ./reconciler/execution ./agent/... ./internal/... ./reconciler/... ./sources/... ./controlplane/proxy/...

# without_servers prints the packages of which no test depends on the API server.
without_servers() {
	go list -test -f '{{or .ForTest .ImportPath}}{{range .Deps}}{{if eq . "k8s.io/apiserver/pkg/server"}} server{{end}}{{end}}' "$@" |
		awk '{ sub(/\.test$/, "", $1); seen[$1]; if (NF > 1) server[$1] } END { for (p in seen) if (!(p in server)) print p }' | sort
}

if [ "$servers" = no ]; then
	packages=$(without_servers "$@")
	mapfile -t packages <<<"$packages"
	set -- "${packages[@]}"
fi

seed=${SHUFFLE:-$RANDOM$RANDOM}
echo "order of the tests: SHUFFLE=$seed"
go tool -modfile=hack/test.mod gotestsum --format pkgname --format-hide-empty-pkg -- \
	-race -short -vet=off -ldflags=-w -shuffle="$seed" -timeout 40m -p "$(($(nproc) + 1))" "$@"
