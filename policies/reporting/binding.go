package reporting

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// About is the object that an Event is on.
type About int

const (
	// Itself is the object that changed.
	Itself About = iota
	// Template is what the binding, or that of the Work, propagates.
	Template
	// Both are the binding, or that of the Work, and its template.
	Both
	// Dependent is another binding, which Event.Of names.
	Dependent
)

// Event is what is emitted about a change.
type Event struct {
	About About
	// Of is the binding that it is on; empty for all but Dependent.
	Of types.NamespacedName
	// Type is Normal or Warning.
	Type string
	// Reason is one of Karmada's.
	Reason  string
	Message string
}

func good(about About, reason, message string) Event {
	return Event{About: about, Type: corev1.EventTypeNormal, Reason: reason, Message: message}
}

// Binding returns the Events of a binding; before is nil for a new one.
func Binding(before, after workv1alpha2.Binding) []Event {
	if after.GetDeletionTimestamp() != nil {
		return nil
	}
	was := before
	if was == nil || was.GetUID() != after.GetUID() {
		was = none(after)
	}
	return slices.Concat(built(was, after), scheduled(was, after), depends(was, after), evicted(was, after), aggregated(was, after))
}

// none is a binding that says nothing, of the kind of b.
func none(b workv1alpha2.Binding) workv1alpha2.Binding {
	if b.GetNamespace() == "" {
		return &workv1alpha2.ClusterResourceBinding{}
	}
	return &workv1alpha2.ResourceBinding{}
}

// built reports that the spec was made of the template and its policy.
func built(was, is workv1alpha2.Binding) (out []Event) {
	if id, text := policyOf(is); id != "" {
		if had, _ := policyOf(was); had != id {
			out = append(out, good(Template, policyv1alpha1.EventReasonApplyPolicySucceed, "Carried by policy "+text+"."))
		}
	}
	before, now := was.BindingSpec(), is.BindingSpec()
	same := before.Resource.UID == now.Resource.UID && before.Resource.ResourceVersion == now.Resource.ResourceVersion
	switch {
	case len(now.Components) > 0:
		if !same || !equality.Semantic.DeepEqual(before.Components, now.Components) {
			out = append(out, good(Template, workv1alpha2.EventReasonGetComponentsSucceed, fmt.Sprintf("The template has %d components.", len(now.Components))))
		}
	case now.Replicas > 0 || now.ReplicaRequirements != nil:
		if !same || before.Replicas != now.Replicas || !equality.Semantic.DeepEqual(before.ReplicaRequirements, now.ReplicaRequirements) {
			out = append(out, good(Template, workv1alpha2.EventReasonGetReplicasSucceed, fmt.Sprintf("The template asks for %d replicas.", now.Replicas)))
		}
	}
	return out
}

// policyOf returns the id and the name of the policy that a binding is of; empty for
// none.
func policyOf(b workv1alpha2.Binding) (id, text string) {
	labels, notes := b.GetLabels(), b.GetAnnotations()
	if id := labels[policyv1alpha1.PropagationPolicyPermanentIDLabel]; id != "" {
		return id, notes[policyv1alpha1.PropagationPolicyNamespaceAnnotation] + "/" + notes[policyv1alpha1.PropagationPolicyNameAnnotation]
	}
	return labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel], notes[policyv1alpha1.ClusterPropagationPolicyAnnotation]
}

// overQuota begins the message about a placement that a quota refuses: clients look
// for what Karmada's webhook answers.
const overQuota = `admission webhook "resourcebinding.karmada.io" denied the request: `

// scheduled reports each decision.
func scheduled(was, is workv1alpha2.Binding) []Event {
	if was.GetAnnotations()[workv1alpha2.SchedulingDecisionAnnotation] == is.GetAnnotations()[workv1alpha2.SchedulingDecisionAnnotation] {
		return nil
	}
	record, decided := placement.RecordOf(is)
	switch {
	case !decided:
		return nil
	case !record.Succeeded():
		message := record.Message
		if record.Reason == workv1alpha2.BindingReasonQuotaExceeded {
			message = overQuota + message
		}
		return []Event{{About: Both, Type: corev1.EventTypeWarning, Reason: workv1alpha2.EventReasonScheduleBindingFailed, Message: message}}
	default:
		return []Event{good(Both, workv1alpha2.EventReasonScheduleBindingSucceed, record.Message+" Result: "+placement.Text(is.BindingSpec().Clusters))}
	}
}

// depends reports that the template's references were read, and the bindings that need
// this one, that it follows them.
func depends(was, is workv1alpha2.Binding) (out []Event) {
	read := is.GetAnnotations()[workv1alpha2.BindingDependenciesAnnotationKey]
	if read != "" && read != was.GetAnnotations()[workv1alpha2.BindingDependenciesAnnotationKey] {
		out = append(out, good(Template, workv1alpha2.EventReasonGetDependenciesSucceed, "What the template refers to was read."))
	}
	for _, by := range is.BindingSpec().RequiredBy {
		if slices.ContainsFunc(was.BindingSpec().RequiredBy, func(s workv1alpha2.BindingSnapshot) bool { return equality.Semantic.DeepEqual(s, by) }) {
			continue
		}
		n := good(Dependent, workv1alpha2.EventReasonSyncScheduleResultToDependenciesSucceed, "What it needs goes where it goes.")
		n.Of = types.NamespacedName{Namespace: by.Namespace, Name: by.Name}
		out = append(out, n)
	}
	return out
}

// evicted reports the clusters that were left: one that was taken back was not.
func evicted(was, is workv1alpha2.Binding) (out []Event) {
	for _, task := range was.BindingSpec().GracefulEvictionTasks {
		stays := func(t workv1alpha2.GracefulEvictionTask) bool { return t.FromCluster == task.FromCluster }
		back := func(t workv1alpha2.TargetCluster) bool { return t.Name == task.FromCluster }
		if !slices.ContainsFunc(is.BindingSpec().GracefulEvictionTasks, stays) && !slices.ContainsFunc(is.BindingSpec().Clusters, back) {
			out = append(out, good(Both, workv1alpha2.EventReasonEvictWorkloadFromClusterSucceed, "Evict from cluster "+task.FromCluster+" succeed."))
		}
	}
	return out
}

// aggregated reports that what clusters report was added up, once one has reported.
func aggregated(was, is workv1alpha2.Binding) []Event {
	items := is.BindingStatus().AggregatedStatus
	reported := func(i workv1alpha2.AggregatedStatusItem) bool { return i.Applied || i.Status != nil }
	if !slices.ContainsFunc(items, reported) || equality.Semantic.DeepEqual(was.BindingStatus().AggregatedStatus, items) {
		return nil
	}
	return []Event{good(Both, workv1alpha2.EventReasonAggregateStatusSucceed, "The statuses of all clusters were added up.")}
}
