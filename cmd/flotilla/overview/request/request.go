package request

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/listing"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// followed is a kind of Flux that can be reconciled on request, and suspended.
type followed struct {
	kind   string
	plural string
	words  []string // on the command line
	path   string   // the words between a verb and a name
	source bool
	object func() client.Object
	list   func() client.ObjectList
	// read returns what the loops wrote.
	read func(client.Object) progress
	done string // "fetched revision %s"; empty for a kind without revisions
}

// progress is the progress of a loop with an object.
type progress struct {
	suspended  bool
	handled    string
	observed   int64
	revision   string
	history    string // that the revision is not known to follow the one before
	conditions []metav1.Condition
}

// sources returns the kinds of sources that can be asked for, by their words after "source".
func sources() []*followed {
	var out []*followed
	for _, kind := range origins.Kinds() {
		if !kind.Given {
			out = append(out, source(kind))
		}
	}
	return out
}

func source(of origins.Kind) *followed {
	return &followed{
		kind: of.Name, plural: of.Plural, words: []string{of.Word}, path: "source " + of.Word, done: "fetched", source: true,
		object: func() client.Object { return of.New() },
		list:   of.List,
		read: func(obj client.Object) progress {
			s, facts := obj.(origins.Object), origins.FactsOf(obj)
			return progress{suspended: facts.Suspended, handled: facts.Handled, observed: facts.Observed, revision: origins.Revision(s), history: facts.History, conditions: s.GetConditions()}
		},
	}
}

var kustomizations = &followed{
	kind: kustomizev1.KustomizationKind, plural: "Kustomizations", words: []string{"kustomization", "ks", "kustomizations"}, path: "kustomization", done: "applied",
	object: func() client.Object { return &kustomizev1.Kustomization{} },
	list:   func() client.ObjectList { return &kustomizev1.KustomizationList{} },
	read: func(obj client.Object) progress {
		ks := obj.(*kustomizev1.Kustomization)
		return progress{suspended: ks.Spec.Suspend, handled: ks.Status.LastHandledReconcileAt, observed: ks.Status.ObservedGeneration,
			revision: ks.Status.LastAppliedRevision, conditions: ks.Status.Conditions}
	},
}

// receivers have no revision: their address is what a loop keeps.
var receivers = &followed{
	kind: notificationv1.ReceiverKind, plural: "Receivers", words: []string{"receiver", "receivers"}, path: "receiver",
	object: func() client.Object { return &notificationv1.Receiver{} },
	list:   func() client.ObjectList { return &notificationv1.ReceiverList{} },
	read: func(obj client.Object) progress {
		r := obj.(*notificationv1.Receiver)
		return progress{suspended: r.Spec.Suspend, handled: r.Status.LastHandledReconcileAt, observed: r.Status.ObservedGeneration, conditions: r.Status.Conditions}
	},
}

// requester sends requests to loops, and waits until they are handled.
type requester struct {
	hub       client.WithWatch
	clock     clock.Clock
	out       io.Writer
	namespace string
	timeout   time.Duration
	// quiet is how long a wait prints nothing at most.
	quiet time.Duration
}

func (r *requester) say(glyph, format string, args ...any) {
	_, _ = fmt.Fprintf(r.out, glyph+" "+format+"\n", args...)
}

// Glyphs before a line, as Flux's command line has them.
const (
	acts, done, waits = "►", "✔", "◎"
)

// get reads one object.
func (r *requester) get(ctx context.Context, what *followed, namespace, name string) (client.Object, error) {
	obj := what.object()
	err := r.hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
	if apierrors.IsNotFound(err) {
		meant := ""
		if gvk, err := r.hub.GroupVersionKindFor(obj); err == nil {
			meant = fleet.Meant(ctx, r.hub, gvk, client.ObjectKey{Namespace: namespace, Name: name})
		}
		return nil, fmt.Errorf("there is no %s %s in namespace %s%s: flotilla status -A lists them", what.kind, name, namespace, meant)
	}
	return obj, fleet.Describe(err)
}

// reconcile requests a reconciliation of an object, and waits for the outcome.
func (r *requester) reconcile(ctx context.Context, what *followed, namespace, name string) error {
	obj, err := r.get(ctx, what, namespace, name)
	if err != nil {
		return err
	}
	if what.read(obj).suspended {
		return fmt.Errorf("%s %s/%s is suspended: flotilla resume %s %s -n %s", what.kind, namespace, name, what.command(), name, namespace)
	}
	r.say(acts, "asking for a look at %s %s/%s", what.kind, namespace, name)
	token := r.clock.Now().Format(time.RFC3339Nano)
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, meta.ReconcileRequestAnnotation, token)
	if err := r.hub.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return fleet.Describe(err)
	}
	return r.wait(ctx, what, obj, token)
}

// wait waits until the loop has handled a request, or, without one, the current object, and prints the outcome.
func (r *requester) wait(ctx context.Context, what *followed, obj client.Object, request string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, r.timeout, errTimeout)
	defer cancel()
	r.say(waits, "waiting for %s", nameOf(what, obj))
	w := &waiting{requester: r, what: what, obj: obj, request: request}
	for {
		ended, err := w.watch(ctx)
		switch {
		case ended:
			return err
		case ctx.Err() != nil:
			return w.gaveUp(ctx)
		case err != nil:
			return fleet.Describe(err)
		}
	}
}

// waiting is one wait for one object.
type waiting struct {
	*requester
	what    *followed
	obj     client.Object
	request string
	message string
	// latest is the last seen object if it waits for dependencies; nil if not.
	latest client.Object
	// seen is the last seen object; nil for none.
	seen  client.Object
	signs signs
}

// lookAgain is how often what a waiting object does not report itself is looked at: its dependencies, and the time.
const lookAgain = 2 * time.Second

// watch watches the object until the wait is over, or the connection ends.
func (w *waiting) watch(ctx context.Context) (ended bool, err error) {
	watcher, err := w.hub.Watch(ctx, w.what.list(), client.InNamespace(w.obj.GetNamespace()), client.MatchingFields{"metadata.name": w.obj.GetName()})
	if err != nil {
		return false, err
	}
	defer watcher.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, nil
		case <-w.clock.After(lookAgain):
			if w.latest == nil {
				w.alive(ctx)
				continue
			}
			if ended, err := w.judge(ctx, w.latest); ended {
				return true, err
			}
			w.alive(ctx)
		case event, open := <-watcher.ResultChan():
			if !open || event.Type == watch.Error {
				return false, nil
			}
			now, ok := event.Object.(client.Object)
			if !ok {
				continue
			}
			if event.Type == watch.Deleted {
				return true, fmt.Errorf("%s was deleted meanwhile", nameOf(w.what, w.obj))
			}
			if ended, err := w.judge(ctx, now); ended {
				return true, err
			}
		}
	}
}

// judge reports whether the wait is over, and how it ended.
func (w *waiting) judge(ctx context.Context, now client.Object) (ended bool, err error) {
	p := w.what.read(now)
	w.seen = now
	if p.suspended {
		return true, fmt.Errorf("%s was suspended meanwhile", nameOf(w.what, w.obj))
	}
	ready := apimeta.FindStatusCondition(p.conditions, meta.ReadyCondition)
	if ready == nil {
		return false, nil
	}
	// An object that waits for a dependency continues by itself.
	waiting := ready.Status == metav1.ConditionUnknown || ready.Reason == meta.DependencyNotReadyReason
	if waiting && ready.Message != w.message {
		w.say(waits, "%s", excerpt.Line(ready.Message))
		w.signs.spoke = true
	}
	w.message, w.latest = ready.Message, nil
	switch {
	case w.request != "" && p.handled != w.request, w.request == "" && ready.ObservedGeneration != now.GetGeneration():
		return false, nil
	case ready.Reason == siblings.ReasonHandingOver && w.request != "": // it is handled once nothing is on its way
		return true, fmt.Errorf("%s is not ready: %s: %s", nameOf(w.what, w.obj), ready.Reason, ready.Message)
	case ready.Reason == meta.DependencyNotReadyReason:
		w.latest = now
		return w.stuck(ctx, now, ready)
	case ready.Status == metav1.ConditionTrue && p.observed == now.GetGeneration() && w.what.done == "":
		w.say(done, "%s is ready", nameOf(w.what, w.obj))
		return true, nil
	case ready.Status == metav1.ConditionTrue && p.observed == now.GetGeneration():
		w.say(done, "%s revision %s", w.what.done, p.revision)
		if p.history != "" {
			w.say(waits, "%s", p.history)
		}
		return true, nil
	case ready.Status == metav1.ConditionFalse && !waiting:
		return true, fmt.Errorf("%s is not ready: %s: %s", nameOf(w.what, w.obj), ready.Reason, ready.Message)
	default:
		return false, nil
	}
}

// stuck reports whether a dependency of a Kustomization needs a person, and returns an error about it.
func (w *waiting) stuck(ctx context.Context, now client.Object, ready *metav1.Condition) (ended bool, err error) {
	ks, is := now.(*kustomizev1.Kustomization)
	if !is {
		return false, nil
	}
	why := dependencies{hub: w.hub, met: map[client.ObjectKey]bool{}}.stuck(ctx, ks)
	if why == "" {
		return false, nil
	}
	return true, fmt.Errorf("%s is not ready: %s: %s; %s", nameOf(w.what, w.obj), ready.Reason, ready.Message, why)
}

// gaveUp returns the error of a wait that a timeout or the user ended.
func (w *waiting) gaveUp(ctx context.Context) error {
	if !errors.Is(context.Cause(ctx), errTimeout) {
		return ctx.Err()
	}
	message := w.message
	if message == "" {
		message = "nobody has looked at it: does the control plane run its controller?"
	}
	if w.signs.pods != "" {
		message += "; " + w.signs.pods
	}
	return fmt.Errorf("%s is not ready after %s: %s", nameOf(w.what, w.obj), w.timeout, message)
}

// nameOf returns "Kind namespace/name".
func nameOf(what *followed, obj client.Object) string {
	return what.kind + " " + obj.GetNamespace() + "/" + obj.GetName()
}

var errTimeout = errors.New("the time of --timeout is over")

// suspend sets or removes spec.suspend.
func (r *requester) suspend(ctx context.Context, what *followed, obj client.Object, suspend bool) error {
	verb := map[bool]string{true: "suspended", false: "resumed"}[suspend]
	if what.read(obj).suspended == suspend {
		r.say(done, "%s is %s already", nameOf(what, obj), verb)
		return nil
	}
	patch := fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, suspend)
	if err := r.hub.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return fleet.Describe(err)
	}
	r.say(done, "%s %s", verb, nameOf(what, obj))
	return nil
}

// chosen returns the named objects, or all in the namespace.
func (r *requester) chosen(ctx context.Context, what *followed, names []string, all bool) ([]client.Object, error) {
	var out []client.Object
	for _, name := range names {
		obj, err := r.get(ctx, what, r.namespace, name)
		if err != nil {
			return nil, err
		}
		out = append(out, obj)
	}
	if !all {
		return out, nil
	}
	err := listing.Pages(ctx, r.hub, what.list(), func(list client.ObjectList) {
		items, _ := apimeta.ExtractList(list) // what was decoded into a list is one
		for _, item := range items {
			out = append(out, item.(client.Object))
		}
	}, client.InNamespace(r.namespace))
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("there is no %s in namespace %s: flotilla status -A lists them", what.kind, r.namespace)
	}
	return out, fleet.Describe(err)
}

// command returns the words for the kind on the command line.
func (w *followed) command() string {
	if w.source {
		return w.path
	}
	return w.words[0]
}
