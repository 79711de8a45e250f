package intern

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

const (
	// ways is how many strings are in a set. As many can share a hash before one of
	// them takes another's place.
	ways = 4
	// sets times ways is how many strings are kept: far more than there are keys,
	// kinds and reasons.
	sets = 1 << 9
	// longest is how many bytes a string has at most that is kept.
	longest = 256
)

// Pool is the strings that were seen last, a set-associative cache. It is safe for use
// by several goroutines. Use New.
type Pool struct {
	seed maphash.Seed
	sets [sets][ways]atomic.Pointer[string]
}

// New returns an empty pool.
func New() *Pool { return &Pool{seed: maphash.MakeSeed()} }

// String returns a string that says the same as s and shares its memory with those
// that were returned before it, as long as no other string has taken its place.
func String[T ~string](p *Pool, s T) T {
	if s == "" || len(s) > longest {
		return s
	}
	hash := maphash.String(p.seed, string(s))
	set := &p.sets[hash%sets]
	way := &set[hash/sets%ways] // whose string gives way if there is no room
	for i := range set {
		known := set[i].Load()
		if known == nil {
			way = &set[i]
			break
		}
		if *known == string(s) {
			return T(*known)
		}
	}
	own := strings.Clone(string(s)) // s may be part of a far longer one
	way.Store(&own)
	return T(own)
}

// Keys has a map's keys share their memory.
func Keys[V any](p *Pool, m map[string]V) {
	for key, value := range m {
		m[String(p, key)] = value // the key that was assigned last is the one that the map holds
	}
}
