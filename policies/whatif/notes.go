package whatif

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/interpreter/running"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// RulesIn returns the failover rules that are in force, as the last placement that was decided has noted them. Nothing is moved
// for the loss of a cluster by those of a fleet that has noted none.
func RulesIn(bindings []workv1alpha2.Binding) failover.Rules {
	var last placement.Record
	for _, b := range bindings {
		record, recorded := placement.RecordOf(b)
		if !recorded || !record.Succeeded() || record.At.Time.Before(last.At.Time) || record.At.Equal(&last.At) && record.Rules == nil {
			continue
		}
		last = record
	}
	rules, _ := last.Rules.Rules()
	return rules
}

// Outcome is a fleet once events have happened, and all has been decided that follows from them.
type Outcome struct {
	Events   []Event
	Clusters []*clusterv1alpha1.Cluster
	Rules    failover.Rules
	// Bindings are as decided.
	Bindings []workv1alpha2.Binding
	Now      time.Time
}

// mostNamed is how many workloads a note names.
const mostNamed = 5

// Notes returns what is to be said of events besides what clusters hold, each on one line: why nothing moves, what stays in clusters
// that are down, and when the old copies go.
func (o Outcome) Notes() []string {
	var out, down []string
	for _, e := range o.Events {
		switch {
		case e.does == isDown && !slices.Contains(down, e.cluster):
			down = append(down, e.cluster)
		case e.does == isTainted && e.taint.Effect == corev1.TaintEffectNoExecute && !o.Rules.Taints:
			out = append(out, fmt.Sprintf("failover is off: the taint %s moves nothing off %s", e.taint.ToString(), e.cluster))
		case e.does == joins && e.joining.Status.ResourceSummary == nil && !o.sized(e.cluster):
			out = append(out, fmt.Sprintf("%s has no room for what is divided by it: its manifest does not say what it has; %s:capacity=cpu=100,memory=200Gi does", e.cluster, e.cluster))
		}
	}
	if len(down) == 0 {
		return out
	}
	losses := o.Rules.Breaker.Losses(fleet(o.Clusters), o.Now)
	suspected := slices.DeleteFunc(slices.Clone(down), func(name string) bool { return !losses.Suspected(name) })
	untainted := slices.DeleteFunc(slices.Clone(down), func(name string) bool { return o.moving(name) })
	switch {
	case !o.Rules.Taints:
		out = append(out, fmt.Sprintf("failover is off: nothing moves off %s", listed(down)))
	case len(suspected) > 0:
		out = append(out, fmt.Sprintf("%s: that looks as if the control plane itself were cut off, so nothing moves off %s before somebody confirms the loss", losses, listed(suspected)))
	case len(untainted) > 0:
		out = append(out, fmt.Sprintf("no ClusterTaintPolicy gives %s a taint with the effect NoExecute: nothing moves off", listed(untainted)))
	}
	if o.Rules.Taints && len(suspected)+len(untainted) < len(down) {
		out = append(out, fmt.Sprintf("what has moved off %s is deleted there once it answers again", listed(down)))
	}
	for _, name := range down {
		if text := o.staying(name); text != "" {
			out = append(out, text)
		}
	}
	return out
}

// sized reports whether an event says what room a cluster has.
func (o Outcome) sized(cluster string) bool {
	return slices.ContainsFunc(o.Events, func(e Event) bool { return e.does == hasCapacity && e.cluster == cluster })
}

// moving reports whether a cluster that is down has a taint that moves what runs there.
func (o Outcome) moving(cluster string) bool {
	return slices.ContainsFunc(o.Clusters, func(c *clusterv1alpha1.Cluster) bool {
		return c.Name == cluster && slices.ContainsFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute })
	})
}

// staying says which workloads stay in a cluster that is down, and run nowhere else; empty for none.
func (o Outcome) staying(cluster string) string {
	var only []string
	for _, b := range o.Bindings {
		spec := b.BindingSpec()
		of := &spec.Resource
		if len(spec.Clusters) != 1 || spec.Clusters[0].Name != cluster || running.Of(schema.FromAPIVersionAndKind(of.APIVersion, of.Kind).GroupKind()) != running.Runs {
			continue
		}
		only = append(only, of.Kind+" "+strings.TrimPrefix(of.Namespace+"/"+of.Name, "/"))
	}
	if len(only) == 0 {
		return ""
	}
	slices.Sort(only)
	shown := only
	if more := len(only) - mostNamed; more > 1 {
		shown = append(slices.Clone(only[:mostNamed]), fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("what runs nowhere but in %s, which is down: %s", cluster, listed(shown))
}

// fleet is a failover.Fleet.
type fleet []*clusterv1alpha1.Cluster

// Each implements failover.Fleet.
func (f fleet) Each(yield func(*clusterv1alpha1.Cluster) bool) {
	for _, c := range f {
		if !yield(c) {
			return
		}
	}
}
