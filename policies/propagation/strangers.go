package propagation

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// Stranger is a cluster that a placement names and that is not in the fleet.
type Stranger struct {
	// Name is empty where it may not be shown.
	Name string
	// Meant is the cluster of the fleet with the most similar name; empty where none is
	// similar.
	Meant string
}

// String says what is wrong: "wst, which does not exist (did you mean west?)".
func (s Stranger) String() string {
	if s.Meant == "" {
		return s.Name + ", which does not exist"
	}
	return fmt.Sprintf("%s, which does not exist (did you mean %s?)", s.Name, s.Meant)
}

// mostNamed is how many strangers are named, and looked at for what was meant.
const mostNamed = 5

// Naming says which clusters clusterNames names that do not exist. Some must be given.
func Naming(strangers []Stranger) string { return "clusterNames names " + listed(strangers) }

func listed(strangers []Stranger) string {
	if strangers[0].Name == "" {
		return counted(len(strangers))
	}
	var parts []string
	for _, s := range strangers[:min(len(strangers), mostNamed)] {
		parts = append(parts, s.String())
	}
	if more := len(strangers) - mostNamed; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

// Remarks are the texts about clusters that a policy, or an override, names, and of those that it excludes,
// which are none of the fleet's. To exclude one that may yet join is no mistake, but by a name that is nearly
// another's.
func Remarks(of metav1.Object, names, excluded, fleet []string) []string {
	var out []string
	if unknown := StrangersAmong(names, fleet); len(unknown) > 0 {
		out = append(out, Naming(Redact(of, unknown)))
	}
	mistyped := slices.DeleteFunc(StrangersAmong(excluded, fleet), func(s Stranger) bool { return s.Meant == "" })
	if len(mistyped) > 0 {
		out = append(out, "exclude names "+listed(Redact(of, mistyped)))
	}
	return out
}

// ExcludedClusters are those that a policy excludes by name, sorted.
func ExcludedClusters(spec *policyv1alpha1.PropagationSpec) []string {
	var names []string
	if a := spec.Placement.ClusterAffinity; a != nil {
		names = append(names, a.ExcludeClusters...)
	}
	for i := range spec.Placement.ClusterAffinities {
		names = append(names, spec.Placement.ClusterAffinities[i].ExcludeClusters...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// NamedClusters are those that a policy wants, weighs, or keeps changes from, by name, sorted.
func NamedClusters(spec *policyv1alpha1.PropagationSpec) []string {
	p := &spec.Placement
	var names []string
	if s := spec.Suspension; s != nil && s.DispatchingOnClusters != nil {
		names = append(names, s.DispatchingOnClusters.ClusterNames...)
	}
	if p.ClusterAffinity != nil {
		names = append(names, p.ClusterAffinity.ClusterNames...)
	}
	for i := range p.ClusterAffinities {
		names = append(names, p.ClusterAffinities[i].ClusterNames...)
	}
	if r := p.ReplicaScheduling; r != nil && r.WeightPreference != nil {
		for i := range r.WeightPreference.StaticWeightList {
			names = append(names, r.WeightPreference.StaticWeightList[i].TargetCluster.ClusterNames...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// WantedClusters are those that a placement wants by name, sorted: those of its affinity, and of its
// terms up to the one in force, or of all where none is. Those of later terms are for another day.
// A placement that is nil wants none.
func WantedClusters(p *policyv1alpha1.Placement, term string) []string {
	if p == nil {
		return nil
	}
	var names []string
	if p.ClusterAffinity != nil {
		names = append(names, p.ClusterAffinity.ClusterNames...)
	}
	for i := range p.ClusterAffinities {
		names = append(names, p.ClusterAffinities[i].ClusterNames...)
		if p.ClusterAffinities[i].AffinityName == term {
			break
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Missed returns the clusters by which a placement asks for what is not there, whatever it carries: those of its affinity,
// or of its first term, that are none of the fleet's, where one of them is nearly another's name, or where all that it
// names is none of the fleet's.
func Missed(p *policyv1alpha1.Placement, fleet []string) []Stranger {
	first := ""
	if len(p.ClusterAffinities) > 0 {
		first = p.ClusterAffinities[0].AffinityName
	}
	missed := StrangersAmong(WantedClusters(p, first), fleet)
	isMistyped := slices.ContainsFunc(missed, func(s Stranger) bool { return s.Meant != "" })
	isSomeoneThere := slices.ContainsFunc(WantedClusters(p, ""), func(name string) bool { return slices.Contains(fleet, name) })
	if isSomeoneThere && !isMistyped {
		return nil
	}
	return missed
}

// Strangers returns the NamedClusters of a policy that are none of the fleet's, sorted.
func Strangers(spec *policyv1alpha1.PropagationSpec, fleet []string) []Stranger {
	return StrangersAmong(NamedClusters(spec), fleet)
}

// StrangersAmong returns those clusters that are none of the fleet's. What was meant is looked
// for of as many as Naming names.
func StrangersAmong(names, fleet []string) []Stranger {
	var out []Stranger
	for _, name := range names {
		if slices.Contains(fleet, name) {
			continue
		}
		s := Stranger{Name: name}
		if len(out) < mostNamed && len(name) <= longestName {
			s.Meant = Nearest(name, fleet)
		}
		out = append(out, s)
	}
	return out
}

// longestName is how long the name of a cluster can be.
const longestName = 63

// Nearest returns the name that takes the fewest typing mistakes to become word, the first
// of several by the alphabet; empty if each takes more than a third of the word's letters.
func Nearest(word string, names []string) string {
	best, most := "", max(len(word)/3, 1)
	for _, name := range slices.Sorted(slices.Values(names)) {
		if n := mistakes(word, name); n <= most {
			best, most = name, n-1
		}
	}
	return best
}

// mistakes is how many letters are missing, too much, wrong or swapped with their
// neighbour.
func mistakes(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			wrong := 1
			if a[i-1] == b[j-1] {
				wrong = 0
			}
			n := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+wrong)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				n = min(n, rows[i-2][j-2]+1)
			}
			rows[i][j] = n
		}
	}
	return rows[len(a)][len(b)]
}
