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

// State of something that is rolled out. States are ordered: the highest of
// many is that of the whole.
type State int

const (
	// Healthy means that it is where it should be, as it should be.
	Healthy State = iota
	// Progressing means that it may yet become healthy by itself.
	Progressing
	// Unknown means that nothing is heard of its cluster.
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
	// Reason is empty for a healthy one; it does not repeat cluster or object.
	Reason string
	// Silence is why the state is not known; nil where it is. Reason says then what was
	// heard last.
	Silence *Silence
	// Suspended says that changes are kept from the cluster: it is healthy with what it has,
	// which may be an older version, or waits for what was never sent.
	Suspended bool
	// Strayed says that it is not healthy since others removed it or changed it in the
	// cluster, and that it is left so, as Reason says.
	Strayed bool
	// Note is what does not count against the cluster, and that somebody may
	// want to know all the same; empty for nothing.
	Note string
	// Replicas are those that it is to have there; zero for what has none.
	Replicas int32
	// Applied says that the cluster is known to hold the latest version, healthy or not, as its Work reports.
	Applied bool
	// Outdated says that the cluster is known not to hold the latest version, as its Work
	// reports: it holds the one before, or nothing.
	Outdated bool
}

// Texts of a cluster that does not hold a template yet.
const (
	notSent       = "not sent yet"
	notApplied    = "not applied yet"
	latestPending = "latest version "
	// HealthAwaited is the text of a cluster whose health is not reported yet.
	HealthAwaited = "health not known yet"
	// Suspended is the text of a cluster that it is kept from.
	Suspended = "never sent: dispatching is suspended"
)

// KeptBack says that the only thing to report of the cluster is that changes are kept from it.
func (c ClusterPart) KeptBack() bool {
	return c.Suspended && (c.State == Healthy || c.Reason == Suspended)
}

// Part is the state of one template.
type Part struct {
	// Object is "Deployment shop/web".
	Object string
	// State and Reason of the template on the hub, whatever its clusters say.
	State  State
	Reason string
	// Fault is what of it, or of its objects in clusters, is not understood, as its binding
	// says: a rule or a webhook fails. It does not count in State; empty for nothing.
	Fault string
	// Clusters that should hold it, sorted; none where State is not Healthy.
	Clusters []ClusterPart
	// Former are the clusters that hold it as it was placed last, sorted, where State is not
	// Healthy: what stands there stays so for now.
	Former []ClusterPart
	// Leaving are the clusters that hold it and are to hold it no more, sorted.
	Leaving []ClusterPart
	// Kept are the clusters in which it stays with its data although nobody asks for it there, sorted: it counts in
	// none.
	Kept []string
	// Unheeded says by which policy it is not taken up although that asks for it, and why; empty for none. It counts only if
	// it is Contested: another policy keeps it, and somebody has to say which one is meant.
	Unheeded  string
	Contested bool
	// Absent are the clusters that its placement wants and that are not in the fleet: none
	// where that is not asked for.
	Absent []propagation.Stranger
	// Unread says that the template has not been looked at yet: State is no news.
	Unread bool
}

// ObjectName returns how texts name obj: "Deployment shop/web".
func ObjectName(obj *unstructured.Unstructured) string {
	return nameOf(workv1alpha2.ObjectReference{Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()})
}

func nameOf(ref workv1alpha2.ObjectReference) string {
	return ref.Kind + " " + strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/")
}

// Worst sums up a template over all its clusters but those that do not count; reason is empty for a healthy
// one. That it fits nowhere is told after the clusters which it is meant for and that are not there.
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

// PartOf judges a template by its binding and, where they are given, by its
// Works, which show whether clusters hold the latest template and not just a
// healthy older one. A template that is nil is not known: then it is taken for the one that
// the binding stands for. b is nil for objects that no policy carries: they are
// healthy where they are. Pass a nil interface, not a nil pointer in one. The last reports
// of clusters that are silent do not count as current: silent names those clusters, and
// is nil where all answer or that is not known.
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
	v := newView(template, b, works)
	if part.State != Healthy {
		v.isFormer(template, b)
		part.Former = v.parts(b, silent)
		return part
	}
	part.Clusters = v.parts(b, silent)
	return part
}

// unheard is the state in a cluster of which nothing is heard: what it was is no more than
// what was reported last.
func (c ClusterPart) unheard(s Silence) ClusterPart {
	return ClusterPart{Name: c.Name, State: Unknown, Outdated: c.Outdated, Reason: s.String() + "; last heard: " + cmp.Or(c.Reason, "healthy"), Silence: &s}
}

// Released reports whether what a binding stands for runs on although no policy carries it,
// and nothing that needs it takes it along.
func Released(b workv1alpha2.Binding) bool {
	_, claimed := propagation.Claimed(b)
	return !claimed && len(b.BindingSpec().RequiredBy) == 0
}

// placed judges whether the binding stands for this template and has a
// placement.
func placed(template *unstructured.Unstructured, b workv1alpha2.Binding) (State, string) {
	c, ok := Scheduled(b)
	if !current(template, b) {
		switch {
		case Released(b):
			return Progressing, "no policy carries it any more: its latest version stays on the control plane"
		case ok && c.Reason == workv1alpha2.BindingReasonQuotaExceeded: // that keeps it from being taken up
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

// lacksCapacity reports whether b waits until clusters have room.
func lacksCapacity(b workv1alpha2.Binding) bool {
	record, decided := placement.RecordOf(b)
	return decided && record.LacksCapacity()
}

// Nowhere returns the template as the rules for statuses should see it where no
// cluster is to hold it. Such a template is observed as it is; but one for which no
// cluster is found, or of which the binding does not know yet, is one of the
// generation that was observed last: it waits.
func Nowhere(template *unstructured.Unstructured, b workv1alpha2.Binding) *unstructured.Unstructured {
	if state, _ := placed(template, b); state == Healthy {
		return template
	}
	observed, _, _ := unstructured.NestedInt64(template.Object, "status", "observedGeneration") // zero where it is no number
	out := template.DeepCopy()
	out.SetGeneration(observed)
	return out
}

// current reports whether b stands for the template as it is, or, where the policy
// is Lazy, as its user wrote it last. One that is nil is not known.
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

// counts returns " 2/5" where a status counts ready replicas.
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

// besides says what a workload waits for of which enough replicas are ready.
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

// verdict judges kinds of Kubernetes that have no health but an end.
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
