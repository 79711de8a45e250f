#!/usr/bin/env bash
# Runs the short tests of the packages that have goroutines of their own, or of
# those that are named, under the race detector. With --no-servers those are left out
# whose tests run an API server, which takes longest to compile, and those that start no
# goroutine and share nothing by themselves. SHUFFLE=SEED repeats an order. More packages
# than there are cores run at once: they wait for servers for a third of the time.
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

# concurrent leaves of packages those that start goroutines, or have what goroutines share.
concurrent() {
	go list -f '{{.ImportPath}}{{$dir := .Dir}}{{range .GoFiles}} {{$dir}}/{{.}}{{end}}' "$@" | while read -r package files; do
		# shellcheck disable=SC2086 # a word per file
		! grep -qE '^\s*go |\.Go\(|sync\.(Mutex|RWMutex|WaitGroup|Map|Once|Pool)|atomic\.' $files || echo "$package"
	done
}

if [ "$servers" = no ]; then
	packages=$(without_servers "$@")
	mapfile -t packages <<<"$packages"
	packages=$(concurrent "${packages[@]}")
	mapfile -t packages <<<"$packages"
	set -- "${packages[@]}"
fi

seed=${SHUFFLE:-$RANDOM$RANDOM}
echo "order of the tests: SHUFFLE=$seed"
go tool -modfile=hack/test.mod gotestsum --format pkgname --format-hide-empty-pkg -- \
	-race -short -vet=off -ldflags=-w -shuffle="$seed" -timeout 40m -p "$(($(nproc) + 1))" "$@"
