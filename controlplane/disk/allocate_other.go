//go:build !linux

package disk

import "os"

func ahead(*os.File, int64) error { return nil }

func allocate(f *os.File, size int64) error { return zeros(f, size) }
