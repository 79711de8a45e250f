package fleet

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// NameOf turns a test's name into one that Kubernetes and Git accept. A test that runs
// again in this process has another one: what the first one left may not be gone yet.
func NameOf(t *testing.T) string {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-", ".", "-", ",", "", "'", "").Replace(t.Name()))
	return Again(t, strings.Trim(name[:min(len(name), 58)], "-"))
}

// Again is a name, and another one if the test runs again in this process.
func Again(t *testing.T, name string) string {
	t.Helper()
	if n := times.of(t); n > 1 {
		return fmt.Sprint(name, "-", n)
	}
	return name
}

// times counts how often each test has run.
var times = runs{counts: map[string]int{}, known: map[*testing.T]int{}}

type runs struct {
	mu     sync.Mutex
	counts map[string]int
	known  map[*testing.T]int
}

// of is 1 for the first run of a test.
func (r *runs) of(t *testing.T) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, seen := r.known[t]; !seen {
		r.counts[t.Name()]++
		r.known[t] = r.counts[t.Name()]
	}
	return r.known[t]
}
