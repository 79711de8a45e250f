package artifact

import (
	"slices"
	"strings"
)

// Usage is how many bytes artifacts have.
type Usage struct {
	// Others are those of other owners, each artifact once.
	Others int64
	// InUse are those of the owner itself that are being read, besides its newest one.
	InUse int64
	// Newest is that one.
	Newest int64
}

// UsageOf returns what the owners have whose names begin so, from the view of one of them, of which inUse stay
// when it stores the next.
func UsageOf(s *Store, prefix, owner string, inUse ...string) Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	counted := map[string]bool{}
	sizes := func(digests []string) (sum int64) {
		for _, digest := range digests {
			file, err := blobPath(digest)
			if err != nil || counted[file] {
				continue
			}
			counted[file] = true
			if info, err := s.root.Stat(file); err == nil {
				sum += info.Size()
			}
		}
		return sum
	}
	var out Usage
	if own := s.owners[owner].Digests; len(own) > 0 {
		out.Newest = sizes(own[:1])
		out.InUse = sizes(slices.DeleteFunc(slices.Clone(own[1:]), func(d string) bool { return !slices.Contains(inUse, d) }))
	}
	for name, o := range s.owners {
		if name != owner && strings.HasPrefix(name, prefix) {
			out.Others += sizes(o.Digests)
		}
	}
	return out
}
