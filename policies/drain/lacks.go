package drain

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/quota"
)

// lacks returns what clusters lack for what a binding runs more of in them, in words, where its placement does not look
// at that: shares of quotas, and room for what fixed weights, or one whole copy for each cluster, put there. It moves
// all the same, and the old copy stays while the new ones fail.
func (p *planning) lacks(was, is workv1alpha2.Binding) string {
	before, after := was.BindingSpec(), is.BindingSpec()
	var out []string
	for _, more := range gains(before, after) {
		fits, known := p.room(is, more.Name)
		if err := p.share(is, more.Name, growth(before, after, more.Name)); err != nil {
			out = append(out, err.Error())
		} else if known && fits < more.Replicas {
			out = append(out, fmt.Sprintf("%s has room for %d of %d more by its nodes and quotas, at which its policy does not look", more.Name, max(fits, 0), more.Replicas))
		}
	}
	return strings.Join(out, "; ")
}

// growth is what one cluster is to give more, with the pods themselves.
func growth(before, after *workv1alpha2.ResourceBindingSpec, cluster string) corev1.ResourceList {
	return quota.Growth(usageIn(before, cluster), usageIn(after, cluster))
}

func usageIn(spec *workv1alpha2.ResourceBindingSpec, cluster string) corev1.ResourceList {
	for _, t := range spec.Clusters {
		if t.Name != cluster {
			continue
		}
		there := *spec
		there.Clusters = []workv1alpha2.TargetCluster{t}
		out := quota.Usage(&there)
		pods := int64(t.Replicas)
		if placement.InSets(spec) {
			pods = 0
			for i := range spec.Components {
				pods += int64(spec.Components[i].Replicas)
			}
		}
		out[corev1.ResourcePods] = *resource.NewQuantity(pods, resource.DecimalSI)
		return out
	}
	return nil
}

// share errs where a quota of the binding's namespace gives a cluster less than that, besides what it uses there and
// what was placed there since the plan began. What is placed there counts from now on.
func (p *planning) share(b workv1alpha2.Binding, cluster string, more corev1.ResourceList) error {
	key := cluster + "/" + b.GetNamespace()
	if p.grown[key] == nil {
		p.grown[key] = corev1.ResourceList{}
	}
	quota.Add(p.grown[key], more)
	for _, q := range p.Quotas {
		if q.Namespace != b.GetNamespace() || q.DeletionTimestamp != nil {
			continue
		}
		if err := quota.CheckShare(q, cluster, p.grown[key]); err != nil {
			return err
		}
	}
	return nil
}

// room is how many more units of a binding a cluster has room for, and false where that is not known.
func (p *planning) room(b workv1alpha2.Binding, cluster string) (int32, bool) {
	seen, known := p.Seen[cluster]
	if !known {
		return 0, false
	}
	ask, err := p.ask(b, cluster)
	if err != nil {
		return 0, false
	}
	return seen.fits(ask)
}

// gains are the clusters that run more units of a binding than before, and how many more.
func gains(before, after *workv1alpha2.ResourceBindingSpec) []workv1alpha2.TargetCluster {
	had := map[string]int32{}
	for _, t := range before.Clusters {
		had[t.Name] = placement.Units(before, t)
	}
	var out []workv1alpha2.TargetCluster
	for _, t := range after.Clusters {
		if more := placement.Units(after, t) - had[t.Name]; more > 0 {
			out = append(out, workv1alpha2.TargetCluster{Name: t.Name, Replicas: more})
		}
	}
	return out
}
