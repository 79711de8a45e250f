package shelf

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/flotilla-io/flotilla/internal/durable"
)

// seenFile says how far the member was to be told that it has seen the hub: a folder
// that was put back to an earlier state says less than the member.
const seenFile = "seen"

// Seen returns what See was given last, in this run or an earlier one; empty for
// nothing. One that is damaged is an error.
func (s *Shelf) Seen() (string, error) {
	content, err := readFile(filepath.Join(s.options.Dir, seenFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read how far the folder has seen the hub: %w", err)
	}
	return string(content), nil
}

// See keeps how far the member is to be told that it has seen the hub. It is called
// before the member is told.
func (s *Shelf) See(text string) error {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return nil
	}
	if err := writeFile(filepath.Join(s.options.Dir, seenFile), []byte(text)); err != nil {
		return fmt.Errorf("keep how far the folder has seen the hub: %w", err)
	}
	return durable.SyncDir(s.options.Dir)
}

// Current reports whether all that the hub has said in this run is on disk.
func (s *Shelf) Current() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.racks {
		if !r.current() {
			return false
		}
	}
	return len(s.racks) > 0
}

// trust errs while nobody may start from the folder. What was trusted once is for the
// run: nobody else has the folder.
func (s *Shelf) trust(ctx context.Context) error {
	s.mu.Lock()
	trusted := s.trusted
	s.mu.Unlock()
	if trusted {
		return nil
	}
	err := s.options.Trust(ctx)
	why := ""
	if err != nil {
		why = err.Error()
	}
	s.mu.Lock()
	s.trusted = err == nil
	told := s.doubt == why || ctx.Err() != nil
	if !told {
		s.doubt = why
	}
	s.mu.Unlock()
	if err != nil && !told {
		s.options.Log.Error(err, "not starting from disk: nothing is changed before the hub is back", "folder", s.options.Dir)
	}
	return err
}
