package intern

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

const (
	// ways is how many strings a set holds. That many can share a hash before one replaces
	// another.
	ways = 4
	// sets times ways is how many strings are kept: far more than there are different keys,
	// kinds and reasons.
	sets = 1 << 9
	// longest is the largest length in bytes of a string that is kept.
	longest = 256
)

// Pool is a set-associative cache of the strings that were seen last. It is safe for
// concurrent use. Use New.
type Pool struct {
	seed maphash.Seed
	sets [sets][ways]atomic.Pointer[string]
}

// New returns an empty pool.
func New() *Pool { return &Pool{seed: maphash.MakeSeed()} }

// String returns a string equal to s that shares its memory with equal strings returned
// before, unless another string has replaced it in the pool.
func String[T ~string](p *Pool, s T) T {
	if s == "" || len(s) > longest {
		return s
	}
	hash := maphash.String(p.seed, string(s))
	set := &p.sets[hash%sets]
	way := &set[hash/sets%ways] // replaced if the set is full
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

// Keys replaces the keys of a map by those of the pool.
func Keys[V any](p *Pool, m map[string]V) {
	for key, value := range m {
		m[String(p, key)] = value // the key that was assigned last is the one that the map holds
	}
}
