package review

import (
	"context"
	"fmt"
	"sync"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxcd/pkg/apis/meta"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/places"
	"github.com/flotilla-io/flotilla/internal/runs"
	"github.com/flotilla-io/flotilla/policies/codeowners"
	"github.com/flotilla-io/flotilla/policies/expression"
	"github.com/flotilla-io/flotilla/policies/review"
	"github.com/flotilla-io/flotilla/reconciler/forecast/rehearsal"
	"github.com/flotilla-io/flotilla/reconciler/providers"
	"github.com/flotilla-io/flotilla/reconciler/secrets/inherited"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/fetching"
	"github.com/flotilla-io/flotilla/sources/forge"
	"github.com/flotilla-io/flotilla/sources/git"
)

// Forge lists pull requests and is told of them.
type Forge interface {
	forge.Poster
	forge.Commenter
	PullRequests(ctx context.Context) (open []forge.PullRequest, all bool, err error)
	Conversation
	Approvals
}

// Conversation is what people say of pull requests, by labels and comments.
type Conversation interface {
	Said(ctx context.Context, number int64, since time.Time) ([]forge.Said, error)
	SaidByWriter(ctx context.Context, what forge.Said) (bool, error)
	LabelledByWriter(ctx context.Context, number int64, label string) (bool, error)
	Unlabel(ctx context.Context, number int64, label string) error
}

// Approvals knows who approves of pull requests, and who should, also once they are merged.
type Approvals interface {
	Merged(ctx context.Context, commit, branch string) (forge.PullRequest, bool, error)
	Approvers(ctx context.Context, number int64, head string) ([]forge.Approver, error)
	CodeOwners(ctx context.Context, commit string) (kind codeowners.Kind, text string, err error)
	InTeam(ctx context.Context, team string, who forge.Approver) (bool, error)
}

// Repository has the commits of pull requests.
type Repository interface {
	Resolve(ctx context.Context, ref git.Ref) (git.Commit, error)
	MergeBase(ctx context.Context, onto, branch git.Commit) (string, error)
	Line(ctx context.Context, before string, now git.Commit) ([]string, error)
	Files(ctx context.Context, of git.Commit) (artifact.Files, error)
}

// Deps are what the loop works with.
type Deps struct {
	Hub client.Client
	// Live reads Secrets without a cache.
	Live client.Reader
	// Open opens a repository by the credentials of its source.
	Open func(ctx context.Context, source *sourcev1.GitRepository) (Repository, error)
	// Connect returns the forge of a provider. Errors are forge.ErrProvider.
	Connect func(p forge.Provider, timeout time.Duration) (Forge, error)
	// Fleet reads the fleet.
	Fleet func(ctx context.Context) (*rehearsal.Fleet, error)
}

// Options tune the loop. Zero fields take the default.
type Options struct {
	// Clock is the real one if nil.
	Clock clock.PassiveClock
	// Workers is how many PullRequestReviews are reconciled at a time; default 2, at least 2.
	Workers int
	// Limits bound what is done for one of them.
	Limits Limits
	// Places limits concurrent work across tenants; if it is nil, this loop has its own.
	Places *places.Places
	// Secrets knows what must not be shown of an object.
	Secrets *inherited.Known
}

// Limits bound what is done for pull requests.
type Limits struct {
	// Open is how many open pull requests are reviewed; default 100, at most 200.
	Open int
	// Side is how many are looked at side by side; default 2.
	Side int
	// Each is for how long one is looked at; default 1 min.
	Each time.Duration
	// Pass is for how long others are begun before the forge is asked anew; default 15 s.
	Pass time.Duration
}

const (
	defaultWorkers = 2
	defaultOpen    = 100
	defaultSide    = 2
	defaultEach    = time.Minute
	defaultPass    = 15 * time.Second
	// leastInterval is how often a forge is asked at most, unless somebody tells of a change.
	leastInterval = 10 * time.Second
	// settling is for how long a fleet has to stay the same before reviews are renewed for it: a rollout changes it many times.
	settling = 10 * time.Second
	// echo is when the forge is asked once more after somebody told of a change: its list may not show that yet.
	echo = 2 * time.Second
	// soon is when it is gone on with what this pass had no time for, or what has moved meanwhile.
	soon = time.Second
)

// Reconciler reviews pull requests. Use New.
type Reconciler struct {
	deps     Deps
	opts     Options
	runs     *runs.Runs
	rules    *expression.Compiler
	forge    connections
	statuses statusWriter
	memory   memory
}

// seen is what a pass has seen, for the next one.
type seen struct {
	// fleet is its digest; empty for none.
	fleet string
	// asked is when somebody told of a change, as annotations have it.
	asked string
	// approvals are when the forge was last asked who approves of a pull request, by its number. They are kept from pass to pass.
	approvals map[int64]askedApproval
	// talk is what was heard and said. It is kept from pass to pass.
	talk *talk
	// judged is what the source's present commit needs before it is applied. It is kept from pass to pass.
	judged *judged
}

// memory is what passes have seen. It starts empty.
type memory struct {
	mu    sync.Mutex
	byKey map[client.ObjectKey]seen
}

func (m *memory) of(key client.ObjectKey) seen {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byKey[key]
}

func (m *memory) keep(key client.ObjectKey, what seen) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.byKey[key] = what
}

func (m *memory) drop(key client.ObjectKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byKey, key)
}

// New returns the loop.
func New(deps Deps, opts Options) *Reconciler {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.Workers == 0 {
		opts.Workers = defaultWorkers
	}
	opts.Workers = fairqueue.Workers(opts.Workers)
	if opts.Places == nil {
		opts.Places = places.New(places.Options{})
	}
	orElse(&opts.Limits.Open, defaultOpen)
	orElse(&opts.Limits.Side, defaultSide)
	orElse(&opts.Limits.Each, defaultEach)
	orElse(&opts.Limits.Pass, defaultPass)
	return &Reconciler{
		deps: deps, opts: opts, runs: runs.New(), rules: expression.NewCompiler(expression.Limits{}), memory: memory{byKey: map[client.ObjectKey]seen{}},
		statuses: statusWriter{deps.Hub, writecache.New[*gitopsv1alpha1.PullRequestReview](opts.Clock)},
		forge:    connections{hub: deps.Hub, kept: providers.New(deps.Live, deps.Connect, longestTimeout), secrets: opts.Secrets},
	}
}

func orElse[T comparable](v *T, fallback T) {
	var zero T
	if *v == zero {
		*v = fallback
	}
}

// Register adds the loop to a manager.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("pullrequestreview").
		For(&gitopsv1alpha1.PullRequestReview{}, builder.WithPredicates(r.runs.Predicate(), fetching.Asked(gitopsv1alpha1.ApprovedCommitAnnotation), r.endings())).
		Watches(&sourcev1.GitRepository{}, handler.EnqueueRequestsFromMapFunc(r.ofSource), builder.WithPredicates(told)).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.opts.Workers, NewQueue: fairqueue.ByNamespace(r.opts.Workers)}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("register PullRequestReview loop: %w", err)
	}
	return nil
}

// endings lets everything pass, and ends the wait for own writes to what is gone.
func (r *Reconciler) endings() predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(e event.DeleteEvent) bool {
		r.statuses.written.Gone(e.Object)
		return true
	}}
}

// told sees that somebody told of a change of a source, such as a Receiver, and that it has another revision or spec.
var told = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return true },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, was := e.ObjectOld.(*sourcev1.GitRepository)
		after, is := e.ObjectNew.(*sourcev1.GitRepository)
		return was && is && (before.Generation != after.Generation || before.Annotations[meta.ReconcileRequestAnnotation] != after.Annotations[meta.ReconcileRequestAnnotation] ||
			revisionOf(before) != revisionOf(after))
	},
}

func revisionOf(source *sourcev1.GitRepository) string {
	if source.Status.Artifact == nil {
		return ""
	}
	return source.Status.Artifact.Revision
}

// ofSource returns the PullRequestReviews of a source.
func (r *Reconciler) ofSource(ctx context.Context, source client.Object) []reconcile.Request {
	var list gitopsv1alpha1.PullRequestReviewList
	if err := r.deps.Hub.List(ctx, &list, client.InNamespace(source.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "find the reviews of a source")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if list.Items[i].Spec.SourceRef.Name == source.GetName() {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// terms are what a pull request has to keep, and who has to approve of it.
type terms struct {
	rules     []review.Rule
	approvals []review.Approval
}

// state is what the phases find out about one PullRequestReview.
type state struct {
	// before is it as it is on the hub, and object a copy whose status the phases change.
	before, object *gitopsv1alpha1.PullRequestReview
	source         *sourcev1.GitRepository
	// last is what the pass before has seen, and now what this one has.
	last, now seen
	branches  []string
	terms     terms
	questions []question
	forge     Forge
	pulls     []forge.PullRequest
	// refused says why a pull request is not looked at, by its number.
	refused    map[int64]string
	repository Repository
	fleet      *rehearsal.Fleet
	bases      map[string]*base
	// due are the pull requests to be looked at, by their place in the status.
	due []int
	// faults are what kept pull requests from being reviewed, or told.
	faults faults
}

func (s *state) interval() time.Duration {
	return max(s.object.Spec.Interval.Duration, leastInterval)
}

// Reconcile reviews the open pull requests of one repository.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ctx, run := r.runs.Start(ctx, req.NamespacedName)
	defer run.End()
	ctx, end := r.opts.Places.Start(ctx, req.Namespace)
	defer end()
	s := &state{}
	next, err := loop.Run(ctx, s, r.read(req.NamespacedName, run), r.suspend, r.prepare, enforcer{examiner{r.opts.Limits.Each}, r.deps, r.forge}.enforce, r.statuses.enforced, r.find, r.list, allow, listener{r.opts.Clock}.listen, r.look, listener{r.opts.Clock}.answer, r.resolve, r.decide, examiner{r.opts.Limits.Each}.suppose, r.examine, approver{r.opts.Clock}.approve, r.together)
	switch {
	case runs.Superseded(ctx):
		return reconcile.Result{RequeueAfter: fetching.FirstRetry}, nil // the current object is reconciled instead
	case ctx.Err() != nil:
		return reconcile.Result{}, ctx.Err()
	case s.before == nil:
		return reconcile.Result{}, err
	}
	return r.report(ctx, s, next, err)
}
