package alerting

import (
	"cmp"
	"maps"
	"sync"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/alerting"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// Recorder returns what other loops emit their Events by: it passes each on, and has a look at it.
func (r *Reconciler) Recorder() loop.Recorder { return recorder{r.events, r} }

type recorder struct {
	loop.Recorder
	to *Reconciler
}

// Event implements loop.Recorder.
func (t recorder) Event(obj runtime.Object, eventType, reason, message string) {
	t.Recorder.Event(obj, eventType, reason, message)
	of, namespace, served := subject(obj)
	if !served || !t.to.intake.early() && !t.to.book.asks(namespace) {
		return
	}
	e := of()
	e.Reason, e.Message, e.Severity = reason, excerpt.Bytes(message, mostMessage), alerting.Info
	if eventType == corev1.EventTypeWarning {
		e.Severity = alerting.Error
	}
	e.Timestamp, e.ReportingController = metav1.NewTime(t.to.opts.Clock.Now()), "flotilla"
	t.to.take(e)
}

// mostMessage bounds the text of an Event, in bytes.
const mostMessage = 4 << 10

// revisionOfOCI is the annotation of an artifact that says what it was made from.
const revisionOfOCI = "org.opencontainers.image.revision"

// subject returns what makes an Event of an object of the kinds that Alerts may name.
func subject(obj runtime.Object) (of func() alerting.Event, namespace string, served bool) {
	switch o := obj.(type) {
	case *kustomizev1.Kustomization:
		return func() alerting.Event {
			revision, origin := cmp.Or(o.Status.LastAttemptedRevision, o.Status.LastAppliedRevision), ""
			if from := origins.Committed(o, nil, revision); from != revision {
				origin = from
			}
			return eventOf(o, kustomizev1.GroupVersion.String(), kustomizev1.KustomizationKind, revision, origin)
		}, o.Namespace, true
	case *sourcev1.GitRepository:
		return func() alerting.Event {
			revision, origin := ofArtifact(o.Status.Artifact)
			return eventOf(o, sourcev1.GroupVersion.String(), sourcev1.GitRepositoryKind, revision, origin)
		}, o.Namespace, true
	case *sourcev1.OCIRepository:
		return func() alerting.Event {
			revision, origin := ofArtifact(o.Status.Artifact)
			return eventOf(o, sourcev1.GroupVersion.String(), sourcev1.OCIRepositoryKind, revision, origin)
		}, o.Namespace, true
	case *sourcev1.Bucket:
		return func() alerting.Event {
			revision, origin := ofArtifact(o.Status.Artifact)
			return eventOf(o, sourcev1.GroupVersion.String(), sourcev1.BucketKind, revision, origin)
		}, o.Namespace, true
	case *sourcev1.ExternalArtifact:
		return func() alerting.Event {
			revision, origin := ofArtifact(o.Status.Artifact)
			return eventOf(o, sourcev1.GroupVersion.String(), sourcev1.ExternalArtifactKind, revision, origin)
		}, o.Namespace, true
	default:
		return nil, "", false
	}
}

func ofArtifact(a *meta.Artifact) (revision, origin string) {
	if a == nil {
		return "", ""
	}
	return a.Revision, a.Metadata[revisionOfOCI]
}

func eventOf(o client.Object, apiVersion, kind, revision, origin string) alerting.Event {
	metadata := map[string]string{}
	for key, value := range map[string]string{alerting.KeyRevision: revision, alerting.KeyOriginRevision: origin} {
		if value != "" {
			metadata[key] = value
		}
	}
	return alerting.Event{
		InvolvedObject: corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion()},
		Metadata:       metadata, Labels: maps.Clone(o.GetLabels()), Annotated: alerting.Annotated(o.GetAnnotations()),
	}
}

// intake keeps the Events of the first moments, in which not all Alerts are known, and knows those of the last minutes. The
// zero value is at its beginning.
type intake struct {
	mu      sync.Mutex
	open    bool
	first   []alerting.Event
	recents map[string]*alerting.Recent // by namespace
	swept   time.Time
}

const (
	// startTime is how long a start takes until all Alerts are known.
	startTime = 3 * time.Second
	// mostFirst is how many Events are kept until then.
	mostFirst = 1000
	// sweepEvery is how often what is known of namespaces is looked through.
	sweepEvery = 10 * time.Minute
)

// early reports whether not all Alerts may be known yet.
func (i *intake) early() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return !i.open
}

// keeps takes an Event that comes too early; false: it is not.
func (i *intake) keeps(e alerting.Event) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.open && len(i.first) < mostFirst {
		i.first = append(i.first, e)
	}
	return !i.open
}

// begin ends the first moments, and returns the Events of those.
func (i *intake) begin() []alerting.Event {
	i.mu.Lock()
	defer i.mu.Unlock()
	first := i.first
	i.open, i.first = true, nil
	return first
}

// isNew reports whether an Event is none like one of the last minutes.
func (i *intake) isNew(e alerting.Event, now time.Time) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if now.Sub(i.swept) >= sweepEvery {
		maps.DeleteFunc(i.recents, func(_ string, recent *alerting.Recent) bool { return recent.Idle(now) })
		i.swept = now
	}
	if i.recents == nil {
		i.recents = map[string]*alerting.Recent{}
	}
	recent := i.recents[e.InvolvedObject.Namespace]
	if recent == nil {
		recent = &alerting.Recent{}
		i.recents[e.InvolvedObject.Namespace] = recent
	}
	return recent.IsNew(e, now)
}

// take queues an Event for the Alerts that ask for it.
func (r *Reconciler) take(e alerting.Event) {
	if r.intake.keeps(e) {
		return
	}
	keys := r.book.selecting(e)
	if len(keys) == 0 || !r.intake.isNew(e, r.opts.Clock.Now()) {
		return
	}
	for _, key := range keys {
		r.outbox.add(key, e)
	}
}
