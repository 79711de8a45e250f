package propagation

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// DigestAnnotation is, on a binding, the digest of the template whose
// resourceVersion is in spec.resource; on a Work, that of the template from which
// its manifest was made.
const DigestAnnotation = "propagation.flotilla.io/template-digest"

// FaultAnnotation is, on a Work, why its manifest could not be updated; the
// manifest is the previous one. It has at most MaxFault bytes.
const FaultAnnotation = "propagation.flotilla.io/fault"

// MaxFault is how long the text of a fault may be, in bytes.
const MaxFault = 1024

// Template is a resource that is to be propagated, with its size according to the
// interpreter.
type Template struct {
	// Object as the hub holds it.
	Object *unstructured.Unstructured
	// Replicas that it asks for; zero for kinds that have none.
	Replicas int32
	// Requirements of one replica; nil for none.
	Requirements *workv1alpha2.ReplicaRequirements
	// Digest of the object, from Digest, and Seen, the digest that its binding
	// has. Where they are equal, the binding keeps its resourceVersion, so that a
	// change of the template's status alone causes no write. If both are empty,
	// the resourceVersion is always updated.
	Digest, Seen string
	// Components are its parts where it has several kinds of pods, each with
	// replicas of its own. Replicas and Requirements are then ignored.
	Components []workv1alpha2.Component
	// Priority of the PriorityClass that the policy names; nil where it names
	// none.
	Priority *int32
}

// serverKept are the fields of metadata that the API server maintains and that
// are never propagated.
var serverKept = []string{
	"managedFields", "resourceVersion", "generation", "selfLink", "uid", "creationTimestamp",
	"deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences", "finalizers",
}

// Digest returns a digest of what is propagated of obj: all but its status and
// the metadata that the API server maintains.
func Digest(obj *unstructured.Unstructured) (string, error) {
	content := maps.Clone(obj.Object)
	delete(content, "status")
	if meta, ok := content["metadata"].(map[string]any); ok {
		meta = maps.Clone(meta)
		for _, key := range serverKept {
			delete(meta, key)
		}
		content["metadata"] = meta
	}
	data, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16]), nil
}

// BindingSpec returns the spec that the template's binding should have under p.
// What neither p nor the template determines is taken from current: the
// placement, evictions, the bindings that need this one, a requested rebalance
// and a suspension of scheduling. The result shares these with current, which is
// not changed. A nil current stands for a new binding.
func BindingSpec(t Template, p policyv1alpha1.Policy, current *workv1alpha2.ResourceBindingSpec) workv1alpha2.ResourceBindingSpec {
	spec := workv1alpha2.ResourceBindingSpec{}
	if current != nil {
		spec = *current
	}
	policy := p.PropagationSpec()
	spec.Resource = reference(t, spec.Resource)
	spec.Replicas, spec.ReplicaRequirements, spec.Components = t.Replicas, t.Requirements.DeepCopy(), t.Components
	// A binding has components instead of replicas, not both.
	if len(t.Components) > 0 {
		spec.Replicas, spec.ReplicaRequirements = 0, nil
	}
	spec.Placement = policy.Placement.DeepCopy()
	spec.PropagateDeps = policy.PropagateDeps
	spec.SchedulerName = policy.SchedulerName
	if spec.SchedulerName == "" {
		spec.SchedulerName = policyv1alpha1.DefaultSchedulerName
	}
	spec.Failover = policy.Failover.DeepCopy()
	spec.ConflictResolution = policy.ConflictResolution
	if spec.ConflictResolution == "" {
		spec.ConflictResolution = policyv1alpha1.ConflictAbort
	}
	spec.Drift = policy.Drift
	spec.PreserveResourcesOnDeletion = nil
	if preserve := policy.PreserveResourcesOnDeletion; preserve != nil {
		spec.PreserveResourcesOnDeletion = ptr.To(*preserve)
	}
	spec.Suspension = mergeSuspension(policy.Suspension, spec.Suspension)
	spec.WorkloadAffinityGroups = affinityGroups(policy.Placement.WorkloadAffinity, t.Object.GetLabels())
	spec.SchedulePriority = nil
	if t.Priority != nil && policy.SchedulePriority != nil {
		spec.SchedulePriority = &workv1alpha2.SchedulePriority{Priority: *t.Priority}
	}
	return spec
}

// TakesAlong reports whether a policy propagates what its templates refer to. One that selects ServiceImports does so, whatever
// it says.
func TakesAlong(spec *policyv1alpha1.PropagationSpec) bool {
	return spec.PropagateDeps || slices.ContainsFunc(spec.ResourceSelectors, func(s policyv1alpha1.ResourceSelector) bool {
		return s.APIVersion == "multicluster.x-k8s.io/v1alpha1" && s.Kind == "ServiceImport"
	})
}

// affinityGroups returns the groups that a template belongs to by its labels; nil
// where it is in none.
func affinityGroups(affinity *policyv1alpha1.WorkloadAffinity, labels map[string]string) *workv1alpha2.WorkloadAffinityGroups {
	if affinity == nil {
		return nil
	}
	group := func(key string) string {
		value, has := labels[key]
		if !has {
			return ""
		}
		return key + "=" + value
	}
	var out workv1alpha2.WorkloadAffinityGroups
	if affinity.Affinity != nil {
		out.AffinityGroup = group(affinity.Affinity.GroupByLabelKey)
	}
	if affinity.AntiAffinity != nil {
		out.AntiAffinityGroup = group(affinity.AntiAffinity.GroupByLabelKey)
	}
	if out == (workv1alpha2.WorkloadAffinityGroups{}) {
		return nil
	}
	return &out
}

func reference(t Template, current workv1alpha2.ObjectReference) workv1alpha2.ObjectReference {
	obj := t.Object
	ref := workv1alpha2.ObjectReference{
		APIVersion:      obj.GetAPIVersion(),
		Kind:            obj.GetKind(),
		Namespace:       obj.GetNamespace(),
		Name:            obj.GetName(),
		UID:             obj.GetUID(),
		ResourceVersion: obj.GetResourceVersion(),
	}
	if t.Digest != "" && t.Digest == t.Seen && current.UID == ref.UID && current.APIVersion == ref.APIVersion {
		ref.ResourceVersion = current.ResourceVersion
	}
	return ref
}

// NoPriorityClass is the error of a policy whose PriorityClass does not exist.
func NoPriorityClass(p policyv1alpha1.Policy) error {
	return fmt.Errorf("%s names PriorityClass %s in spec.schedulePriority, which does not exist: create it",
		Title(p), p.PropagationSpec().SchedulePriority.PriorityClassName)
}

// SameDecision reports whether two states of one binding differ, if at all, only
// in the version of the template that they are for, and not in where it goes or
// how it is divided. Their Works then differ only by the template's content.
func SameDecision(a, b workv1alpha2.Binding) bool {
	same := b.DeepCopyObject().(workv1alpha2.Binding)
	same.BindingSpec().Resource.ResourceVersion = a.BindingSpec().Resource.ResourceVersion
	annotations := mapOf(same.GetAnnotations())
	for _, key := range []string{DigestAnnotation, EditionAnnotation} {
		if noted, has := a.GetAnnotations()[key]; has {
			annotations[key] = noted
		} else {
			delete(annotations, key)
		}
	}
	same.SetAnnotations(annotations)
	return equality.Semantic.DeepEqual(a, same)
}

func mapOf(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// mergeSuspension returns the suspension of a binding: dispatching from the
// policy, scheduling from the binding itself. Nil where nothing is suspended.
func mergeSuspension(policy *policyv1alpha1.Suspension, current *workv1alpha2.Suspension) *workv1alpha2.Suspension {
	var scheduling *bool
	if current != nil {
		scheduling = current.Scheduling
	}
	if policy == nil && scheduling == nil {
		return nil
	}
	out := &workv1alpha2.Suspension{Scheduling: scheduling}
	if policy != nil {
		out.Suspension = *policy.DeepCopy()
	}
	return out
}
