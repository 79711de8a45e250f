package confirmation

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/execution/deletionrecheck"
)

const (
	// workers is how many questions are looked at side by side.
	workers = 2
	// heldFor is the pause before a question is looked at again while nothing may be removed from its cluster.
	heldFor = 30 * time.Second
)

// Options tune the loop.
type Options struct {
	// Answers asks clusters whether they are there; nil: what is stored is believed.
	Answers deletionrecheck.Answers
	// Hold returns why nothing may be changed in a cluster; nil, and a nil answer, mean that there is no hold.
	Hold func(cluster string) *hubclaim.Hold
	// Clock is the time; nil means the machine's.
	Clock clock.PassiveClock
}

// Reconciler answers the questions of agents. Use New.
type Reconciler struct {
	hub    client.Client
	judge  *deletionrecheck.Judge
	events loop.Recorder
	opts   Options

	mu sync.Mutex
	// open are the questions that have no answer yet, by Work.
	open map[client.ObjectKey]question
}

// question is what an agent asks, and since when that is known: what was heard of other clusters before is no answer.
type question struct {
	id       string
	since    time.Time
	reported bool // that the copy stays
}

// New returns the loop. hub reads from a cache.
func New(hub client.Client, events loop.Recorder, o Options) *Reconciler {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	judge := deletionrecheck.New(hub, deletionrecheck.Options{Bindings: true, Answers: o.Answers, Clock: o.Clock})
	return &Reconciler{hub: hub, judge: judge, events: events, opts: o, open: map[client.ObjectKey]question{}}
}

// Register adds the loop to mgr. Agents take turns.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("confirmation").
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, NewQueue: fairqueue.ByNamespace(workers)}).
		For(&workv1alpha1.Work{}, builder.WithPredicates(predicate.NewPredicateFuncs(r.concerns))).
		Complete(r)
	if err != nil {
		return fmt.Errorf("register the loop that answers agents: %w", err)
	}
	return nil
}

// concerns lets Works through that ask, and those of which a question is known.
func (r *Reconciler) concerns(obj client.Object) bool {
	work, ok := obj.(*workv1alpha1.Work)
	if !ok {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.open[client.ObjectKeyFromObject(work)]
	return known || unanswered(work) != ""
}

// unanswered returns the question of a Work that has no answer yet; empty if there is none.
func unanswered(work *workv1alpha1.Work) string {
	asks := deletionrecheck.Question(work)
	if asks == work.Annotations[workv1alpha2.RemovalConfirmedAnnotation] {
		return ""
	}
	return asks
}

// state is one look at a Work.
type state struct {
	key      client.ObjectKey
	work     *workv1alpha1.Work // the cache's own: not to be changed
	cluster  *clusterv1alpha1.Cluster
	question question
}

// Reconcile answers the question of one Work, if its copy may go.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return loop.Result(loop.Run(ctx, &state{key: req.NamespacedName}, r.read, r.evaluate, r.answer))
}

// read reads the question and the cluster. It ends the pass if there is none, or if no agent has asked.
func (r *Reconciler) read(ctx context.Context, s *state) (loop.Next, error) {
	s.work, s.cluster = &workv1alpha1.Work{}, &clusterv1alpha1.Cluster{}
	err := r.hub.Get(ctx, s.key, s.work, client.UnsafeDisableDeepCopy)
	name, inCluster := workv1alpha2.ClusterOfExecutionNamespace(s.key.Namespace)
	if err == nil && inCluster && unanswered(s.work) != "" {
		err = r.hub.Get(ctx, client.ObjectKey{Name: name}, s.cluster, client.UnsafeDisableDeepCopy)
	}
	if client.IgnoreNotFound(err) != nil {
		return loop.Next{}, fmt.Errorf("read the question of %s: %w", s.key, err)
	}
	if err != nil || s.cluster.Spec.SyncMode != clusterv1alpha1.Pull {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.open, s.key)
		return loop.Next{Done: true}, nil
	}
	s.question = r.asked(s.key, unanswered(s.work))
	return loop.Next{}, nil
}

// asked returns what is known of a question, from now on if it is new.
func (r *Reconciler) asked(key client.ObjectKey, id string) question {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open[key].id != id {
		r.open[key] = question{id: id, since: r.opts.Clock.Now()}
	}
	return r.open[key]
}

// evaluate ends the pass while the copy has to stay.
func (r *Reconciler) evaluate(ctx context.Context, s *state) (loop.Next, error) {
	if r.opts.Hold != nil && r.opts.Hold(s.cluster.Name) != nil {
		return loop.Next{Done: true, After: heldFor}, nil
	}
	err := r.judge.Lacks(ctx, s.work, s.cluster, s.question.since)
	switch {
	case deletionrecheck.Is(err):
		r.report(ctx, s, err)
	case err != nil && !deletionrecheck.Waits(err):
		return loop.Next{}, err
	}
	return loop.Next{Done: err != nil, After: again(err)}, nil
}

func again(err error) time.Duration {
	if err == nil {
		return 0
	}
	return deletionrecheck.Again(err)
}

// report emits the event that a copy stays, once for each question.
func (r *Reconciler) report(ctx context.Context, s *state, why error) {
	r.mu.Lock()
	reported := r.open[s.key].reported
	s.question.reported = true
	r.open[s.key] = s.question
	r.mu.Unlock()
	if !reported {
		log.FromContext(ctx).Info("An agent that was away keeps what may be the last copy", "work", s.key, "reason", why.Error())
		r.events.Event(s.work, corev1.EventTypeWarning, workv1alpha1.EventReasonDeletionBlocked, why.Error())
	}
}

// answer annotates the Work: its copy may go.
func (r *Reconciler) answer(ctx context.Context, s *state) (loop.Next, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": s.work.UID, "annotations": map[string]string{workv1alpha2.RemovalConfirmedAnnotation: s.question.id}, // of this Work, not of a later one of its name
	}})
	if err != nil {
		return loop.Next{}, fmt.Errorf("answer the agent of %s: %w", s.key, err)
	}
	switch err := r.hub.Patch(ctx, s.work.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); {
	case bindings.IsStale(err):
		return loop.Next{}, nil // an event of the Work starts the next pass, if there is anything to do
	case err != nil:
		return loop.Next{}, fmt.Errorf("answer the agent of %s: %w", s.key, err)
	}
	log.FromContext(ctx).Info("An agent that was away may remove what it was told to", "work", s.key)
	return loop.Next{}, nil
}
