package disk

import (
	"fmt"
	"syscall"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Space is what is left on a file system.
type Space struct {
	// Bytes and Inodes are what others than the superuser may still use. Inodes is
	// negative where the file system does not count them.
	Bytes, Inodes int64
	// ReadOnly says that it is mounted so.
	ReadOnly bool
}

// Statfs returns what is left on the file system of a folder.
func Statfs(dir string) (Space, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return Space{}, fmt.Errorf("ask for the room in %s: %w", dir, err)
	}
	const readOnly = 1                                                                                                   // ST_RDONLY, MNT_RDONLY
	space := Space{Bytes: int64(st.Bavail) * int64(st.Bsize), Inodes: int64(st.Ffree), ReadOnly: st.Flags&readOnly != 0} //nolint:unconvert // other types elsewhere
	if st.Files == 0 {
		space.Inodes = -1
	}
	return space, nil
}

// Level is how much may still be stored.
type Level int

// Levels, best first.
const (
	// Plenty: everything.
	Plenty Level = iota
	// Low: nothing new; what makes room, and what keeps the fleet together, is.
	Low
	// Exhausted: nothing at all.
	Exhausted
)

const (
	// fewInodes is how many files it must be possible to make, and noInodes those
	// without which the store cannot end a write.
	fewInodes = 256
	noInodes  = 16
)

// judge decides how much may be stored while minimum bytes are to stay free. A quarter
// of them is for writes that must go on. A disk that was Low needs a quarter more to be Plenty
// again: objects that are deleted and created in turns do not change the level each time.
func judge(space Space, minimum int64, was Level) Level {
	counted := space.Inodes >= 0
	switch {
	case space.ReadOnly, space.Bytes < minimum/4, counted && space.Inodes < noInodes:
		return Exhausted
	case space.Bytes < minimum, counted && space.Inodes < fewInodes:
		return Low
	case was != Plenty && (space.Bytes < enough(minimum) || counted && space.Inodes < enough(fewInodes)):
		return Low
	}
	return Plenty
}

func enough(minimum int64) int64 { return minimum + minimum/4 }

// firstStart is what a control plane takes that is started for the first time: 18 MiB were
// measured, of which 16 are what its store takes ahead for its log.
const firstStart = 20 << 20

// First is why nothing is started for the first time in a folder, of whose disk minimum
// bytes are to stay free; nil if there is space. An existing control plane starts on a full
// disk, too, and is read-only.
//
// Errors: syscall.ENOSPC if there is none.
func First(dir string, minimum int64) error {
	space, err := Statfs(dir)
	if err != nil {
		return err
	}
	return space.first(minimum)
}

func (r Space) first(minimum int64) error {
	switch {
	case r.Bytes < minimum+firstStart:
		return fmt.Errorf("%w: %s is free, and a first start needs %s", syscall.ENOSPC, amount(r.Bytes), amount(minimum+firstStart))
	case r.Inodes >= 0 && r.Inodes < fewInodes:
		return fmt.Errorf("%w: %d more files can be made, and a first start needs %d", syscall.ENOSPC, r.Inodes, fewInodes)
	}
	return nil
}

// describe returns a text for the state.
func (r Space) describe(minimum int64) string {
	switch {
	case r.ReadOnly:
		return "its disk is mounted read-only"
	case r.Inodes >= 0 && r.Inodes < enough(fewInodes) && r.Bytes >= enough(minimum):
		return fmt.Sprintf("its disk takes %d more files, and it needs %d", r.Inodes, enough(fewInodes))
	default:
		return fmt.Sprintf("its disk has %s free, and it needs %s", amount(r.Bytes), amount(enough(minimum)))
	}
}

// amount is a number of bytes for people: whole MiB, which do not change with each
// write.
func amount(bytes int64) string {
	const mebi = 1 << 20
	return resource.NewQuantity(bytes/mebi*mebi, resource.BinarySI).String()
}
