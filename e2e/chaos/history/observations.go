package history

import (
	"fmt"
	"slices"
	"time"
)

// place is an object in a cluster.
type place struct {
	cluster string
	object  Object
}

// removals checks I2: what goes from a member goes because a user deleted it, or
// because a policy moved it and it is elsewhere by then. Each move away is the reason of
// one removal.
func (j *judge) removals() []string {
	var out []string
	at := map[place]Observation{}
	moved := map[place]int{}
	for _, s := range j.Observations {
		p := place{s.Cluster, s.Object}
		was, known := at[p]
		at[p] = s
		if known && !was.Deleted && was.UID != s.UID {
			out = append(out, fmt.Sprintf("%s was made anew in %s at version %d", s.Object, s.Cluster, s.Version))
			continue
		}
		if !s.Deleted || j.deletedByUser(s) {
			continue
		}
		if moved[p]++; moved[p] > j.movedAway(s) {
			out = append(out, fmt.Sprintf("%s went from %s at version %d: no user had deleted it, and policies had moved it away %d times, for %d removals",
				s.Object, s.Cluster, s.Version, j.movedAway(s), moved[p]))
			continue
		}
		out = append(out, j.elsewhere(s)...)
	}
	return out
}

// deletedByUser reports whether a user had asked for what was seen to go.
func (j *judge) deletedByUser(s Observation) bool {
	return slices.ContainsFunc(j.writes[s.Object], func(w Write) bool { return w.Deleted && w.Version > s.Version && !w.Begun.After(s.At) })
}

// movedAway counts how often the policy of an object had taken a cluster out of its
// placement by the time of an observation.
func (j *judge) movedAway(s Observation) int {
	count, in := 0, false
	for _, m := range j.moves[j.Policies[s.Object]] {
		if m.Begun.After(s.At) {
			break
		}
		if now := slices.Contains(m.Clusters, s.Cluster); now != in {
			in = now
			if !now {
				count++
			}
		}
	}
	return count
}

// elsewhere checks that what went from a cluster for a move runs in another one. The
// first look after it decides, unless a user has deleted the object by then.
func (j *judge) elsewhere(s Observation) []string {
	for _, snapshot := range j.Snapshots {
		if snapshot.Object != s.Object || snapshot.Begun.Before(s.At) {
			continue
		}
		deleted := slices.ContainsFunc(j.writes[s.Object], func(w Write) bool { return w.Deleted && w.Version > s.Version && !w.Begun.After(snapshot.At) })
		if deleted || ready(snapshot) > 0 {
			return nil
		}
		return []string{fmt.Sprintf("%s went from %s at version %d for a move, and ran nowhere else", s.Object, s.Cluster, s.Version)}
	}
	return []string{fmt.Sprintf("%s went from %s at version %d for a move, and nobody has looked where else it ran", s.Object, s.Cluster, s.Version)}
}

func ready(s Snapshot) int {
	sum := 0
	for _, observed := range s.ByCluster {
		sum += observed.Ready
	}
	return sum
}

// monotone checks I7: in no member an older version comes back, also not after its
// deletion, and each one was written by a user before.
func (j *judge) monotone() []string {
	var out []string
	at := map[place]Observation{}
	for _, s := range j.Observations {
		p := place{s.Cluster, s.Object}
		was, known := at[p]
		at[p] = s
		switch {
		case known && s.Version < was.Version:
			out = append(out, fmt.Sprintf("%s went back in %s from version %d to %d", s.Object, s.Cluster, was.Version, s.Version))
		case known && was.Deleted && !s.Deleted && s.Version == was.Version && j.movedAway(s) == 0:
			out = append(out, fmt.Sprintf("%s came back in %s at version %d", s.Object, s.Cluster, s.Version))
		}
		if !s.Deleted && !j.begun(s.Object, s.Version, s.At) {
			out = append(out, fmt.Sprintf("%s has version %d in %s, which nobody had written", s.Object, s.Version, s.Cluster))
		}
	}
	return out
}

func (j *judge) begun(object Object, version int, before time.Time) bool {
	return slices.ContainsFunc(j.writes[object], func(w Write) bool { return !w.Deleted && w.Version == version && !w.Begun.After(before) })
}
