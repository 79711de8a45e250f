#!/usr/bin/env bash
# Runs the short tests of the packages that have goroutines of their own, or of
# those that are named, under the race detector. SHUFFLE=SEED repeats an order. More
# packages than there are cores run at once: they wait for servers for a third of the
# time.
set -euo pipefail
cd "$(dirname "$0")/.."

seed=${SHUFFLE:-$RANDOM$RANDOM}
echo "order of the tests: SHUFFLE=$seed"
[ "$#" -gt 0 ] || set -- ./reconciler/execution ./agent/... ./internal/... ./reconciler/... ./sources/... ./controlplane/proxy/...
go tool -modfile=hack/test.mod gotestsum --format pkgname --format-hide-empty-pkg -- \
	-race -short -vet=off -shuffle="$seed" -timeout 40m -p "$(($(nproc) + 1))" "$@"
