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
	j.floors(func(snapshot Snapshot, least int) {
		if count := ready(snapshot); count < least {
			out = append(out, fmt.Sprintf("%s had %d healthy replicas and is to have %d at least, by the look of %s",
				snapshot.Object, count, least, snapshot.At.UTC().Format("15:04:05.000")))
		}
	})
	return out
}

// floors calls a function with all looks, object by object, and how many healthy
// replicas each has to show.
func (j *judge) floors(do func(snapshot Snapshot, least int)) {
	snapshots := map[Object][]Snapshot{}
	for _, snapshot := range j.Snapshots {
		snapshots[snapshot.Object] = append(snapshots[snapshot.Object], snapshot)
	}
	for _, object := range slices.Sorted(maps.Keys(snapshots)) {
		f := floor{writes: j.writes[object], moves: j.moves[j.Policies[object]]}
		for _, snapshot := range snapshots[object] {
			f.until(snapshot)
			do(snapshot, f.least())
			f.confirm(snapshot)
		}
	}
}

// Judged returns at which looks I3 wants something to be there, by their places among
// the snapshots. At the others nobody can tell: the object had just been deleted, or
// had not yet run as its user wants it.
func Judged(h History) []int {
	j := newJudge(h)
	at := map[Object][]int{}
	for i, snapshot := range h.Snapshots {
		at[snapshot.Object] = append(at[snapshot.Object], i)
	}
	var out []int
	j.floors(func(snapshot Snapshot, least int) {
		i := at[snapshot.Object][0]
		at[snapshot.Object] = at[snapshot.Object][1:]
		if least > 0 {
			out = append(out, i)
		}
	})
	slices.Sort(out)
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
func (f *floor) until(snapshot Snapshot) {
	for ; f.written < len(f.writes) && !f.writes[f.written].Begun.After(snapshot.At); f.written++ {
		f.ask(f.writes[f.written])
	}
	for ; f.moved < len(f.moves) && !f.moves[f.moved].Begun.After(snapshot.At); f.moved++ {
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

// confirm notes that a look has found the object to run as one of its writes wants it, in
// the clusters of one of its placements. What was asked for after that counts on:
// nobody knows how much of it has been acted on.
func (f *floor) confirm(snapshot Snapshot) {
	var clusters []string
	sum := 0
	version := 0
	for cluster, in := range snapshot.ByCluster {
		if in.Ready < in.Wanted || (len(clusters) > 0 && in.Version != version) {
			return
		}
		clusters, version, sum = append(clusters, cluster), in.Version, sum+in.Wanted
	}
	written := slices.IndexFunc(f.writes[:f.written], func(w Write) bool { return w.Version == version && !w.Deleted })
	// Of placements that are the same nobody knows which one it is: the first rules out least.
	placed := slices.IndexFunc(f.placements, func(other []string) bool { return same(other, clusters) })
	if written < 0 || placed < 0 {
		return
	}
	if w := f.writes[written]; w.Replicas > 0 && sum != w.Replicas {
		return
	}
	f.placements = f.placements[placed:]
	f.wanted = max(f.writes[written].Replicas, 1)
	for _, w := range f.writes[written+1 : f.written] {
		f.ask(w)
	}
}

// ask takes in that a user has asked for something since.
func (f *floor) ask(w Write) {
	if f.wanted = min(f.wanted, max(w.Replicas, 1)); w.Deleted {
		f.wanted = 0
	}
}

// same reports whether two placements have the same clusters.
func same(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
