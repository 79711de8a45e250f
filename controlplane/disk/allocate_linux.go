package disk

import (
	"os"
	"syscall"
)

// ahead gives a file room up to a size that it need not have yet.
func ahead(f *os.File, size int64) error {
	const keepSize = 1
	return syscall.Fallocate(int(f.Fd()), keepSize, 0, size)
}

// allocate gives a file its room without writing it.
func allocate(f *os.File, size int64) error {
	if syscall.Fallocate(int(f.Fd()), 0, 0, size) == nil {
		return nil
	}
	return zeros(f, size)
}
