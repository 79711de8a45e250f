//go:build !race

package sandbox_test

// raced reports whether these tests run under the race detector.
const raced = false
