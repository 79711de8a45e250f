package execution

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/ownership"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/reconciler/execution/backoff"
	"github.com/flotilla-io/flotilla/reconciler/execution/ownermeta"
	"github.com/flotilla-io/flotilla/reconciler/execution/retention"
)

// drift is what somebody did to one object in the member.
type drift struct {
	text     string
	reverted bool // it was put back
}

// inspector finds out about drift in one cluster, and tells of it.
type inspector struct {
	cluster   string
	retention retention.Retention
	applied   *applyCache
	backoff   *backoff.Backoff
	recorder  loop.Recorder
	count     *prometheus.CounterVec // by cluster, kind and what was done
}

// inspect finds out what differs in an object that is only to be reported on,
// and reports whether anything does. The member is asked once for each state of the
// object.
func (i *inspector) inspect(ctx context.Context, s *state, m *manifest, observed *members.Observed) (bool, error) {
	state := m.hash
	if observed != nil {
		state += " " + string(observed.UID) + " " + observed.ResourceVersion
	}
	text, known := i.applied.found(s.key, m.ordinal, state)
	if !known {
		var err error
		if text, err = i.compare(ctx, s, m); err != nil {
			return false, err
		}
		if text != "" || observed != nil { // what the watch has yet to show has no state of its own
			i.applied.find(s.key, m.ordinal, finding{state: state, text: text})
		}
	}
	if text == "" {
		return false, nil
	}
	s.drifts[m.ordinal] = &drift{text: text}
	if c := meta.FindStatusCondition(s.work.Status.Conditions, workv1alpha1.WorkDrifted); !known && (c == nil || c.Status != metav1.ConditionTrue) {
		i.tell(s, m, s.drifts[m.ordinal])
	}
	return true, nil
}

// compare says in words how the member's object differs; empty where it does not.
func (i *inspector) compare(ctx context.Context, s *state, m *manifest) (string, error) {
	desired, err := m.object(s.work)
	if err != nil {
		return "", err
	}
	live, err := s.member.Get(ctx, m.gvk, m.key)
	switch {
	case apierrors.IsNotFound(err):
		return m.removed(), nil
	case err != nil:
		return "", err
	case !mayTake(s, m, desired, live):
		return m.removed() + ", and another object has its name", nil
	}
	record := s.applied[m.ordinal] // stays as it is: nothing is sent
	desired, err = s.retain(ctx, i.retention, desired, live, &record)
	if err != nil {
		return "", err
	}
	changes := s.changes(desired, live)
	if len(changes) == 0 {
		return "", nil
	}
	return m.title() + ": " + ownership.Describe(changes), nil
}

// changes are what others made of an object. That it names the Work as that was called
// formerly is none of their doing.
func (s *state) changes(desired, live *unstructured.Unstructured) []ownership.Change {
	if o := members.Marks(live); o.Work != s.key && s.named(o) {
		live = live.DeepCopy()
		ownermeta.Set(live, s.key)
	}
	return ownership.Changes(desired, live)
}

func (m *manifest) removed() string { return m.title() + " was removed" }

// putBack returns a drift that is put back now.
func putBack(text string, now time.Time) *drift {
	return &drift{text: text + "; put back at " + now.UTC().Format(time.RFC3339), reverted: true}
}

// tell counts a drift, and emits an Event on the Work and on its template
// unless there was one a short while ago: two who disagree are no news each time.
func (i *inspector) tell(s *state, m *manifest, d *drift) {
	action, reason := "reported", workv1alpha1.EventReasonDriftReported
	if d.reverted {
		action, reason = "reverted", workv1alpha1.EventReasonDriftReverted
	}
	i.count.WithLabelValues(i.cluster, m.gvk.Kind, action).Inc()
	if !i.backoff.MayReport(s.key) {
		return
	}
	message := excerpt.Bytes("Cluster "+i.cluster+": "+d.text, mostEvent)
	i.recorder.Event(s.work, corev1.EventTypeWarning, reason, message)
	if template := m.template(s.work); template != nil {
		i.recorder.Event(template, corev1.EventTypeWarning, reason, message)
	}
}

// mostEvent is how many bytes of a message fit into an Event.
const mostEvent = 1024

// template returns what an Event needs to know of the manifest's template; nil
// if the manifest does not say.
func (m *manifest) template(work *workv1alpha1.Work) *metav1.PartialObjectMetadata {
	obj, err := m.object(work)
	uid := ""
	if err == nil {
		uid = obj.GetAnnotations()[workv1alpha2.ResourceTemplateUIDAnnotation]
	}
	if uid == "" {
		return nil
	}
	out := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: m.key.Namespace, Name: m.key.Name, UID: types.UID(uid)}}
	out.SetGroupVersionKind(m.gvk)
	return out
}

// driftCounter returns the count of drifts of all loops of this process.
func driftCounter() *prometheus.CounterVec {
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "flotilla_drift_total",
		Help: "Changes of others in members to what was applied there, by what was done about them: reverted or reported",
	}, []string{"cluster", "kind", "action"})
	var taken prometheus.AlreadyRegisteredError
	if err := metrics.Registry.Register(counter); errors.As(err, &taken) {
		if existing, ok := taken.ExistingCollector.(*prometheus.CounterVec); ok {
			return existing
		}
	}
	return counter
}
