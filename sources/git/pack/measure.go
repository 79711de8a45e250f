package pack

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/flotilla-io/flotilla/sources/git/wire"
)

// measure reads a pack and returns how many objects it has and their size unpacked; it returns an error if that is more than
// the limits. It runs before anything unpacks the objects into memory.
func measure(r io.Reader, limits Limits) (int, int64, error) {
	scanner := packfile.NewScanner(r)
	_, count, err := scanner.Header()
	if err != nil {
		return 0, 0, errPack
	}
	if int64(count) > int64(limits.Objects) {
		return 0, 0, fmt.Errorf("transfer of %d objects, %d are allowed: %w", count, limits.Objects, wire.ErrTooLarge)
	}
	var total int64
	for range count {
		size, err := measureObject(scanner, limits.Object)
		if err != nil {
			return 0, 0, err
		}
		if total += size; total > limits.Unpacked {
			return 0, 0, fmt.Errorf("transfer unpacks to over %d bytes: %w", limits.Unpacked, wire.ErrTooLarge)
		}
	}
	if _, err := scanner.Checksum(); err != nil && !errors.Is(err, io.EOF) {
		return 0, 0, errPack
	}
	// What follows the checksum is not part of the pack; reading on lets the
	// sender finish.
	_, err = io.Copy(io.Discard, r)
	return int(count), total, err
}

// measureObject returns the size of the next object once unpacked, for a delta
// with the size of the delta itself. limit is in bytes.
func measureObject(scanner *packfile.Scanner, limit int64) (int64, error) {
	header, err := scanner.NextObjectHeader()
	if err != nil {
		return 0, errPack
	}
	if header.Length > limit {
		return 0, fmt.Errorf("an object of %d bytes, %d are allowed: %w", header.Length, limit, wire.ErrTooLarge)
	}
	var head firstDelta
	sink := io.Discard
	if header.Type.IsDelta() {
		sink = &head
	}
	if _, _, err := scanner.NextObject(sink); err != nil {
		return 0, errPack
	}
	if !header.Type.IsDelta() {
		return header.Length, nil
	}
	size, err := head.target()
	if err != nil {
		return 0, err
	}
	if size > limit {
		return 0, fmt.Errorf("an object of %d bytes, %d are allowed: %w", size, limit, wire.ErrTooLarge)
	}
	return size + header.Length, nil
}

// firstDelta keeps the beginning of a delta, which has its sizes.
type firstDelta struct{ head []byte }

// deltaHead is how many bytes the two sizes can take.
const deltaHead = 20

// Write keeps the first bytes and discards the rest.
func (d *firstDelta) Write(p []byte) (int, error) {
	if room := deltaHead - len(d.head); room > 0 {
		d.head = append(d.head, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

// target returns the size of the object that the delta produces.
func (d *firstDelta) target() (int64, error) {
	rest := d.head
	var size int64
	for range 2 { // the base's size, then the target's
		size = 0
		for shift := 0; ; shift += 7 {
			if len(rest) == 0 || shift > 56 {
				return 0, errPack
			}
			b := rest[0]
			rest = rest[1:]
			size |= int64(b&0x7f) << shift
			if b&0x80 == 0 {
				break
			}
		}
	}
	return size, nil
}
