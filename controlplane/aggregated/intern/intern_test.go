package intern_test

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/controlplane/aggregated/intern"
)

func TestTextsShareTheirMemory(t *testing.T) {
	long := strings.Repeat("x", 257)
	for name, c := range map[string]struct {
		text  string
		share bool
	}{
		"a key":                     {"app.kubernetes.io/name", true},
		"a text that is too long":   {long, false},
		"a text that is just so":    {long[1:], true},
		"a text of no bytes at all": {"", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := intern.New()
			first, second := intern.String(p, strings.Clone(c.text)), intern.String(p, strings.Clone(c.text))
			if first != c.text || second != c.text {
				t.Errorf("got %q and %q, want %q", first, second, c.text)
			}
			if got := unsafe.StringData(first) == unsafe.StringData(second); got != c.share {
				t.Errorf("they share their memory: %v, want %v", got, c.share)
			}
		})
	}
}

func TestKeysStayWhatTheyAre(t *testing.T) {
	p := intern.New()
	keys := map[string]int{}
	for i := range 20 {
		keys[fmt.Sprintf("key-%d", i)] = i
	}
	want := maps.Clone(keys)
	intern.Keys(p, keys)
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("the map changed (-want +got):\n%s", diff)
	}
}

// The strings of an object share their memory with those of the next one, whatever their
// hashes are: each pool has its own seed. So few strings fit even if they all have the same
// hash.
func TestKeysShareTheirMemory(t *testing.T) {
	const keys = 4
	for range 5000 {
		p := intern.New()
		at := map[*byte]bool{}
		for range 2 {
			m := map[string]int{}
			for i := range keys {
				m[fmt.Sprintf("example.com/key-%d", i)] = i
			}
			intern.Keys(p, m)
			for key := range m {
				at[unsafe.StringData(key)] = true
			}
		}
		if len(at) != keys {
			t.Fatalf("%d keys of two maps are %d texts in memory", keys, len(at))
		}
	}
}

// Strings that replace each other in the pool keep their content.
func TestManyTextsByMany(t *testing.T) {
	p := intern.New()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 10_000 {
				want := fmt.Sprint(i)
				if got := intern.String(p, want); got != want {
					t.Errorf("got %q, want %q", got, want)
					return
				}
			}
		})
	}
	all.Wait()
}
