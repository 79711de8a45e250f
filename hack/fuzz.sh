#!/usr/bin/env bash
# Runs every fuzz target of the module for the given time. What is interesting is made smaller in ten tries: by default that takes up to a
# minute of it, so that a target with large files tried a dozen in all.
set -euo pipefail
cd "$(dirname "$0")/.."
duration=${1:-30s}

grep -rl --include='*_test.go' '^func Fuzz' . | sort | while read -r file; do
	grep -o '^func Fuzz[A-Za-z0-9_]*' "$file" | awk '{print $2}' | while read -r target; do
		echo "== $(dirname "$file") $target"
		go test "$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "$duration" -fuzzminimizetime 10x </dev/null
	done
done
