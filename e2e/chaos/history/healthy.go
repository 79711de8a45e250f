package history

import (
	"fmt"
	"maps"
	"slices"
)

// healthy checks I3: of what has run as its user wants it, there are never fewer
// healthy replicas than the user has asked for since. While its policy moves it, a
// cluster that stays and is to run fewer may do so at once; all others run what they
// had until it runs elsewhere.
func (j *judge) healthy() []string {
	var out []string
	looks := map[Object][]Snapshot{}
	for _, look := range j.Snapshots {
		looks[look.Object] = append(looks[look.Object], look)
	}
	for _, object := range slices.Sorted(maps.Keys(looks)) {
		f := floor{writes: j.writes[object], moves: j.moves[j.Policies[object]]}
		for _, look := range looks[object] {
			f.until(look)
			if count := ready(look); count < f.least() {
				out = append(out, fmt.Sprintf("%s had %d healthy replicas and is to have %d at least, by the look of %s",
					object, count, f.least(), look.At.UTC().Format("15:04:05.000")))
			}
			f.settle(look)
		}
	}
	return out
}

// floor is how many healthy replicas an object has to have.
type floor struct {
	writes []Write
	moves  []Move
	// written and moved are how many of them have begun.
	written, moved int
	// wanted is the least that was asked for since the object last ran as wanted; 0
	// until it did.
	wanted int
	// placements are those that may have been acted on since then, the one that it ran
	// in first.
	placements [][]string
}

// until takes in what had begun before the end of a look.
func (f *floor) until(look Snapshot) {
	for ; f.written < len(f.writes) && !f.writes[f.written].Begun.After(look.At); f.written++ {
		w := f.writes[f.written]
		if f.wanted = min(f.wanted, max(w.Replicas, 1)); w.Deleted {
			f.wanted = 0
		}
	}
	for ; f.moved < len(f.moves) && !f.moves[f.moved].Begun.After(look.At); f.moved++ {
		f.placements = append(f.placements, f.moves[f.moved].Clusters)
	}
}

// least is how many replicas have to be healthy. Any placement may have been acted on
// after any earlier one, and at least one replica stays whatever is moved.
func (f *floor) least() int {
	fewer := 0
	for i, from := range f.placements {
		for _, to := range f.placements[i+1:] {
			for _, cluster := range from {
				if slices.Contains(to, cluster) {
					fewer += max(0, ceil(f.wanted, len(from))-f.wanted/len(to))
				}
			}
		}
	}
	return max(f.wanted-fewer, min(f.wanted, 1))
}

func ceil(n, parts int) int { return (n + parts - 1) / parts }

// settle notes that a look has found the object as it is wanted, with nothing under way
// to it: where its last placement is one that was left before, nobody knows that.
func (f *floor) settle(look Snapshot) {
	if f.written == 0 || f.moved == 0 {
		return
	}
	w, clusters := f.writes[f.written-1], f.moves[f.moved-1].Clusters
	if w.Deleted || len(look.Held) != len(clusters) {
		return
	}
	sum := 0
	for _, cluster := range clusters {
		held, there := look.Held[cluster]
		if !there || held.Version != w.Version || held.Ready < held.Wanted {
			return
		}
		sum += held.Wanted
	}
	if w.Replicas > 0 && sum != w.Replicas {
		return
	}
	f.wanted = max(w.Replicas, 1)
	before := f.placements[:len(f.placements)-1]
	if !slices.ContainsFunc(before, func(other []string) bool { return same(other, clusters) }) {
		f.placements = [][]string{clusters}
	}
}

// same says whether two placements have the same clusters.
func same(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
