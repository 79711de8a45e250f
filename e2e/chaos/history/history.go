package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Object names an object of a user's, by its namespace and name, and its kind where
// that matters.
type Object string

// Write is what a user asked the control plane for. The versions of an object grow
// with each write, also over its deletion, and one user writes an object, one write
// after the other.
type Write struct {
	Object  Object
	Version int
	// Deleted says that the object was to go.
	Deleted bool
	// Acknowledged says that the control plane said yes. Of other writes nobody knows
	// whether they were done.
	Acknowledged bool
	// Begun is when the request was sent.
	Begun time.Time
}

// Sight is what a member showed of an object.
type Sight struct {
	Cluster string
	Object  Object
	Version int
	// UID is the member's: another one is another object.
	UID string
	// Deleted says that it went. The version is the last one then.
	Deleted bool
	At      time.Time
}

// History is all that happened, each list in the order of its times.
type History struct {
	Writes []Write
	Sights []Sight
	// End is how all of it stands once the fleet has come to rest.
	End End
}

// End is the state of a fleet at rest: the version of each object that is there.
type End struct {
	Hub map[Object]int
	// Placed is what each cluster is to have, Works and Members what they have.
	Placed, Works, Members map[string]map[Object]int
	// Replicas are those of each divided object: as the template has them, and in sum
	// over the clusters.
	Replicas map[Object]Replicas
}

// Replicas of an object that is divided.
type Replicas struct{ Template, Sum int }

// Violation is an invariant that does not hold.
type Violation struct {
	// Invariant is its number: I1 to I7.
	Invariant string
	// Because says what tells so.
	Because string
}

// Check returns what does not hold, in the order of the invariants.
func Check(h History) []Violation {
	var out []Violation
	writes := map[Object][]Write{}
	for _, w := range h.Writes {
		writes[w.Object] = append(writes[w.Object], w)
	}
	out = append(out, acknowledged(writes, h.End.Hub)...)
	out = append(out, sights(writes, h.Sights)...)
	out = append(out, settled(h.End)...)
	for _, object := range slices.Sorted(maps.Keys(h.End.Replicas)) {
		if r := h.End.Replicas[object]; r.Sum != r.Template {
			out = append(out, Violation{"I6", fmt.Sprintf("%s has %d replicas in sum, and is to have %d", object, r.Sum, r.Template)})
		}
	}
	slices.SortStableFunc(out, func(a, b Violation) int { return strings.Compare(a.Invariant, b.Invariant) })
	return out
}

// acknowledged checks that the control plane holds what it said yes to last, or what
// was asked for after that.
func acknowledged(writes map[Object][]Write, hub map[Object]int) []Violation {
	var out []Violation
	for _, object := range slices.Sorted(maps.Keys(writes)) {
		version, there := hub[object]
		possible := false
		for _, w := range slices.Backward(writes[object]) {
			possible = possible || (w.Deleted && !there) || (!w.Deleted && there && w.Version == version)
			if w.Acknowledged {
				break
			}
		}
		none := !slices.ContainsFunc(writes[object], func(w Write) bool { return w.Acknowledged })
		if !possible && !(none && !there) {
			out = append(out, Violation{"I1", fmt.Sprintf("%s stands at %s, which is not what was last written: %s", object, stand(version, there), last(writes[object]))})
		}
	}
	for _, object := range slices.Sorted(maps.Keys(hub)) {
		if len(writes[object]) == 0 {
			out = append(out, Violation{"I1", fmt.Sprintf("%s is there, and nobody wrote it", object)})
		}
	}
	return out
}

func stand(version int, there bool) string {
	if !there {
		return "nothing"
	}
	return fmt.Sprintf("version %d", version)
}

func last(writes []Write) string {
	w := writes[len(writes)-1]
	what := fmt.Sprintf("version %d", w.Version)
	if w.Deleted {
		what = "a deletion"
	}
	if !w.Acknowledged {
		what += ", without an answer"
	}
	return what
}

// place is an object in a cluster.
type place struct {
	cluster string
	object  Object
}

// sights checks what members showed over time: that nothing went or was made anew
// without being asked for, and that no older version came back.
func sights(writes map[Object][]Write, all []Sight) []Violation {
	var out []Violation
	at := map[place]Sight{}
	gone := map[place]int{}
	for _, s := range all {
		p := place{s.Cluster, s.Object}
		was, known := at[p]
		switch {
		case s.Deleted:
			gone[p]++
			if asked := deletions(writes[s.Object], s.At); gone[p] > asked {
				out = append(out, Violation{"I2", fmt.Sprintf("%s went from %s at version %d for the %d. time, and was deleted %d times until then", s.Object, s.Cluster, s.Version, gone[p], asked)})
			}
		case known && !was.Deleted && was.UID != s.UID:
			out = append(out, Violation{"I2", fmt.Sprintf("%s was made anew in %s at version %d", s.Object, s.Cluster, s.Version)})
		case known && s.Version < was.Version:
			out = append(out, Violation{"I7", fmt.Sprintf("%s went back in %s from version %d to %d", s.Object, s.Cluster, was.Version, s.Version)})
		case !begun(writes[s.Object], s):
			out = append(out, Violation{"I7", fmt.Sprintf("%s has version %d in %s, which nobody had written", s.Object, s.Version, s.Cluster)})
		}
		at[p] = s
	}
	return out
}

// deletions counts those of an object that were asked for before a time.
func deletions(writes []Write, before time.Time) int {
	count := 0
	for _, w := range writes {
		if w.Deleted && !w.Begun.After(before) {
			count++
		}
	}
	return count
}

func begun(writes []Write, s Sight) bool {
	return slices.ContainsFunc(writes, func(w Write) bool { return !w.Deleted && w.Version == s.Version && !w.Begun.After(s.At) })
}

// settled checks that Works and members have exactly what is placed there, and that all
// is placed somewhere.
func settled(end End) []Violation {
	var out []Violation
	for what, sides := range map[string]map[string]map[Object]int{"the Works of": end.Works, "the member": end.Members} {
		for _, cluster := range slices.Sorted(maps.Keys(sides)) {
			side, placed := sides[cluster], end.Placed[cluster]
			for _, object := range slices.Sorted(maps.Keys(placed)) {
				if version, there := side[object]; !there || version != placed[object] {
					out = append(out, Violation{"I4", fmt.Sprintf("%s %s: %s stands at %s, and is to have version %d", what, cluster, object, stand(version, there), placed[object])})
				}
			}
			for _, object := range slices.Sorted(maps.Keys(side)) {
				if _, wanted := placed[object]; !wanted {
					out = append(out, Violation{"I4", fmt.Sprintf("%s %s: %s is there, and not to be", what, cluster, object)})
				}
			}
		}
	}
	for _, object := range slices.Sorted(maps.Keys(end.Hub)) {
		somewhere := false
		for _, placed := range end.Placed {
			_, there := placed[object]
			somewhere = somewhere || there
		}
		if !somewhere {
			out = append(out, Violation{"I4", fmt.Sprintf("%s is placed nowhere", object)})
		}
	}
	slices.SortFunc(out, func(a, b Violation) int { return strings.Compare(a.Because, b.Because) })
	return out
}
