package drain

import (
	"slices"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
	"github.com/flotilla-io/flotilla/policies/estimate/profile"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// Seen is what is known of the nodes of a cluster.
type Seen struct {
	// Index has the nodes, what they run, and quotas.
	Index *nodes.Index
	// Reported is what the agent of the cluster reports them, of which Index was made; nil: Index has them as they are.
	Reported *profile.Profile
}

// fits counts what is asked for, as the control plane does by default; false where that is not known.
func (s Seen) fits(ask *nodes.Ask) (int32, bool) {
	if s.Index == nil || s.Reported != nil && s.Reported.Answers(ask) != nil {
		return 0, false
	}
	n := nodes.Most(s.Index, ask, nodes.Resources{}, nodes.Quotas{})
	return n, estimate.Plausible(n, 0) == nil
}

// Asks returns the clusters whose nodes a plan counts, sorted: those that one of the templates may go to for which room matters.
func Asks(in Input) []string {
	return clustersOf(in, func(p *planning, i int) []string {
		if !placement.CapacityMatters(p.all[i].BindingSpec()) {
			return nil // Doubts has the clusters that get more of it
		}
		return placement.Asks(p.all[i], p.situation(p.all[i]), p.Scheduling)
	})
}

// Doubts returns the clusters that get more of templates for which room does not matter, sorted: what is seen of their nodes says
// whether they have room for it.
func Doubts(in Input) []string {
	return clustersOf(in, func(p *planning, i int) []string {
		b := p.all[i]
		if placement.CapacityMatters(b.BindingSpec()) {
			return nil
		}
		p.decide(i)
		var out []string
		for _, more := range gains(b.BindingSpec(), p.all[i].BindingSpec()) {
			out = append(out, more.Name)
		}
		return out
	})
}

// clustersOf are those that of names for the bindings that a plan is about, sorted.
func clustersOf(in Input, of func(p *planning, i int) []string) []string {
	p, at := planned(in)
	if at < 0 {
		return nil
	}
	var out []string
	for i, b := range p.all {
		if before, concerned := RowOf(b, p.clusters[at], in.Now); concerned && before.State != Left {
			out = append(out, of(&p, i)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// capacity is what fits in the clusters whose nodes are known, besides what was placed there since the plan began.
func (p *planning) capacity(b workv1alpha2.Binding, in placement.Situation) map[string]estimate.Answer {
	var out map[string]estimate.Answer
	for _, name := range placement.Asks(b, in, p.Scheduling) {
		seen, known := p.Seen[name]
		if !known {
			continue
		}
		ask, err := p.ask(b, name)
		if err != nil {
			continue // the control plane gets no answer either
		}
		if n, ok := seen.fits(ask); ok {
			if out == nil {
				out = map[string]estimate.Answer{}
			}
			out[name] = estimate.Answer{Fits: n}
		}
	}
	return out
}

// ask is what one unit of a binding needs in a cluster, besides what was placed there since the plan began.
func (p *planning) ask(b workv1alpha2.Binding, cluster string) (*nodes.Ask, error) {
	return nodes.AskForSets(b.GetNamespace(), unit(b.BindingSpec()), p.assumed[cluster])
}

// assume counts so many more units of a template in a cluster.
func (p *planning) assume(cluster string, b workv1alpha2.Binding, units int32) {
	if units <= 0 {
		return
	}
	is := estimate.Assumed{Namespace: b.GetNamespace(), Components: slices.Clone(unit(b.BindingSpec()))}
	for i := range is.Components {
		is.Components[i].Replicas = int32(min(int64(is.Components[i].Replicas)*int64(units), 1<<31-1))
	}
	p.assumed[cluster] = append(p.assumed[cluster], is)
}

// unit is one replica, or one set of components.
func unit(spec *workv1alpha2.ResourceBindingSpec) []workv1alpha2.Component {
	if placement.InSets(spec) {
		return spec.Components
	}
	return []workv1alpha2.Component{estimate.ComponentOf(spec.ReplicaRequirements)}
}
