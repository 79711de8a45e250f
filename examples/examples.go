// Package examples carries the example fleets, so that the demo runs without a
// checkout and the tests run exactly what the documentation shows.
//
// In goes nothing; out comes a file system. It never reads the disk.
package examples

import "embed"

// Files holds every example, one folder each.
//
//go:embed web custom-kind monorepo ci
var Files embed.FS
