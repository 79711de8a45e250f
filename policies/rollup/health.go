package rollup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// State of something that is rolled out. States are ordered: of several, the highest is that of the whole.
type State int

const (
	// Healthy means that it is where it should be, and as it should be.
	Healthy State = iota
	// Progressing means that it may yet become healthy by itself.
	Progressing
	// Unknown means that the cluster is not heard of.
	Unknown
	// Failed means that somebody has to act.
	Failed
)

// String returns the state's name.
func (s State) String() string { return [...]string{"Healthy", "Progressing", "Unknown", "Failed"}[s] }

// ClusterPart is the state of one template in one cluster.
type ClusterPart struct {
	Name  string
	State State
	// Reason is why it is not healthy; empty where it is. It does not repeat the
	// names of the cluster and the object.
	Reason string
	// Silence is why the state is not known; nil where it is. Reason then has what was reported last.
	Silence *Silence
	// Suspended means that changes are kept from the cluster: it may be healthy in
	// an older version, or wait for what was never sent.
	Suspended bool
	// Strayed means that it is not healthy because somebody changed or removed it
	// in the cluster and drift is not reverted; Reason has the details.
	Strayed bool
	// Note is something that does not count against the cluster and that somebody
	// may want to know; empty for nothing.
	Note string
	// Replicas that the cluster should run; zero for kinds that have none.
	Replicas int32
	// Applied means that, according to its Work, the cluster has the latest version, whether it is healthy or not.
	Applied bool
	// Outdated means that, according to its Work, the cluster does not have the
	// latest version, but an older one or none.
	Outdated bool
}

// Reasons for a cluster that does not have the latest version yet.
const (
	notSent       = "not sent yet"
	notApplied    = "not applied yet"
	latestPending = "latest version "
	// HealthAwaited is the reason for a cluster whose health is not reported yet.
	HealthAwaited = "health not known yet"
	// Suspended is the reason for a cluster to which nothing was sent, as dispatching is suspended.
	Suspended = "never sent: dispatching is suspended"
)

// KeptBack reports whether the only thing to report is that changes are kept from the cluster.
func (c ClusterPart) KeptBack() bool {
	return c.Suspended && (c.State == Healthy || c.Reason == Suspended)
}

// Part is the state of one template.
type Part struct {
	// Object names the template, as in "Deployment shop/web".
	Object string
	// State and Reason are those of the template on the hub, whatever its clusters report.
	State  State
	Reason string
	// Fault is why a rule or webhook of the interpreter fails for it, or for its
	// objects in clusters. It does not count in State; empty for no fault.
	Fault string
	// Clusters that should have it, sorted; none where State is not Healthy.
	Clusters []ClusterPart
	// Former are, where State is not Healthy, the clusters that it was placed in
	// before, sorted: what they have stays for now.
	Former []ClusterPart
	// Leaving are the clusters that still have it and should not, sorted.
	Leaving []ClusterPart
	// Kept are the clusters in which it stays with its data although it is no
	// longer wanted there, sorted. It does not count there.
	Kept []string
	// Unheeded is which policy asks for it without being followed, and why; empty for none. It counts only if it is
	// Contested: another policy keeps the template, and somebody has to decide which one is meant.
	Unheeded  string
	Contested bool
	// Moved says off which clusters that are not heard of it was moved, and where to; empty for none.
	Moved string
	// Absent are the clusters that its placement names and that do not exist;
	// empty also where they were not looked up.
	Absent []propagation.Stranger
	// Unread means that the template has not been judged yet, so that State means nothing.
	Unread bool
}

// ObjectName returns the name of obj for texts, as in "Deployment shop/web".
func ObjectName(obj *unstructured.Unstructured) string {
	return nameOf(workv1alpha2.ObjectReference{Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()})
}

func nameOf(ref workv1alpha2.ObjectReference) string {
	return ref.Kind + " " + strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/")
}

// Worst returns the worst state of a template on the hub and in its clusters but those in uncounted, with its
// reason; the reason is empty for a healthy one. Where it has no placement, clusters that do not exist are named
// first, as they may be why.
func (p Part) Worst(uncounted []string) (State, string) {
	state, reason := p.State, p.Reason
	if state != Healthy && len(p.Absent) > 0 {
		reason = propagation.Naming(p.Absent) + "; " + reason
	}
	for _, c := range p.Clusters {
		if c.State > state && !slices.Contains(uncounted, c.Name) {
			state, reason = c.State, c.Name+": "+c.Reason
		}
	}
	return state, reason
}

// PartOf judges a template by its binding and, where they are given, by its Works, which show whether clusters have
// the latest template and not just a healthy older one. A nil template is not known: it is taken for the one that
// the binding is for. A nil binding means that no policy carries the object: it is healthy where it is. Pass a nil
// interface, not a nil pointer in one. silent are the clusters that are not heard of, whose last reports do not
// count as current; nil where all answer or that is not known.
func PartOf(template *unstructured.Unstructured, b workv1alpha2.Binding, works []*workv1alpha1.Work, silent Silences) Part {
	return masked(partOf(template, b, works, silent), template)
}

func partOf(template *unstructured.Unstructured, b workv1alpha2.Binding, works []*workv1alpha1.Work, silent Silences) Part {
	part := Part{}
	switch {
	case template != nil:
		part.Object = ObjectName(template)
	case b != nil:
		part.Object = nameOf(b.BindingSpec().Resource)
	}
	if b == nil {
		return part
	}
	if c := meta.FindStatusCondition(b.BindingStatus().Conditions, workv1alpha2.Interpreted); c != nil && c.Status == metav1.ConditionFalse {
		part.Fault = c.Message
	}
	part.State, part.Reason = placed(template, b)
	part.Moved = relocated(b, silent)
	v := newView(template, b, works)
	if part.State != Healthy {
		v.isFormer(template, b)
		part.Former = v.parts(b, silent)
		return part
	}
	part.Clusters = v.parts(b, silent)
	return part
}

// unheard returns the state for a cluster that is not heard of: its last report is only quoted.
func (c ClusterPart) unheard(s Silence) ClusterPart {
	return ClusterPart{Name: c.Name, State: Unknown, Outdated: c.Outdated, Reason: s.String() + "; last heard: " + cmp.Or(c.Reason, "healthy"), Silence: &s}
}

// Released reports whether the objects of a binding run on although no policy
// carries its template, and no dependent needs it.
func Released(b workv1alpha2.Binding) bool {
	_, claimed := propagation.Claimed(b)
	return !claimed && len(b.BindingSpec().RequiredBy) == 0
}

// placed judges whether the binding stands for this template and has a
// placement.
func placed(template *unstructured.Unstructured, b workv1alpha2.Binding) (State, string) {
	c, ok := scheduled(b)
	if !current(template, b) {
		switch {
		case Released(b):
			return Progressing, "no policy carries it any more: its latest version stays on the control plane"
		case ok && c.Reason == workv1alpha2.BindingReasonQuotaExceeded: // the quota keeps the edit from being placed
			return Progressing, c.Message
		}
		return Progressing, propagation.Awaits(template)
	}
	if !ok {
		stored := meta.FindStatusCondition(b.BindingStatus().Conditions, workv1alpha2.Scheduled)
		if stored == nil {
			if len(plan.Targets(plan.SpecOf(b))) > 0 {
				return Healthy, ""
			}
			return Progressing, "waits to be placed"
		}
		c = *stored
	}
	switch {
	case c.Status == metav1.ConditionTrue:
		return Healthy, ""
	case c.Reason == workv1alpha2.BindingReasonUnschedulable || c.Reason == workv1alpha2.BindingReasonQuotaExceeded || lacksCapacity(b):
		return Progressing, c.Message
	default:
		return Failed, c.Message
	}
}

// lacksCapacity reports whether b waits until clusters have capacity.
func lacksCapacity(b workv1alpha2.Binding) bool {
	record, decided := placement.RecordOf(b)
	return decided && record.LacksCapacity()
}

// Nowhere returns the template for the rules that aggregate statuses, where it is in no cluster. A template that
// should be in none counts as observed. One for which no cluster is found, or whose edit the binding does not have
// yet, still waits: it gets the generation that was observed last, so that the new one does not count as observed.
func Nowhere(template *unstructured.Unstructured, b workv1alpha2.Binding) *unstructured.Unstructured {
	if state, _ := placed(template, b); state == Healthy {
		return template
	}
	// Zero where there is no number.
	observed, _, _ := unstructured.NestedInt64(template.Object, "status", "observedGeneration")
	out := template.DeepCopy()
	out.SetGeneration(observed)
	return out
}

// current reports whether b is for the template as it is or, where its policy is
// Lazy, as its user last wrote it. It is for a nil template, which is not known.
func current(template *unstructured.Unstructured, b workv1alpha2.Binding) bool {
	seen := b.GetAnnotations()[propagation.DigestAnnotation]
	if seen == "" || template == nil {
		return true
	}
	if digest, err := propagation.Digest(template); err != nil || digest == seen {
		return true
	}
	edition, err := propagation.Edition(template)
	return err == nil && edition == b.GetAnnotations()[propagation.EditionAnnotation]
}

func decode(item *workv1alpha2.AggregatedStatusItem) map[string]any {
	var status map[string]any
	if item.Status == nil || utiljson.Unmarshal(item.Status.Raw, &status) != nil {
		return nil
	}
	return status
}

// counts returns how many replicas are ready, as in " 2/5", or what is missing if
// enough are; empty where the status has no counts.
func counts(status map[string]any, want int32) string {
	if want == 0 {
		return ""
	}
	if _, ok := status["replicas"].(int64); !ok {
		return ""
	}
	ready, _ := status["readyReplicas"].(int64) // absent while it is zero
	if ready < int64(want) {
		return fmt.Sprintf(" %d/%d", ready, want)
	}
	return fmt.Sprintf(": %d/%d ready, %s", ready, want, besides(status, int64(want)))
}

// besides returns what a workload waits for although enough of its replicas are ready.
func besides(status map[string]any, want int64) string {
	all, _ := status["replicas"].(int64)
	updated, counted := status["updatedReplicas"].(int64)
	available, _ := status["availableReplicas"].(int64)
	switch {
	case counted && updated < want:
		return fmt.Sprintf("%d/%d of the latest version", updated, want)
	case all > want:
		return fmt.Sprintf("%d more to end", all-want)
	case available < want:
		return fmt.Sprintf("%d/%d available", available, want)
	default:
		return "the latest change not seen yet"
	}
}

// replaced counts the replicas of a Deployment that an update has yet to
// replace. As long as they serve, the Deployment counts as healthy (Karmada's
// rule), but what they serve is not what was rolled out.
func replaced(kind schema.GroupKind, status map[string]any) int64 {
	if kind != (schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}) {
		return 0
	}
	all, _ := status["replicas"].(int64)
	updated, _ := status["updatedReplicas"].(int64)
	return all - updated
}

// verdict judges Kubernetes' kinds that come to an end and have no rule for health; known is false for other kinds.
func verdict(kind schema.GroupKind, status map[string]any) (state State, reason string, known bool) {
	switch kind {
	case schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}:
		switch {
		case conditionTrue(status, "Failed"):
			return Failed, "job failed", true
		case !conditionTrue(status, "Complete"):
			return Progressing, "job is running", true
		}
		return Healthy, "", true
	case schema.GroupKind{Group: corev1.GroupName, Kind: "Pod"}:
		if status["phase"] == "Failed" {
			return Failed, "pod failed", true
		}
	}
	return Healthy, "", false
}

func conditionTrue(status map[string]any, kind string) bool {
	conditions, _ := status["conditions"].([]any)
	return slices.ContainsFunc(conditions, func(entry any) bool {
		c, ok := entry.(map[string]any)
		return ok && c["type"] == kind && c["status"] == "True"
	})
}
