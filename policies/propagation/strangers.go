package propagation

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// Stranger is a cluster that a placement names and that does not exist.
type Stranger struct {
	// Name of the cluster; empty where it may not be shown.
	Name string
	// Meant is the cluster with the most similar name; empty where none is
	// similar.
	Meant string
}

// String returns a text such as "wst, which does not exist (did you mean west?)", with the codes of characters that a terminal
// would obey.
func (s Stranger) String() string {
	return excerpt.Inline(s.Name) + ", which does not exist" + DidYouMean(s.Meant)
}

// mostNamed is how many strangers a text names, and for how many a similar name
// is looked for.
const mostNamed = 5

// Naming returns a text with the strangers that clusterNames names; there has to
// be at least one.
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

// Remarks returns texts about the clusters that a policy or an override names or
// excludes and that do not exist. Excluding a cluster that does not exist is a
// mistake only if its name is nearly that of another, as it may yet join.
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

// ExcludedClusters returns the clusters that a policy excludes by name, sorted.
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

// NamedClusters returns the clusters that a policy selects, weights or suspends
// by name, sorted.
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

// WantedClusters returns the clusters that a placement selects by name, sorted:
// those of its affinity, and of its terms up to term, the one in force, or of all
// terms where term is none of them. Later terms do not apply yet. A nil placement
// has none.
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

// Missed returns the clusters that a placement selects by name and that do not
// exist, if that is a mistake whatever the template: one of them is nearly the
// name of another, or none of all that it names exists. Of several terms, the
// first counts.
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

// Strangers returns the NamedClusters of a policy that do not exist, sorted.
func Strangers(spec *policyv1alpha1.PropagationSpec, fleet []string) []Stranger {
	return StrangersAmong(NamedClusters(spec), fleet)
}

// StrangersAmong returns the names that are not in fleet. Similar names are
// looked for only for as many as Naming names.
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

// longestName is how long the name of a cluster may be, in bytes.
const longestName = 63

// number is a number in a name.
var number = regexp.MustCompile(`[0-9]+`)

// numbered reports whether two names differ by their numbers alone: m2 is another one than m1, and seldom a mistake for
// it.
func numbered(a, b string) bool {
	return a != b && number.ReplaceAllString(a, "0") == number.ReplaceAllString(b, "0")
}

// Nearest returns the name that needs the fewest corrections to become word, the
// first of several by name; empty if each needs more than a third of the word's
// letters. A name that differs by its numbers alone is not near.
func Nearest(word string, names []string) string {
	best, most := "", max(len(word)/3, 1)
	for _, name := range slices.Sorted(slices.Values(names)) {
		if n := mistakes(word, name); n <= most && !numbered(word, name) {
			best, most = name, n-1
		}
	}
	return best
}

// mistakes returns how many letters are missing, surplus, wrong, or swapped with
// their neighbour: the edit distance with transpositions.
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
