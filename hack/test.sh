#!/usr/bin/env bash
# Runs the whole test suite, or the packages that are named, and ends with the
# runner's summary. The programs in bin/ must be built: the whole-system tests
# run them.
set -euo pipefail
cd "$(dirname "$0")/.."

go vet ./...
go tool -modfile=hack/test.mod gotestsum --format pkgname --format-hide-empty-pkg -- \
	-timeout 60m -p "$(nproc)" "${@:-./...}"
