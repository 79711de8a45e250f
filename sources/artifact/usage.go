package artifact

import (
	"slices"
	"strings"
)

// Usage is how many bytes artifacts take.
type Usage struct {
	// Others is for those of other owners, each artifact once.
	Others int64
	// InUse is for those of the owner itself that are being read, except its
	// newest one.
	InUse int64
	// Newest is for that one.
	Newest int64
}

// UsageOf returns the usage of all owners of a namespace, whatever their kind, as
// seen by one of them; inUse are those of its artifacts that will be kept when it
// stores the next.
func UsageOf(s *Store, namespace, owner string, inUse ...string) Usage {
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
		if _, of, _ := strings.Cut(name, "/"); name != owner && strings.HasPrefix(of, namespace+"/") {
			out.Others += sizes(o.Digests)
		}
	}
	return out
}

// Used is an artifact, older than the latest of its owner, that is still in use.
type Used struct {
	// Digest is the artifact's digest, Revision the name of what it was made from.
	Digest, Revision string
}
