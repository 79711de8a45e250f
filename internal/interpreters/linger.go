package interpreters

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// linger is for how long deleted objects still count. Tools rename and replace
// objects by deleting them and creating others: in between it would not be known how
// many replicas the kind has, and all of its objects would be placed again, twice.
const linger = 5 * time.Second

// lingering keeps objects that were deleted a moment ago. The zero value has none.
type lingering[T client.Object] struct {
	// known are those that count, by name; since is when they were found missing.
	known map[string]T
	since map[string]time.Time
}

// with returns what is listed and what was deleted a moment ago, in the order of
// the names, and when the first of the latter counts no more; zero for no time.
func (l *lingering[T]) with(listed []T, now time.Time) (all []T, next time.Duration) {
	known, since := make(map[string]T, len(listed)), map[string]time.Time{}
	for _, obj := range listed {
		known[obj.GetName()] = obj
	}
	for name, obj := range l.known {
		if _, there := known[name]; there {
			continue
		}
		at, missed := l.since[name]
		if !missed {
			at = now
		}
		left := linger - now.Sub(at)
		if left <= 0 {
			continue
		}
		known[name], since[name] = obj, at
		if next == 0 || left < next {
			next = left
		}
	}
	l.known, l.since = known, since
	all = slices.SortedFunc(maps.Values(known), func(a, b T) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return all, next
}
