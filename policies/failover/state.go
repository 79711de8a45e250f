package failover

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// State returns what the copy of a template in a cluster leaves to the one that takes its place: labels, as its
// policy wants them of the status that the cluster reported last. Application says that it is the template that
// fails, and not its cluster. It is nil where the policy wants nothing.
//
// What the status does not have, and an eviction that is under way has preserved already, is taken from there: a copy
// that is lost before it could report hands on what it was to begin with. What is nowhere, or can be no label, is an
// error: nothing is to be moved without its state.
func State(b workv1alpha2.Binding, cluster string, application bool) (map[string]string, error) {
	var out map[string]string
	for _, rule := range stateRules(b.BindingSpec().Failover, application) {
		value, err := find(rule.JSONPath, statusIn(b, cluster))
		if err != nil {
			before, ok := preserved(b.BindingSpec(), rule.AliasLabelName)
			if !ok {
				return nil, fmt.Errorf("its state cannot be carried over: %s of the status in %s, for the label %s: %w", rule.JSONPath, cluster, rule.AliasLabelName, err)
			}
			value = before
		}
		if faults := validation.IsValidLabelValue(value); len(faults) > 0 {
			return nil, fmt.Errorf("its state cannot be carried over: the label %s cannot hold what %s of the status in %s is: %s", rule.AliasLabelName, rule.JSONPath, cluster, faults[0])
		}
		if out == nil {
			out = map[string]string{}
		}
		out[rule.AliasLabelName] = value
	}
	return out, nil
}

// Withheld are clusters that a template must not leave, as its state is wanted and cannot be read.
type Withheld struct {
	// Clusters are sorted; empty: there is none.
	Clusters []string
	// Why each stays, in sentences.
	Why string
}

// Withhold takes the clusters out of d that a template is placed in and must not leave, and returns them; none where
// the rules have no state handed over.
func (r Rules) Withhold(d Due, b workv1alpha2.Binding) Withheld {
	var out Withheld
	if !r.State {
		return out
	}
	var texts []string
	for _, t := range b.BindingSpec().Clusters {
		cause, is := d[t.Name]
		if !is {
			continue
		}
		if _, err := State(b, t.Name, cause.Application); err != nil {
			delete(d, t.Name)
			out.Clusters, texts = append(out.Clusters, t.Name), append(texts, "It stays in "+t.Name+": "+err.Error()+".")
		}
	}
	slices.Sort(out.Clusters)
	slices.Sort(texts)
	out.Why = strings.Join(texts, " ")
	return out
}

// Inherits returns the labels that the copy in a cluster begins with, as a binding says that it takes the place of one
// whose state was preserved: it is the only copy, the one before it is gone, and it was not there itself.
func Inherits(spec *workv1alpha2.ResourceBindingSpec, cluster string) map[string]string {
	tasks := spec.GracefulEvictionTasks
	if len(spec.Clusters) != 1 || spec.Clusters[0].Name != cluster || len(tasks) == 0 {
		return nil
	}
	last := &tasks[len(tasks)-1]
	if last.PurgeMode != policyv1alpha1.PurgeModeDirectly {
		return nil
	}
	if slices.Contains(last.ClustersBeforeFailover, cluster) {
		return nil
	}
	return last.PreservedLabelState
}

func stateRules(f *policyv1alpha1.FailoverBehavior, application bool) []policyv1alpha1.StatePreservationRule {
	switch {
	case f != nil && application && f.Application != nil && f.Application.StatePreservation != nil:
		return f.Application.StatePreservation.Rules
	case f != nil && !application && f.Cluster != nil && f.Cluster.StatePreservation != nil:
		return f.Cluster.StatePreservation.Rules
	default:
		return nil
	}
}

// statusIn is what a cluster reported last of a template; nil if that is nothing.
func statusIn(b workv1alpha2.Binding, cluster string) []byte {
	for i := range b.BindingStatus().AggregatedStatus {
		if item := &b.BindingStatus().AggregatedStatus[i]; item.ClusterName == cluster && item.Status != nil {
			return item.Status.Raw
		}
	}
	return nil
}

// preserved returns what the last eviction has preserved for a label.
func preserved(spec *workv1alpha2.ResourceBindingSpec, label string) (string, bool) {
	for i := len(spec.GracefulEvictionTasks) - 1; i >= 0; i-- {
		if value, ok := spec.GracefulEvictionTasks[i].PreservedLabelState[label]; ok {
			return value, true
		}
	}
	return "", false
}
