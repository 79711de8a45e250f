package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// atRest checks I4: each object is placed in the clusters that its policy names, Works
// have it there as the control plane has it, and members have exactly what Works have,
// by permanent ids and digests.
func (j *judge) atRest() []string {
	works, out := index("the Works of", j.End.Works)
	members, twice := index("the member", j.End.Members)
	out = append(out, twice...)
	for _, object := range slices.Sorted(maps.Keys(j.End.Hub)) {
		out = append(out, j.placed(object, works)...)
	}
	for _, p := range slices.SortedFunc(maps.Keys(works), comparePlaces) {
		work := works[p]
		if _, there := j.End.Hub[p.object]; !there && j.ofUser(p.object) {
			out = append(out, fmt.Sprintf("the Works of %s: %s is there, and not to be", p.cluster, p.object))
		}
		switch observed, there := members[p]; {
		case !there:
			out = append(out, fmt.Sprintf("the member %s: %s is not there, and its Work is", p.cluster, p.object))
		case observed != work:
			out = append(out, fmt.Sprintf("the member %s: %s is %s, and its Work says %s", p.cluster, p.object, observed.words(), work.words()))
		}
	}
	for p := range members {
		if _, there := works[p]; !there {
			out = append(out, fmt.Sprintf("the member %s: %s is there, and no Work has it", p.cluster, p.object))
		}
	}
	return out
}

// index returns copies by their places, and which are there more than once or have no
// permanent id.
func index(whose string, copies []Copy) (map[place]Copy, []string) {
	var out []string
	byPlace := map[place]Copy{}
	for _, c := range copies {
		p := place{c.Cluster, c.Object}
		if _, there := byPlace[p]; there {
			out = append(out, fmt.Sprintf("%s %s: %s is there twice", whose, c.Cluster, c.Object))
		}
		if c.ID == "" {
			out = append(out, fmt.Sprintf("%s %s: %s has no permanent id", whose, c.Cluster, c.Object))
		}
		byPlace[p] = c
	}
	return byPlace, out
}

func comparePlaces(a, b place) int {
	if a.cluster != b.cluster {
		return strings.Compare(a.cluster, b.cluster)
	}
	return strings.Compare(string(a.object), string(b.object))
}

func (j *judge) ofUser(object Object) bool { return len(j.writes[object]) > 0 }

func (c Copy) words() string {
	return fmt.Sprintf("version %d with %d replicas, digest %q, id %q", c.Version, c.Replicas, c.Digest, c.ID)
}

// placed checks that bindings and Works have an object where its policy wants it, as it
// is.
func (j *judge) placed(object Object, works map[place]Copy) []string {
	var out []string
	wanted := j.reachable(object)
	if decided := slices.Sorted(maps.Keys(j.End.Placed[object])); !same(decided, wanted) {
		out = append(out, fmt.Sprintf("%s is placed in %v, and its policy says %v", object, decided, wanted))
	}
	template := j.End.Hub[object]
	for p, work := range works {
		if p.object != object {
			continue
		}
		if !slices.Contains(wanted, p.cluster) {
			out = append(out, fmt.Sprintf("the Works of %s: %s is there, and not to be", p.cluster, object))
		}
		if work.Version != template.Version || work.Digest != template.Digest || work.Replicas != j.End.Placed[object][p.cluster] {
			out = append(out, fmt.Sprintf("the Works of %s: %s is %s, and is to be version %d with %d replicas, digest %q",
				p.cluster, object, work.words(), template.Version, j.End.Placed[object][p.cluster], template.Digest))
		}
	}
	for _, cluster := range wanted {
		if _, there := works[place{cluster, object}]; !there {
			out = append(out, fmt.Sprintf("the Works of %s: %s is not there, and is to be", cluster, object))
		}
	}
	return out
}

// wanted are the clusters that the policy of an object names in the end.
func (j *judge) wanted(object Object) []string {
	policy := j.Policies[object]
	for _, m := range j.moves[policy] {
		if m.Version == j.End.Policies[policy] {
			return m.Clusters
		}
	}
	return nil
}

// reachable are the clusters that the policy of an object wants it in. Replicas that were
// divided while a cluster was away stay where they are when it comes back: nobody asked
// for them to move. Who wants that asks for a rebalance.
func (j *judge) reachable(object Object) []string {
	wanted := j.wanted(object)
	if j.End.Hub[object].Replicas == 0 {
		return wanted
	}
	asked := j.asked(object)
	present := slices.DeleteFunc(slices.Clone(wanted), func(cluster string) bool {
		_, placed := j.End.Placed[object][cluster]
		return !placed && slices.ContainsFunc(j.Absences, func(a Absence) bool { return a.Cluster == cluster && !a.At.Before(asked) })
	})
	if len(present) == 0 {
		return wanted
	}
	return present
}

// asked is when somebody last wanted an object to be divided: made it, scaled it, or
// moved its policy.
func (j *judge) asked(object Object) time.Time {
	var last time.Time
	replicas := 0
	for _, w := range j.writes[object] {
		if w.Deleted {
			replicas = 0
			continue
		}
		if w.Replicas != replicas {
			last, replicas = w.Begun, w.Replicas
		}
	}
	for _, m := range j.moves[j.Policies[object]] {
		if m.Begun.After(last) {
			last = m.Begun
		}
	}
	return last
}

// divided checks I6: the replicas of the clusters are in sum those of the template, in
// each decision, and in the end in bindings and members.
func (j *judge) divided() []string {
	var out []string
	for _, d := range j.Divisions {
		if sum := total(d.Clusters); sum != d.Replicas {
			out = append(out, fmt.Sprintf("%s was divided into %d replicas in sum, %v, and had %d", d.Object, sum, d.Clusters, d.Replicas))
		}
	}
	members := map[Object]int{}
	for _, c := range j.End.Members {
		members[c.Object] += c.Replicas
	}
	for _, object := range slices.Sorted(maps.Keys(j.End.Hub)) {
		want := j.End.Hub[object].Replicas
		if want == 0 {
			continue
		}
		if sum := total(j.End.Placed[object]); sum != want {
			out = append(out, fmt.Sprintf("%s is divided into %d replicas in sum, and is to have %d", object, sum, want))
		}
		if sum := members[object]; sum != want {
			out = append(out, fmt.Sprintf("%s has %d replicas in sum, and is to have %d", object, sum, want))
		}
	}
	return out
}

func total(clusters map[string]int) int {
	sum := 0
	for _, n := range clusters {
		sum += n
	}
	return sum
}
