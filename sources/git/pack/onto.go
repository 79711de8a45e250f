package pack

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // as Git has it
	"encoding/binary"
	"errors"
	"hash"
	"io"
	"math"
)

const (
	// headSize and tailSize are how long a pack's header and its checksum are, in bytes.
	headSize, tailSize = 12, 20
	packVersion        = 2
)

// Onto returns the stream of one pack that has the objects of another, which is this many bytes long, and those of a
// stream, which may be deltas of those of the other. Errors: wire.ErrMalformed, or what reading returns.
func Onto(there io.ReaderAt, size int64, stream io.Reader) (io.Reader, error) {
	if size < headSize+tailSize {
		return nil, errPack
	}
	before, err := count(io.NewSectionReader(there, 0, headSize))
	if err != nil {
		return nil, err
	}
	more, err := count(stream)
	if err != nil {
		return nil, err
	}
	if before > math.MaxUint32-more {
		return nil, errPack
	}
	head := binary.BigEndian.AppendUint32([]byte("PACK"), packVersion)
	head = binary.BigEndian.AppendUint32(head, before+more)
	return &sealed{r: io.MultiReader(bytes.NewReader(head), io.NewSectionReader(there, headSize, size-headSize-tailSize), stream), sum: sha1.New()}, nil //nolint:gosec // as Git has it
}

// sealed puts a new checksum in the place of the one at the end of a pack.
type sealed struct {
	r     io.Reader
	sum   hash.Hash // of what was handed out
	ahead []byte    // read, and not yet handed out: its end may be the old checksum
	ended bool
}

// Read implements io.Reader.
func (s *sealed) Read(p []byte) (int, error) {
	for !s.ended && len(s.ahead) <= tailSize {
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	if s.ended && len(s.ahead) == 0 {
		return 0, io.EOF
	}
	free := len(s.ahead)
	if !s.ended {
		free -= tailSize
	}
	n := copy(p, s.ahead[:free])
	if !s.ended {
		_, _ = s.sum.Write(s.ahead[:n])
	}
	s.ahead = s.ahead[n:]
	return n, nil
}

// fill reads on. At the end it seals the pack.
func (s *sealed) fill() error {
	buffer := make([]byte, 32<<10)
	have := copy(buffer, s.ahead)
	n, err := s.r.Read(buffer[have:])
	s.ahead = buffer[:have+n]
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, io.EOF):
		return err
	case len(s.ahead) < tailSize:
		return errPack
	}
	s.ended = true
	rest := s.ahead[:len(s.ahead)-tailSize]
	_, _ = s.sum.Write(rest)
	s.ahead = s.sum.Sum(rest)
	return nil
}

// count reads the header of a pack, and returns how many objects it has.
func count(r io.Reader) (uint32, error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, errPack
	} else if err != nil {
		return 0, err
	}
	if string(head[:4]) != "PACK" || binary.BigEndian.Uint32(head[4:]) != packVersion {
		return 0, errPack
	}
	return binary.BigEndian.Uint32(head[8:]), nil
}

// Stream returns the pack as it was transferred, with what was added to it.
func (p *Pack) Stream() (io.Reader, error) {
	if p.more == nil {
		return io.NewSectionReader(p.file, 0, p.length), nil
	}
	more, err := p.more.Stream()
	if err != nil {
		return nil, err
	}
	return Onto(p.file, p.length, more)
}

// Length returns how long the stream is, in bytes.
func (p *Pack) Length() int64 {
	if p.more == nil {
		return p.length
	}
	return p.length + p.more.Length() - headSize - tailSize
}

// Count returns how many objects there are; of one that is there twice both count.
func (p *Pack) Count() int {
	if p.more == nil {
		return p.count
	}
	return p.count + p.more.Count()
}
