// Package secrets keeps values out of what people are told.
//
// In go values and errors; out come errors without the values. Nothing is written down anywhere.
package secrets

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/flotilla-io/flotilla/internal/loop"
)

// Values are what no text may show. The zero value is none. It is safe for use by several goroutines.
type Values struct {
	mu     sync.Mutex
	values map[string]bool
}

const (
	// leastSecret is how long a value is at least that is left out of texts: what is shorter stands
	// everywhere, and guards nothing.
	leastSecret = 4
	// hidden stands where a secret was.
	hidden = "***"
)

// Keep adds a value, and its lines, as texts often show only one.
func (s *Values) Keep(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values = map[string]bool{}
	}
	for _, line := range append(strings.Split(value, "\n"), value) {
		if line = strings.TrimSpace(line); len(line) < leastSecret {
			continue
		}
		s.values[line] = true
		if quoted := strconv.Quote(line); quoted[1:len(quoted)-1] != line {
			s.values[quoted[1:len(quoted)-1]] = true
		}
	}
}

// hide returns a text without the values.
func (s *Values) hide(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	values := make([]string, 0, len(s.values))
	for value := range s.values {
		if strings.Contains(text, value) {
			values = append(values, value)
		}
	}
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) }) // one may hold another
	for _, value := range values {
		text = strings.ReplaceAll(text, value, hidden)
	}
	return text
}

// Clean returns an error of the same class and reason, as loop.As finds them, whose text shows no
// value. What it wraps then is lost.
func (s *Values) Clean(err error, reason string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	clean := s.hide(text)
	if clean == text {
		return err
	}
	out := *loop.As(err, reason)
	out.Err = errors.New(clean)
	return &out
}
