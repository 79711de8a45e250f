package drift

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/ownership"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/reconciler/execution/manifest"
	"github.com/flotilla-io/flotilla/reconciler/execution/ownermeta"
	"github.com/flotilla-io/flotilla/reconciler/execution/retention"
)

// Drift is what somebody did to one object in the member.
type Drift struct {
	// Text describes it.
	Text string
	// Reverted says that it was corrected.
	Reverted bool
}

// PutBack returns a drift that is corrected now.
func PutBack(text string, now time.Time) *Drift {
	return &Drift{Text: text + "; put back at " + now.UTC().Format(time.RFC3339), Reverted: true}
}

// Removed returns the text about an object that is gone.
func Removed(m *manifest.Manifest) string { return m.Title() + " was removed" }

// TakenOver returns the text about an object whose fields others changed or took over, where it is not known
// which fields.
func TakenOver(m *manifest.Manifest) string {
	return m.Title() + ": others have changed, or taken over, fields of what was applied last"
}

// Changed returns the text about changes by others.
func Changed(m *manifest.Manifest, changes []ownership.Change) string {
	return m.Title() + ": " + ownership.Describe(changes)
}

// Changes returns what others changed in an object. That its metadata has a former name of the Work
// is no change by others.
func Changes(owner ownermeta.Owner, desired, live *unstructured.Unstructured) []ownership.Change {
	if o := members.MetadataOf(live); o.Work != owner.Key() && owner.NamedBy(o) {
		live = live.DeepCopy()
		ownermeta.Set(live, owner.Key())
	}
	return ownership.Changes(desired, live)
}

// Member reads a member cluster.
type Member interface {
	ownermeta.Member
	retention.Member
	Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error)
}

// Retainer keeps in an object the fields that belong to the member.
type Retainer interface {
	Retain(ctx context.Context, edge retention.Member, desired, live *unstructured.Unstructured, record *workv1alpha1.AppliedHash) (*unstructured.Unstructured, error)
}

// Pauses limits how often events about a Work are emitted.
type Pauses interface {
	MayReport(work client.ObjectKey) bool
}

// Finding is an object that is not as it was applied.
type Finding struct {
	Work     *workv1alpha1.Work
	Manifest *manifest.Manifest
	// Record is what was last applied.
	Record workv1alpha1.AppliedHash
	// Observed is what the watch has of the object; nil for nothing.
	Observed *members.Observed
	Member   Member
}

// Inspector finds out about drift in one cluster, and reports it. Use New. It is safe for
// use by several goroutines.
type Inspector struct {
	cluster  string
	retainer Retainer
	pauses   Pauses
	events   loop.Recorder
	count    *Counter

	mu   sync.Mutex
	seen map[client.ObjectKey]map[int]finding // by ordinal
}

// finding is what differs in one state of an object.
type finding struct {
	state string
	text  string
}

// New returns an Inspector of a cluster that has seen nothing.
func New(cluster string, retainer Retainer, pauses Pauses, events loop.Recorder, count *Counter) *Inspector {
	return &Inspector{cluster: cluster, retainer: retainer, pauses: pauses, events: events, count: count, seen: map[client.ObjectKey]map[int]finding{}}
}

// Inspect returns what differs in an object whose drift is only reported; nil for
// nothing. It emits an event unless the Work's condition shows drift already. It reads the object from the member
// once for each state.
func (i *Inspector) Inspect(ctx context.Context, l *Finding) (*Drift, error) {
	key, state := client.ObjectKeyFromObject(l.Work), l.Manifest.Hash
	if l.Observed != nil {
		state += " " + string(l.Observed.UID) + " " + l.Observed.ResourceVersion
	}
	text, known := i.found(key, l.Manifest.Ordinal, state)
	if !known {
		var err error
		if text, err = i.compare(ctx, l); err != nil {
			return nil, err
		}
		if text != "" || l.Observed != nil { // an object that the watch has yet to show has no state to remember
			i.find(key, l.Manifest.Ordinal, finding{state: state, text: text})
		}
	}
	if text == "" {
		return nil, nil
	}
	d := &Drift{Text: text}
	if c := meta.FindStatusCondition(l.Work.Status.Conditions, workv1alpha1.WorkDrifted); !known && (c == nil || c.Status != metav1.ConditionTrue) {
		i.Report(l.Work, l.Manifest, d)
	}
	return d, nil
}

// compare returns a text about how the member's object differs; empty if it does not.
func (i *Inspector) compare(ctx context.Context, l *Finding) (string, error) {
	desired, err := l.Manifest.Object(l.Work)
	if err != nil {
		return "", err
	}
	owner := ownermeta.OwnerOf(l.Work, l.Member)
	live, err := l.Member.Get(ctx, l.Manifest.GVK, l.Manifest.Key)
	switch {
	case apierrors.IsNotFound(err):
		return Removed(l.Manifest), nil
	case err != nil:
		return "", err
	case !owner.MayTake(desired, live, l.Record.Desired != ""):
		return Removed(l.Manifest) + ", and another object has its name", nil
	}
	record := l.Record // a copy, as Retain updates the record of what is sent, and nothing is sent here
	desired, err = i.retainer.Retain(ctx, l.Member, desired, live, &record)
	if err != nil {
		return "", err
	}
	changes := Changes(owner, desired, live)
	if len(changes) == 0 {
		return "", nil
	}
	return Changed(l.Manifest, changes), nil
}

// mostEvent is how many bytes of a message fit into an event.
const mostEvent = 1024

// Report counts a drift, and emits an event on the Work and on its template,
// unless there was one a short while ago: two writers who disagree would cause one at each correction.
func (i *Inspector) Report(work *workv1alpha1.Work, m *manifest.Manifest, d *Drift) {
	action, reason := "reported", workv1alpha1.EventReasonDriftReported
	if d.Reverted {
		action, reason = "reverted", workv1alpha1.EventReasonDriftReverted
	}
	i.count.inc(i.cluster, m.GVK.Kind, action)
	if !i.pauses.MayReport(client.ObjectKeyFromObject(work)) {
		return
	}
	message := excerpt.Message("Cluster "+i.cluster+": "+d.Text, mostEvent)
	i.events.Event(work, corev1.EventTypeWarning, reason, message)
	if template := m.Template(work); template != nil {
		i.events.Event(template, corev1.EventTypeWarning, reason, message)
	}
}

// Forget drops what is kept of a Work that is gone.
func (i *Inspector) Forget(work client.ObjectKey) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.seen, work)
}

// found returns what was found to differ in this state of an object.
func (i *Inspector) found(work client.ObjectKey, ordinal int, state string) (text string, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f, ok := i.seen[work][ordinal]
	return f.text, ok && f.state == state
}

// find records what differs in a state of an object.
func (i *Inspector) find(work client.ObjectKey, ordinal int, f finding) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.seen[work] == nil {
		i.seen[work] = map[int]finding{}
	}
	i.seen[work][ordinal] = f
}
