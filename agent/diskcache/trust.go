package diskcache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/flotilla-io/flotilla/internal/durable"
)

// seenFile records the mark that was to be written to the member last: a folder
// that was restored to an earlier state holds an older mark than the member.
const seenFile = "seen"

// Seen returns what See was given last, in this run or an earlier one; empty for
// nothing. A damaged file is an error.
func (c *Cache) Seen() (string, error) {
	content, err := readFile(filepath.Join(c.options.Dir, seenFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read how far the folder has seen the hub: %w", err)
	}
	return string(content), nil
}

// See records the mark that is about to be written to the member. It is called
// before the write.
func (c *Cache) See(text string) error {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return nil
	}
	if err := writeFile(filepath.Join(c.options.Dir, seenFile), []byte(text)); err != nil {
		return fmt.Errorf("keep how far the folder has seen the hub: %w", err)
	}
	return durable.SyncDir(c.options.Dir)
}

// Current reports whether all that the hub has sent in this run is on disk.
func (c *Cache) Current() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.stores {
		if !r.current() {
			return false
		}
	}
	return len(c.stores) > 0
}

// trust returns an error while no loop may start from the folder. Once trusted, the folder stays so for the
// run: no other process has it.
func (c *Cache) trust(ctx context.Context) error {
	c.mu.Lock()
	trusted := c.trusted
	c.mu.Unlock()
	if trusted {
		return nil
	}
	err := c.options.Trust(ctx)
	why := ""
	if err != nil {
		why = err.Error()
	}
	c.mu.Lock()
	c.trusted = err == nil
	reported := c.doubt == why || ctx.Err() != nil
	if !reported {
		c.doubt = why
	}
	c.mu.Unlock()
	if err != nil && !reported {
		c.options.Log.Error(err, "not starting from disk: nothing is changed before the hub is back", "folder", c.options.Dir)
	}
	return err
}
