#!/usr/bin/env bash
# Runs the whole test suite, or the packages that are named, and ends with the
# runner's summary. The programs in bin/ must be built: the whole-system tests
# run them. The tests of a package run in another order each time; SHUFFLE=SEED,
# as the first line says it, repeats one. More packages than there are cores run at
# once: they wait for servers for a third of the time. What is for debuggers is not linked,
# which takes a third of a link: tracebacks do without. The tests of ./e2e and ./reconciler come first: they wait
# for clusters rather than compute, and take longest.
set -euo pipefail
cd "$(dirname "$0")/.."

export CGO_ENABLED=${CGO_ENABLED:-0} # as make builds: nothing is compiled twice
export GOGC=${GOGC:-300}              # of tests and what they start: a tenth less time, for half a gigabyte more
seed=${SHUFFLE:-$RANDOM$RANDOM}
echo "order of the tests: SHUFFLE=$seed"
go vet ./...
go test -tags clouds ./sources/clouds # all else of them is tested without the tag
[ "$#" -gt 0 ] || set -- ./e2e ./reconciler ./...
go tool -modfile=hack/test.mod gotestsum --format pkgname --format-hide-empty-pkg -- \
	-vet=off -ldflags=-w -shuffle="$seed" -parallel "$((2 * $(nproc)))" -timeout 60m -p "$(($(nproc) + 1))" "$@"
