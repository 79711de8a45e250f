package interpreters

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/interpreters/webhook"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/lua"
	"github.com/flotilla-io/flotilla/policies/interpreter/native"
)

// Options tune Interpreters. The zero value is what production uses.
type Options struct {
	// Machine runs scripts; nil means one with the budgets of production.
	Machine *lua.Machine
	// Webhooks tune the calls.
	Webhooks webhook.Options
	// Metrics takes the counts of answers; nil counts nothing.
	Metrics prometheus.Registerer
	// Clock is the real one if nil.
	Clock clock.PassiveClock
}

// debouncePeriod is how long edits that follow each other are collected.
const debouncePeriod = 50 * time.Millisecond

// Interpreters keeps the interpreter. Use New.
type Interpreters struct {
	opts        Options
	interpreter *interpreter.Interpreter
	scripts     *scripts
	webhooks    *webhook.Webhooks
	gate        *gate
	changed     chan struct{}
	// deletedScripts and deletedHooks are what still counts; follow's alone.
	deletedScripts lingering[*configv1alpha1.ResourceInterpreterCustomization]
	deletedHooks   lingering[*configv1alpha1.ResourceInterpreterWebhookConfiguration]

	mu        sync.Mutex
	listeners []func(ctx context.Context, affects func(schema.GroupVersionKind) bool)
}

// New returns an interpreter of which nothing is known but what is built in. It
// answers kinds.Pending until it was registered and has read what there is.
func New(o Options) *Interpreters {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Machine == nil {
		o.Machine = lua.New(lua.Options{Now: o.Clock.Now})
	}
	counts := newCounts(o.Metrics, o.Clock)
	if o.Webhooks.Clock == nil {
		o.Webhooks.Clock = o.Clock
	}
	o.Webhooks.Called = counts.called(o.Webhooks.Called)
	i := &Interpreters{opts: o, scripts: newScripts(o.Machine, counts), gate: &gate{}, changed: make(chan struct{}, 1)}
	i.webhooks = webhook.New(o.Webhooks)
	countCalls(o.Metrics, i.webhooks)
	i.interpreter = interpreter.New(i.gate, i.scripts, i.webhooks,
		counts.table("bundled", customizations.Table()), counts.table("native", native.Table()))
	return i
}

// Interpreter returns the interpreter; always the same.
func (i *Interpreters) Interpreter() *interpreter.Interpreter { return i.interpreter }

// OnChange adds a function to call when the answers for kinds may differ from
// before. OnChange is called before Register; the function must not block for long.
func (i *Interpreters) OnChange(reported func(ctx context.Context, affects func(schema.GroupVersionKind) bool)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.listeners = append(i.listeners, reported)
}

// Register keeps the interpreter up to date while mgr runs, on every replica.
func (i *Interpreters) Register(ctx context.Context, mgr ctrl.Manager) error {
	var followed []toolscache.ResourceEventHandlerRegistration
	for _, kind := range []client.Object{&configv1alpha1.ResourceInterpreterCustomization{}, &configv1alpha1.ResourceInterpreterWebhookConfiguration{}} {
		informer, err := mgr.GetCache().GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch what interpreters are made of: %w", err)
		}
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { i.poke() },
			UpdateFunc: func(any, any) { i.poke() },
			DeleteFunc: func(any) { i.poke() },
		})
		if err != nil {
			return fmt.Errorf("watch what interpreters are made of: %w", err)
		}
		followed = append(followed, registration)
	}
	i.webhooks.Resolve(webhook.Services(mgr.GetAPIReader()))
	if err := mgr.Add(everywhere(i.webhooks.Start)); err != nil {
		return fmt.Errorf("start calling webhooks: %w", err)
	}
	follow := func(ctx context.Context) error { return i.follow(ctx, mgr.GetClient(), followed) }
	if err := mgr.Add(everywhere(follow)); err != nil {
		return fmt.Errorf("start following customizations: %w", err)
	}
	return nil
}

// everywhere runs on every replica.
type everywhere func(ctx context.Context) error

// Start implements manager.Runnable.
func (f everywhere) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everywhere) NeedLeaderElection() bool { return false }

func (i *Interpreters) poke() {
	select {
	case i.changed <- struct{}{}:
	default:
	}
}

// follow reads what there is, once it is complete, and again after each change.
func (i *Interpreters) follow(ctx context.Context, hub client.Reader, followed []toolscache.ResourceEventHandlerRegistration) error {
	for _, f := range followed {
		select {
		case <-ctx.Done():
			return nil
		case <-f.HasSyncedChecker().Done():
		}
	}
	for first := true; ; first = false {
		again, err := i.read(ctx, hub, first)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if !i.wait(ctx, again) {
			return nil
		}
	}
}

// wait returns once something has changed, or after the given time if that is
// not zero. It returns false if ctx ended first.
func (i *Interpreters) wait(ctx context.Context, again time.Duration) bool {
	var over <-chan time.Time
	if again > 0 {
		timer := time.NewTimer(again)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-over:
		return true
	case <-i.changed:
		return pause(ctx, debouncePeriod)
	}
}

// pause returns false if ctx ended first.
func pause(ctx context.Context, for_ time.Duration) bool {
	timer := time.NewTimer(for_)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// read takes over what the cache holds, reports what that changed, and returns
// when to read again though nothing changes; zero for never. The first time there
// is nobody who got another answer.
func (i *Interpreters) read(ctx context.Context, hub client.Reader, first bool) (again time.Duration, err error) {
	var scripts configv1alpha1.ResourceInterpreterCustomizationList
	if err := hub.List(ctx, &scripts); err != nil {
		return 0, fmt.Errorf("list customizations: %w", err)
	}
	var configurations configv1alpha1.ResourceInterpreterWebhookConfigurationList
	if err := hub.List(ctx, &configurations); err != nil {
		return 0, fmt.Errorf("list configurations of webhooks: %w", err)
	}
	now := i.opts.Clock.Now()
	taught, again := i.deletedScripts.with(pointers(scripts.Items), now)
	hooks, later := i.deletedHooks.with(pointers(configurations.Items), now)
	if again == 0 || later > 0 && later < again {
		again = later
	}
	byScript, problems := i.scripts.use(taught)
	for _, p := range problems {
		log.FromContext(ctx).Error(p.Err, "a script of a customization is of no use", "customization", p.Name, "operation", p.Operation)
	}
	byWebhook, some := i.webhooks.Use(hooks)
	i.gate.open.Store(true)
	if first || len(byScript) == 0 && !some {
		return again, nil
	}
	affects := func(gvk schema.GroupVersionKind) bool { return byScript[gvk] || byWebhook(gvk) }
	i.mu.Lock()
	listeners := i.listeners
	i.mu.Unlock()
	for _, reported := range listeners {
		reported(ctx, affects)
	}
	log.FromContext(ctx).Info("took over what is known about kinds", "kinds", len(byScript), "webhooks", some)
	return again, nil
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

// soonest is the shortest time until a failed rule is tried again.
const soonest = 10 * time.Millisecond

// retryPause is when to ask again about an object of which a rule that runs here
// could make nothing: the same question mostly has the same answer.
const retryPause = time.Minute

// RetryAfter returns when a rule that failed with err may answer otherwise,
// though neither the object nor what is known about its kind was changed.
func RetryAfter(err error) time.Duration {
	var knows interface{ RetryAfter() time.Duration }
	if errors.As(err, &knows) {
		return max(knows.RetryAfter(), soonest)
	}
	return max(retryPause, Costs(err))
}

// Failed reports whether err is of a rule about a kind, and not of the loop that
// asked.
func Failed(err error) bool {
	var failed *interpreter.Error
	if !errors.As(err, &failed) {
		return false
	}
	_, awaits := kinds.Awaits(err)
	return !awaits
}
