package lexicon

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

const (
	// places is how many texts have the same shelf. As many can share a hash
	// before one of them takes another's place.
	places = 4
	// shelves times places is how many texts are kept: far more than there are
	// keys, kinds and reasons.
	shelves = 1 << 9
	// longest is how many bytes a text has at most that is kept.
	longest = 256
)

// Lexicon is the texts that were seen last. It is safe for use by several
// goroutines. Use New.
type Lexicon struct {
	seed  maphash.Seed
	texts [shelves][places]atomic.Pointer[string]
}

// New returns an empty lexicon.
func New() *Lexicon { return &Lexicon{seed: maphash.MakeSeed()} }

// Text returns a text that says the same as t and shares its memory with those
// that were returned before it, as long as no other text has taken its place.
func Text[T ~string](l *Lexicon, t T) T {
	if t == "" || len(t) > longest {
		return t
	}
	hash := maphash.String(l.seed, string(t))
	shelf := &l.texts[hash%shelves]
	place := &shelf[hash/shelves%places] // whose text gives way if there is no room
	for i := range shelf {
		known := shelf[i].Load()
		if known == nil {
			place = &shelf[i]
			break
		}
		if *known == string(t) {
			return T(*known)
		}
	}
	own := strings.Clone(string(t)) // t may be part of a far longer one
	place.Store(&own)
	return T(own)
}

// Keys has a map's keys share their memory.
func Keys[V any](l *Lexicon, m map[string]V) {
	for key, value := range m {
		m[Text(l, key)] = value // the text that was assigned last is the one that the map holds
	}
}
