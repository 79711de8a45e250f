package failover

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// State returns what the copy of a template in a cluster hands over to the one
// that replaces it: labels, whose values its policy takes from the last status
// that the cluster reported. application means that the template fails, and not
// its cluster. It is nil where the policy preserves nothing.
//
// A value that the status does not have is taken from an eviction that is under
// way, where that has preserved it: a copy that is lost before it could report
// hands over what it was started with. A value that is nowhere, or cannot be a
// label, is an error, as a template must not be moved without its state.
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

// Withheld are the clusters that a template must not leave, as its state is to be
// preserved and cannot be read.
type Withheld struct {
	// Clusters are sorted; empty for none.
	Clusters []string
	// Why is why the template stays in each of them, in sentences.
	Why string
}

// Withhold removes from d the clusters of a template's placement that it must not
// leave, and returns them; none where the rules preserve no state.
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

// Inherits returns the labels that the copy in a cluster is started with, if it
// replaces one whose state was preserved: it is the only copy, the one before is
// gone, and the cluster did not run one before.
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

// StateLabels returns the labels that copies of a template may be started with beside its own.
func StateLabels(spec *workv1alpha2.ResourceBindingSpec) []string {
	var out []string
	for _, application := range []bool{false, true} {
		for _, rule := range stateRules(spec.Failover, application) {
			out = append(out, rule.AliasLabelName)
		}
	}
	for i := range spec.GracefulEvictionTasks {
		out = slices.AppendSeq(out, maps.Keys(spec.GracefulEvictionTasks[i].PreservedLabelState))
	}
	return out
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

// statusIn returns the last status of a template that a cluster reported, as
// JSON; nil for none.
func statusIn(b workv1alpha2.Binding, cluster string) []byte {
	for i := range b.BindingStatus().AggregatedStatus {
		if item := &b.BindingStatus().AggregatedStatus[i]; item.ClusterName == cluster && item.Status != nil {
			return item.Status.Raw
		}
	}
	return nil
}

// preserved returns the value that the last eviction has preserved for a label.
func preserved(spec *workv1alpha2.ResourceBindingSpec, label string) (string, bool) {
	for i := len(spec.GracefulEvictionTasks) - 1; i >= 0; i-- {
		if value, ok := spec.GracefulEvictionTasks[i].PreservedLabelState[label]; ok {
			return value, true
		}
	}
	return "", false
}
