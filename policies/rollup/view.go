package rollup

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/staleremoval"
)

// view is what a binding and its Works show about a template's clusters.
type view struct {
	generation int64
	digest     string
	kind       schema.GroupKind
	items      map[string]*workv1alpha2.AggregatedStatusItem
	// truncated means that statuses were left out of items.
	truncated bool
	// works are by cluster; nil where the Works are not known.
	works map[string]*workv1alpha1.Work
	// former means that clusters are judged by what they have, which is not what is wanted now.
	former bool
}

func newView(template *unstructured.Unstructured, b workv1alpha2.Binding, works []*workv1alpha1.Work) *view {
	ref := b.BindingSpec().Resource
	v := &view{
		digest:    b.GetAnnotations()[propagation.DigestAnnotation],
		kind:      schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(),
		items:     map[string]*workv1alpha2.AggregatedStatusItem{},
		truncated: meta.IsStatusConditionTrue(b.BindingStatus().Conditions, workv1alpha2.StatusTruncated),
	}
	if template != nil {
		v.generation, v.kind = template.GetGeneration(), template.GroupVersionKind().GroupKind()
	}
	if v.digest == "" && template != nil { // the binding is for any version of the template
		v.digest, _ = propagation.Digest(template)
	}
	items := b.BindingStatus().AggregatedStatus
	if works != nil {
		items, v.truncated = ItemsOf(b, works, nil), false
		v.works = map[string]*workv1alpha1.Work{}
		for _, w := range works {
			if cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace); ok {
				v.works[cluster] = w
			}
		}
	}
	for i := range items {
		v.items[items[i].ClusterName] = &items[i]
	}
	return v
}

// isFormer makes the view judge what clusters have of a template that is not placed as wanted: only what has the
// digest of the present template counts as its latest version.
func (v *view) isFormer(template *unstructured.Unstructured, b workv1alpha2.Binding) {
	v.former, v.generation = true, 0
	if current(template, b) {
		return
	}
	if digest, err := propagation.Digest(template); err == nil {
		v.digest = digest
	}
}

// parts returns the states of the template in its clusters, sorted by name.
func (v *view) parts(b workv1alpha2.Binding, silent Silences) []ClusterPart {
	var out []ClusterPart
	for _, target := range plan.Targets(plan.SpecOf(b)) {
		state, reason := v.judge(target)
		c := ClusterPart{Name: target.Name, State: state, Reason: reason, Note: v.note(target), Replicas: target.Replicas, Suspended: plan.Suspended(b.BindingSpec(), target.Name)}
		c.Outdated, c.Applied = v.works != nil && !v.upToDate(v.works[target.Name]), v.holds(target.Name)
		if c.Strayed = strings.HasPrefix(reason, Strayed); c.Strayed {
			c.Note = "" // it would repeat the reason
		}
		if c.Suspended && (reason == notSent || reason == notApplied) {
			c.Reason = Suspended
		}
		if s, ok := silent[target.Name]; ok {
			c = c.unheard(s)
		}
		out = append(out, c)
	}
	return out
}

// judge returns the state of the template in one cluster.
func (v *view) judge(target workv1alpha2.TargetCluster) (State, string) {
	item, ok := v.items[target.Name]
	if !ok {
		return Progressing, cmp.Or(staleremoval.Recall(v.works[target.Name]), notSent)
	}
	if w := v.works[target.Name]; w != nil && w.Annotations[propagation.FaultAnnotation] != "" {
		return Failed, w.Annotations[propagation.FaultAnnotation]
	}
	if v.works != nil && v.works[target.Name] == nil && item.AppliedMessage != "" {
		return Failed, item.AppliedMessage // why there is no Work
	}
	fault := v.fault(target)
	if v.works != nil && !v.former && !v.upToDate(v.works[target.Name]) {
		return Progressing, latestPending + v.pending(v.works[target.Name], fault)
	}
	if !item.Applied {
		switch item.AppliedMessage {
		case "":
			return Progressing, notApplied
		case Overdue:
			return Progressing, Overdue
		}
		return refused(item.AppliedMessage), item.AppliedMessage
	}
	if fault != "" {
		return Progressing, "health not known: " + fault
	}
	if text := strayed(item); text != "" && item.Status == nil {
		return Progressing, Strayed + text
	}
	if item.Status == nil && v.truncated {
		return byHealth(item, "")
	}
	status := decode(item)
	if g := templateGeneration(status); g > 0 && g < v.generation {
		return Progressing, NotSeen + counts(status, target.Replicas)
	}
	pods := v.pods(target.Name)
	if state, reason, known := verdict(v.kind, status); known {
		if state != Healthy {
			reason += pods
		}
		return state, reason
	}
	if old := replaced(v.kind, status); old > 0 && item.Health == workv1alpha2.ResourceHealthy {
		switch {
		case pods != "":
			return Progressing, "not ready" + pods + "; the version before still runs"
		case old == 1:
			return Progressing, "still runs 1 replica of the version before"
		}
		return Progressing, fmt.Sprintf("still runs %d replicas of the version before", old)
	}
	state, reason := byHealth(item, counts(status, target.Replicas))
	if item.Health == workv1alpha2.ResourceUnhealthy {
		reason += cmp.Or(pods, cause(status))
	} else if state == Progressing {
		reason = cmp.Or(unserved(v.kind, status), reason)
	}
	return state, reason
}

// NotSeen is the reason for a cluster whose report is about an earlier version than the latest.
const NotSeen = "latest version not seen yet"

// SeenIn returns, by cluster, the generation of the template that its report is
// about. Clusters whose reports have none are missing.
func SeenIn(b workv1alpha2.Binding) map[string]int64 {
	var out map[string]int64
	for i := range b.BindingStatus().AggregatedStatus {
		item := &b.BindingStatus().AggregatedStatus[i]
		g := templateGeneration(decode(item))
		if g == 0 {
			continue
		}
		if out == nil {
			out = map[string]int64{}
		}
		out[item.ClusterName] = g
	}
	return out
}

func templateGeneration(status map[string]any) int64 {
	g, _ := status["resourceTemplateGeneration"].(int64)
	return g
}

func byHealth(item *workv1alpha2.AggregatedStatusItem, counts string) (State, string) {
	switch item.Health {
	case workv1alpha2.ResourceHealthy:
		if waits(item.Status) {
			return Progressing, "queued, starting or held" + counts
		}
		return Healthy, ""
	case workv1alpha2.ResourceUnhealthy:
		return Progressing, "not ready" + counts
	default:
		return Progressing, HealthAwaited
	}
}

// fault returns why the interpreter fails for the object in a cluster; empty where it does not, or that is not
// known. It does not count as a failure of the template, as a webhook recovers and a script is corrected.
func (v *view) fault(target workv1alpha2.TargetCluster) string {
	return v.conditionMessage(target, workv1alpha1.WorkInterpreted, metav1.ConditionFalse)
}

// note returns a cluster's drift that is reported only. It does not count against
// the cluster: what was sent was applied, and what others changed is theirs.
func (v *view) note(target workv1alpha2.TargetCluster) string {
	return v.conditionMessage(target, workv1alpha1.WorkDrifted, metav1.ConditionTrue)
}

// conditionMessage returns the message of a condition of the cluster's Work, or
// the reason where it has none; empty unless the condition has the given status.
func (v *view) conditionMessage(target workv1alpha2.TargetCluster, kind string, status metav1.ConditionStatus) string {
	w := v.works[target.Name]
	if w == nil {
		return ""
	}
	c := meta.FindStatusCondition(w.Status.Conditions, kind)
	if c == nil || c.Status != status {
		return ""
	}
	if c.Message == "" {
		return c.Reason
	}
	return excerpt.Message(c.Message, mostFault)
}

// pending returns how far the latest version has got on its way to a cluster that does not have it.
func (v *view) pending(w *workv1alpha1.Work, fault string) string {
	switch {
	case w != nil && ptr.Deref(w.Spec.SuspendDispatching, false):
		return "not sent: dispatching is suspended"
	case fault != "":
		return "not sent: " + fault
	case v.sent(w):
		return notApplied
	default:
		return notSent
	}
}

// holds reports whether a cluster is known to have applied the latest template.
func (v *view) holds(cluster string) bool {
	w, item := v.works[cluster], v.items[cluster]
	return w != nil && item != nil && item.Applied && v.upToDate(w)
}

// sent reports whether a Work has the latest template. Works without a digest,
// which other programs write, are taken to have it.
func (v *view) sent(w *workv1alpha1.Work) bool {
	if w == nil {
		return false
	}
	seen := w.Annotations[propagation.DigestAnnotation]
	return seen == "" || v.digest == "" || seen == v.digest
}

// upToDate reports whether a Work has the latest template, and the cluster has reported about it since.
func (v *view) upToDate(w *workv1alpha1.Work) bool {
	if !v.sent(w) {
		return false
	}
	applied := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkApplied)
	return applied == nil || applied.ObservedGeneration == 0 || applied.ObservedGeneration >= w.Generation
}
