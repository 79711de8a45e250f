package riskyedit

import (
	"slices"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Dependency is an object that goes along with templates (propagateDeps), and what edits of policies change about that.
// One of the edits is the one in question.
type Dependency struct {
	// Placed are the clusters in which a policy of its own has it after the edits, and Unplaced those out of which
	// the edit in question takes it.
	Placed, Unplaced []string
	// Users are the templates with which it goes along before the edits.
	Users []User
}

// User is a template with which a Dependency goes along before the edits.
type User struct {
	// Name of the template, for people.
	Name string
	// Clusters in which it has the object along, and Leaves those of them that it leaves by the edits.
	Clusters, Leaves []string
	// Alone says that it does not take the object along any more by the edits, though it still refers to it; Done, that
	// it does not refer to it any more.
	Alone, Done bool
	// Edited says that the edit in question is that of its policy.
	Edited bool
}

// Lost returns the clusters that lose the object as templates leave them by the edit in question, sorted. What is not taken along any more
// with one that stays is Missed.
func (d Dependency) Lost() []string {
	lost := slices.Clone(d.Unplaced)
	for _, u := range d.Users {
		if u.Edited {
			lost = append(lost, u.Leaves...)
		}
	}
	return without(lost, d.kept())
}

// Missed returns the clusters in which a template stays and loses the object by the edit in question, and the names of
// these templates; both sorted.
func (d Dependency) Missed() (clusters, users []string) {
	kept := d.kept()
	for _, u := range d.Users {
		if !u.Edited || !u.Alone || u.Done {
			continue
		}
		if lacks := without(u.Clusters, append(slices.Clone(u.Leaves), kept...)); len(lacks) > 0 {
			clusters, users = append(clusters, lacks...), append(users, u.Name)
		}
	}
	return without(clusters, nil), without(users, nil)
}

// kept returns the clusters in which the object stays, or comes.
func (d Dependency) kept() []string {
	out := slices.Clone(d.Placed)
	for _, u := range d.Users {
		if !u.Done && !u.Alone {
			out = append(out, without(u.Clusters, u.Leaves)...)
		}
	}
	return out
}

// without returns the names that are not among others, sorted and each of them once; nil for none.
func without(names, others []string) []string {
	out := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
	if len(out) == 0 {
		return nil
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Reaches returns the clusters to which a policy takes all that it carries: those of its first term; none where it spreads
// over some of them, as it is not known which.
func Reaches(spec *policyv1alpha1.PropagationSpec, fleet []*clusterv1alpha1.Cluster) []string {
	p := &spec.Placement
	first := p.ClusterAffinity
	if len(p.ClusterAffinities) > 0 {
		first = &p.ClusterAffinities[0].ClusterAffinity
	}
	var out []string
	for _, c := range fleet {
		if len(p.SpreadConstraints) == 0 && selector.Cluster(c, first) {
			out = append(out, c.Name)
		}
	}
	return out
}
