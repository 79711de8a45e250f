package apply

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/flotilla-io/flotilla/internal/loop"
)

// secrets are values that no text may show. The zero value is none. It is safe for use by several
// goroutines.
type secrets struct {
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

// keep adds a value, and its lines, as texts often show only one.
func (s *secrets) keep(value string) {
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
func (s *secrets) hide(text string) string {
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

// clean returns an error of the same class and reason whose text shows no secret. What it wraps
// then is lost.
func (s *secrets) clean(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	clean := s.hide(text)
	if clean == text {
		return err
	}
	out := *loop.As(err, reasonFailed)
	out.Err = errors.New(clean)
	return &out
}
