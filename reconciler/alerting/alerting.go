package alerting

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/alerting"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/message"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/hint"
	"github.com/flotilla-io/flotilla/reconciler/secrets/inherited"
	"github.com/flotilla-io/flotilla/sources/githubapp"
	"github.com/flotilla-io/flotilla/sources/messenger"
)

// Options tune the loop. The zero value of a field stands for its default.
type Options struct {
	// CrossNamespace lets an Alert name sources of other namespaces.
	CrossNamespace bool
	// Secrets knows what must not be shown of an Alert or a Provider.
	Secrets *inherited.Known
	// Egress connects to receivers. Its zero value reaches public addresses only.
	Egress egress.Dialer
	// Send sends a message once; nil means over HTTP, by Egress.
	Send func(ctx context.Context, to messenger.Target, r message.Request) error
	// FirstPause and LastPause bound how long a queue waits after a fault that may pass; default 5 s and 2 min.
	FirstPause, LastPause time.Duration
	// Timeout is how long a message is tried; default 15 min.
	Timeout time.Duration
	// Metrics is where messages are counted; nil counts for nobody.
	Metrics prometheus.Registerer
	// Clock is the real one if nil.
	Clock clock.Clock
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Send == nil {
		o.Send = messenger.New(o.Egress, githubapp.NewTokens(o.Clock)).Send
	}
	if o.FirstPause <= 0 {
		o.FirstPause = 5 * time.Second
	}
	if o.LastPause <= 0 {
		o.LastPause = 2 * time.Minute
	}
	if o.Timeout <= 0 {
		o.Timeout = 15 * time.Minute
	}
	return o
}

// Reasons of Events of an Alert, besides ProviderNotReady.
const (
	// ReasonAlertNotReady goes with what has no effect in the Alert.
	ReasonAlertNotReady = "AlertNotReady"
	// ReasonMessageNotSent goes with messages that do not arrive, until alerting.ReasonMessageSent.
	ReasonMessageNotSent = alerting.ReasonMessageNotSent
)

// Reconciler knows what Alerts ask for, and sends messages. Use New.
type Reconciler struct {
	hub        client.Reader
	events     loop.Recorder
	opts       Options
	targets    targets
	book       *book
	outbox     *outbox
	turns      turns
	complaints complaints
	intake     intake
}

// New returns the loop. Live reads Secrets without a cache; events takes the Events of Alerts.
func New(hub, live client.Reader, events loop.Recorder, opts Options) *Reconciler {
	opts = opts.withDefaults()
	return &Reconciler{hub: hub, targets: targets{live}, events: events, opts: opts, book: newBook(), outbox: newOutbox(opts.Metrics)}
}

// workers is how many Alerts are read at the same time.
const workers = 2

// Register adds the loop to a manager.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	byGeneration := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	err := ctrl.NewControllerManagedBy(mgr).
		Named("alerting").
		For(&notificationv1beta3.Alert{}, byGeneration).
		Watches(&notificationv1beta3.Provider{}, handler.EnqueueRequestsFromMapFunc(r.alertsOf), byGeneration).
		WithOptions(controller.Options{MaxConcurrentReconciles: fairqueue.Workers(workers), NewQueue: fairqueue.ByNamespace(fairqueue.Workers(workers))}).
		Complete(r)
	if err != nil {
		return err
	}
	return mgr.Add(r)
}

// alertsOf returns the Alerts of a Provider.
func (r *Reconciler) alertsOf(ctx context.Context, provider client.Object) []reconcile.Request {
	var list notificationv1beta3.AlertList
	if err := r.hub.List(ctx, &list, client.InNamespace(provider.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "find the Alerts of a Provider")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if list.Items[i].Spec.ProviderRef.Name == provider.GetName() {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// state is what the phases find out about one Alert.
type state struct {
	key   client.ObjectKey
	alert *notificationv1beta3.Alert
	// purpose is that of its Provider, and silent says that nothing is sent there.
	purpose alerting.Purpose
	silent  bool
	reason  string // of the faults
	faults  []string
}

// Reconcile takes up what an Alert asks for.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return loop.Result(loop.Run(ctx, &state{key: req.NamespacedName}, r.read, r.provider, r.keep, r.report))
}

// read reads the Alert, and forgets one that is gone.
func (r *Reconciler) read(ctx context.Context, s *state) (loop.Next, error) {
	s.alert = &notificationv1beta3.Alert{}
	err := r.hub.Get(ctx, s.key, s.alert)
	if client.IgnoreNotFound(err) != nil {
		return loop.Next{}, fmt.Errorf("read the Alert: %w", err)
	}
	if err != nil || s.alert.DeletionTimestamp != nil || s.alert.Spec.Suspend {
		r.book.drop(s.key)
		r.outbox.drop(s.key)
		r.complaints.forget(s.key)
		return loop.Next{Done: true}, nil
	}
	return loop.Next{}, nil
}

// provider finds out what the Alert's Provider is for.
func (r *Reconciler) provider(ctx context.Context, s *state) (loop.Next, error) {
	provider := &notificationv1beta3.Provider{}
	key := client.ObjectKey{Namespace: s.key.Namespace, Name: s.alert.Spec.ProviderRef.Name}
	err := r.hub.Get(ctx, key, provider)
	s.reason = gitopsv1alpha1.CommitStatusReasonProviderNotReady
	switch {
	case apierrors.IsNotFound(err):
		s.silent, s.purpose = true, alerting.Messages // what else has no effect is reported at once
		s.faults = []string{fmt.Sprintf("the Provider %s does not exist%s: create it, or correct spec.providerRef", key.Name, propagation.DidYouMean(hint.Name(ctx, r.hub, &notificationv1beta3.ProviderList{}, s.alert, key)))}
	case err != nil:
		return loop.Next{}, fmt.Errorf("read the Provider %s: %w", key.Name, err)
	default:
		s.purpose, s.silent = alerting.PurposeOf(provider.Spec.Type), provider.Spec.Suspend
		for _, fault := range message.OfProvider(provider) {
			s.faults = append(s.faults, "the Provider "+key.Name+": "+fault.Path+": "+r.opts.Secrets.Hide(provider, fault.Message))
		}
	}
	return loop.Next{}, nil
}

// keep takes up the rule of an Alert whose Provider takes messages.
func (r *Reconciler) keep(_ context.Context, s *state) (loop.Next, error) {
	if s.silent || s.purpose != alerting.Messages {
		r.book.drop(s.key)
		r.outbox.drop(s.key)
		return loop.Next{}, nil
	}
	r.book.put(s.key, alerting.Compile(s.alert, r.scope()))
	return loop.Next{}, nil
}

func (r *Reconciler) scope() alerting.Scope {
	return alerting.Scope{CrossNamespace: r.opts.CrossNamespace}
}

// report emits an Event about what has no effect, once.
func (r *Reconciler) report(_ context.Context, s *state) (loop.Next, error) {
	if len(s.faults) == 0 {
		s.reason = ReasonAlertNotReady
	}
	for _, fault := range alerting.OfAlert(s.alert, r.scope(), s.purpose) {
		s.faults = append(s.faults, fault.Path+": "+fault.Message)
	}
	r.complain(s.alert, s.reason, strings.Join(s.faults, "; "))
	return loop.Next{}, nil
}

const (
	// mostText bounds the message of an Event, in bytes.
	mostText = 1000
	// remindAfter is when an Event about messages is emitted once more: before it is gone from the control plane, after an hour.
	remindAfter = 30 * time.Minute
)

// complain emits an Event about an Alert, unless it said the same before; an empty text forgets what it said. That messages do not
// arrive is said again after a while, if still none does.
func (r *Reconciler) complain(alert *notificationv1beta3.Alert, reason, text string) {
	about, now := reason, r.opts.Clock.Now()
	if reason != ReasonMessageNotSent {
		about, now = ReasonAlertNotReady, time.Time{} // of these two, the last counts
	}
	if r.complaints.changed(client.ObjectKeyFromObject(alert), about, text, now) && text != "" {
		r.events.Event(alert, corev1.EventTypeWarning, reason, excerpt.Bytes(text, mostText))
	}
}

// complaints is what was reported last about each Alert. The zero value is empty.
type complaints struct {
	mu sync.Mutex
	by map[client.ObjectKey]map[string]complaint
}

type complaint struct {
	text string
	at   time.Time // zero if it is not repeated
}

// changed reports whether a text about an Alert differs from the last one, or that was reported long ago, and takes it up.
func (s *complaints) changed(key client.ObjectKey, about, text string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.by[key][about]; last.text == text && (text == "" || now.Sub(last.at) < remindAfter) {
		return false
	}
	if s.by == nil {
		s.by = map[client.ObjectKey]map[string]complaint{}
	}
	if s.by[key] == nil {
		s.by[key] = map[string]complaint{}
	}
	s.by[key][about] = complaint{text, now}
	return true
}

func (s *complaints) forget(key client.ObjectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.by, key)
}
