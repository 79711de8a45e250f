package disk

import (
	"os"
	"syscall"
)

// ahead allocates a file's blocks up to a size, and leaves its length.
func ahead(f *os.File, size int64) error {
	const keepSize = 1
	return syscall.Fallocate(int(f.Fd()), keepSize, 0, size)
}

// allocate allocates a file's blocks without writing them.
func allocate(f *os.File, size int64) error {
	if syscall.Fallocate(int(f.Fd()), 0, 0, size) == nil {
		return nil
	}
	return zeros(f, size)
}
