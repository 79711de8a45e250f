package placement

import (
	"cmp"
	"slices"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
)

// Trace says how a placement came about.
type Trace struct {
	// Terms are the affinities that were tried, in order; the last one is that
	// which was taken, unless Err is set. A placement without clusterAffinities
	// has one term without a name.
	Terms []TermTrace
	// Clusters and AffinityName are those of the Result; empty where Err is set.
	Clusters     []workv1alpha2.TargetCluster
	AffinityName string
	// Err is what Place returns; nil where the binding was placed.
	Err error
}

// TermTrace says what became of one affinity.
type TermTrace struct {
	// Name of the term; empty where the placement has no clusterAffinities.
	Name string
	// Verdicts has one entry for each cluster that is not being deleted, sorted
	// by name. Empty where the term cannot be asked, such as for a label selector
	// that makes no sense.
	Verdicts []Verdict
	// Spread says in words what the spread constraints chose; empty where there
	// are none, and where nothing came so far.
	Spread string
	// Division says in words how the replicas were divided; empty where there are
	// none, and where nothing came so far.
	Division string
	// Err is why the term was not taken; nil for the one that was.
	Err error
}

// Verdict is what one term made of one cluster.
type Verdict struct {
	// Cluster is its name.
	Cluster string
	// Refused is the plugin that refused it; empty where it fits. Plugins after
	// that one were not asked.
	Refused string
	// Reason is the refusal in words.
	Reason string
	// Scores by plugin, from 0 to 100 each. Nil for a cluster that was refused.
	Scores map[string]int64
	// Available is how many replicas it could run in all, those that it runs today
	// included; sets, for workloads with several components. -1 where capacity does
	// not matter, and for a cluster that was refused.
	Available int64
	// Assigned is how many replicas it has today.
	Assigned int32
	// Tier is 0 for clusters of the affinity itself, and i+1 for those that only
	// its i-th overflow affinity means.
	Tier int
	// Selected is whether the spread constraints left it in.
	Selected bool
	// Weight by which replicas were divided; 0 where it had none.
	Weight int64
	// Replicas that it runs from now on.
	Replicas int32
}

// Explain places like Place and says how that came about. It runs the same
// code: Err, Clusters and AffinityName are what Place returns.
func Explain(req Request, snap Snapshot, opts Options) Trace {
	var t Trace
	result, err := place(req, snap, opts, &t)
	t.Clusters, t.AffinityName, t.Err = result.Clusters, result.AffinityName, err
	return t
}

// term starts the trace of a term. A nil trace traces nothing, and neither does
// the nil trace of a term.
func (t *Trace) term(name string) *TermTrace {
	if t == nil {
		return nil
	}
	t.Terms = append(t.Terms, TermTrace{Name: name})
	return &t.Terms[len(t.Terms)-1]
}

func (t *TermTrace) refused(c *framework.Cluster, plugin, reason string) {
	if t != nil {
		t.Verdicts = append(t.Verdicts, Verdict{Cluster: c.Name, Refused: plugin, Reason: reason, Available: -1})
	}
}

func (t *TermTrace) fits(c *framework.Cluster) *Verdict {
	if t == nil {
		return nil
	}
	t.Verdicts = append(t.Verdicts, Verdict{Cluster: c.Name, Scores: map[string]int64{}, Available: -1})
	return &t.Verdicts[len(t.Verdicts)-1]
}

func (v *Verdict) scored(plugin string, score int64) {
	if v != nil {
		v.Scores[plugin] = score
	}
}

// measured notes the capacity of the candidates; matters is false where nobody
// looked for it.
func (t *TermTrace) measured(fit []framework.Candidate, matters bool) {
	if t == nil {
		return
	}
	for i := range fit {
		v := t.verdict(fit[i].Name)
		v.Assigned, v.Tier = fit[i].Assigned, fit[i].Tier
		if matters {
			v.Available = fit[i].Available()
		}
	}
}

func (t *TermTrace) selected(chosen []framework.Candidate, words string) {
	if t == nil {
		return
	}
	t.Spread = words
	for i := range chosen {
		t.verdict(chosen[i].Name).Selected = true
	}
}

func (t *TermTrace) divided(targets []workv1alpha2.TargetCluster, weights map[string]int64, words string) {
	if t == nil {
		return
	}
	t.Division = words
	for name, w := range weights {
		t.verdict(name).Weight = w
	}
	for i := range targets {
		t.verdict(targets[i].Name).Replicas = targets[i].Replicas
	}
}

// verdict returns the entry of a cluster, of which there is one: clusters are
// filtered in the order of their names.
func (t *TermTrace) verdict(cluster string) *Verdict {
	i, _ := slices.BinarySearchFunc(t.Verdicts, cluster, func(v Verdict, name string) int { return cmp.Compare(v.Cluster, name) })
	return &t.Verdicts[i]
}
