package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/checkup"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/offspring"
	"github.com/flotilla-io/flotilla/cmd/flotilla/progress"
	"github.com/flotilla-io/flotilla/policies/explain"
	"github.com/flotilla-io/flotilla/policies/symptom"
	"github.com/flotilla-io/flotilla/policies/volumes"
)

// mostExamined is how many clusters are examined for the cause of an unhealthy workload: the
// causes in more clusters are hardly different.
const mostExamined = 10

// examine reads, from clusters in which the template is not healthy, the cause. It skips
// clusters that are not shown, and records those that cannot be read. While some do not
// answer, errOut shows which.
func (f *explainFlags) examine(ctx context.Context, errOut io.Writer, e explain.Explanation, template *unstructured.Unstructured) map[string]symptom.Symptom {
	clusters := unwell(e, f.scope.Named())
	if len(clusters) == 0 || !offspring.Has(template.GetKind()) {
		return nil
	}
	waiting := progress.Late(errOut, clock.RealClock{}, clusters)
	defer waiting.End()
	answers := fleet.Each(ctx, clusters, func(ctx context.Context, cluster string) (symptom.Symptom, error) {
		defer waiting.Done(cluster)
		set, err := f.hub.Server(cluster, fleet.Timeout).KubernetesClientSet()
		if err != nil {
			return symptom.Symptom{}, err
		}
		return checkup.Ask(ctx, offspring.In(set, template.GetNamespace()), cluster, template.GetKind(), template.GetName())
	})
	out := map[string]symptom.Symptom{}
	for _, a := range answers {
		switch {
		case fleet.Denied(a.Err):
			out[a.Cluster] = symptom.Symptom{Unread: "you may not read its Pods there", Denied: true}
		case a.Err != nil:
			out[a.Cluster] = symptom.Symptom{Unread: fmt.Sprintf("the cluster was not asked: %v", fleet.DescribeOf(a.Cluster, a.Err))}
		default:
			out[a.Cluster] = a.Value
		}
	}
	return out
}

// unwell returns those of the named clusters, or of all, that have the template and do not
// report it as healthy.
func unwell(e explain.Explanation, named []string) []string {
	if e.Delivery == nil {
		return nil
	}
	var out []string
	for _, c := range e.Delivery.Clusters {
		asked := len(named) == 0 || slices.Contains(named, c.Cluster)
		if asked && (c.Outdated || c.Applied != nil && *c.Applied) && c.Silent == "" && !c.Leaving && c.Health != string(workv1alpha2.ResourceHealthy) && len(out) < mostExamined {
			out = append(out, c.Cluster)
		}
	}
	return out
}

// uncarried adds to an explanation how clusters get objects that they lack although the control plane has them.
func uncarried(ctx context.Context, hub client.Reader, e explain.Explanation) explain.Explanation {
	e.Problems = slices.Clone(e.Problems)
	for i, p := range e.Problems {
		if p.Reason == explain.ReasonUnhealthy || p.Reason == explain.ReasonNotApplied {
			workload := client.ObjectKey{Namespace: e.Resource.Namespace, Name: e.Resource.Name}
			e.Problems[i].Next = cmp.Or(checkup.Uncarried(ctx, hub, e.Resource.Kind, workload, p.Message), p.Next)
		}
	}
	return e
}

// leftData adds to an explanation which clusters keep the claims of a template that is about to leave them, and what it goes on with in
// others of the fleet.
func leftData(template *unstructured.Unstructured, clusters []*clusterv1alpha1.Cluster, e explain.Explanation) explain.Explanation {
	p := e.Placement
	if p == nil || p.Stands == nil || p.Now == nil || p.Now.Same || p.Now.Error != "" || len(p.Now.Clusters) == 0 {
		return e
	}
	var leaves []string
	for _, t := range p.Stands.Clusters {
		if !slices.ContainsFunc(p.Now.Clusters, func(to explain.Target) bool { return to.Name == t.Name }) {
			leaves = append(leaves, t.Name)
		}
	}
	there := volumes.Found{}
	for _, c := range clusters {
		if slices.ContainsFunc(p.Now.Clusters, func(to explain.Target) bool { return to.Name == c.Name }) {
			there.Add(c)
		}
	}
	if data := volumes.LeftBehind(template, leaves, there); data != "" {
		placed, stands := *p, *p.Stands
		stands.Leaves = append(slices.Clone(stands.Leaves), strings.Join(leaves, ", ")+", once that is decided; "+data)
		placed.Stands, e.Placement = &stands, &placed
	}
	return e
}
