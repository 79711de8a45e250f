//go:build race

package sandbox_test

// raced says that these tests run under the race detector.
const raced = true
