package profiles

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
	"github.com/flotilla-io/flotilla/policies/estimate/profile"
	"github.com/flotilla-io/flotilla/policies/estimate/waiting"
)

const (
	// readPeriod is how often the profile of a cluster is read in the long run, and burst how
	// many are read at once after a while: an agent may write as often as it likes.
	readPeriod = time.Second
	burst      = 3
	// memory is for how long the last report of a cluster counts that is silent by now. After
	// that what it reports is the better guess.
	memory = 10 * time.Minute
	// settling is how long it may take until a cluster reports what has become of replicas
	// that were placed anew: an agent reports changes every ten seconds.
	settling = 30 * time.Second
)

// Why nothing is known of a cluster.
var (
	errNothing  = errors.New("has told nothing of its nodes")
	errPushed   = errors.New("it is not in pull mode")
	errReported = errors.New("it has not reported yet")
	errWaiting  = errors.New("has not told what waits there")
	errSilent   = errors.New("it is not ready")
	errSettling = errors.New("what runs there was decided a moment ago")
)

// Options configure Profiles. The zero value of a field is its default.
type Options struct {
	// Plugins bound what fits; none: nothing does.
	Plugins []nodes.Plugin
	// More is called when more may fit in a cluster than before; nil: nobody asks.
	More func(cluster string)
	// Waits is called when something else waits in a cluster than before; nil: nobody asks.
	Waits func(reported *waiting.Known)
	// Clock is the real one if nil.
	Clock clock.PassiveClock
}

// Profiles know what clusters reported. It is safe for use by several goroutines. Use New.
type Profiles struct {
	hub  client.Reader
	opts Options

	mu       sync.RWMutex
	known    map[string]*known
	unread   map[string]*texts        // by cluster, what it says now; nil: nothing any more
	limiters map[string]*rate.Limiter // of clusters that reported something lately
	some     chan struct{}            // there are unread ones
}

// texts are the texts that a cluster has published.
type texts struct {
	profile string
	waiting *string // nil: there is none
}

// known is what a cluster reported. It never changes.
type known struct {
	profile *profile.Profile
	index   *nodes.Index
	err     error // why that cannot be read

	waits    *waiting.Known // nil: there is none
	waitsErr error          // why that cannot be read
}

// New returns Profiles that know nothing before they are registered. Hub, a cache, knows the
// Clusters.
func New(hub client.Reader, opts Options) *Profiles {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	return &Profiles{
		hub: hub, opts: opts, known: map[string]*known{}, unread: map[string]*texts{}, limiters: map[string]*rate.Limiter{}, some: make(chan struct{}, 1),
	}
}

// MaxReplicas returns how many replicas fit in the cluster that need as much, besides
// what is assumed to run there; MaxInt32 where nothing bounds them. An error means that
// nothing is known.
func (p *Profiles) MaxReplicas(ctx context.Context, cluster string, need *workv1alpha2.ReplicaRequirements, assumed []estimate.Assumed) (int32, error) {
	ask, err := nodes.AskForReplicas(need, assumed)
	if err != nil {
		return 0, fmt.Errorf("count replicas for cluster %s: %w", cluster, err)
	}
	return p.most(ctx, cluster, ask)
}

// MaxSets returns how many sets of the components fit; see MaxReplicas.
func (p *Profiles) MaxSets(ctx context.Context, cluster, namespace string, components []workv1alpha2.Component, assumed []estimate.Assumed) (int32, error) {
	ask, err := nodes.AskForSets(namespace, components, assumed)
	if err != nil {
		return 0, fmt.Errorf("count sets of components for cluster %s: %w", cluster, err)
	}
	return p.most(ctx, cluster, ask)
}

func (p *Profiles) most(ctx context.Context, cluster string, ask *nodes.Ask) (int32, error) {
	p.mu.RLock()
	is := p.known[cluster]
	p.mu.RUnlock()
	switch {
	case is == nil:
		return 0, fmt.Errorf("cluster %s %w", cluster, errNothing)
	case is.err != nil:
		return 0, fmt.Errorf("what cluster %s tells of its nodes cannot be read: %w", cluster, is.err)
	}
	silent, err := p.silent(ctx, cluster)
	if err != nil {
		return 0, fmt.Errorf("cluster %s %w that counts: %w", cluster, errNothing, err)
	}
	if silent >= memory {
		return 0, fmt.Errorf("what cluster %s tells of its nodes is too old: it has not been ready for %s", cluster, silent.Round(time.Second))
	}
	if err := is.profile.Answers(ask); err != nil {
		return 0, fmt.Errorf("count what fits in cluster %s: %w", cluster, err)
	}
	return nodes.Most(is.index, ask, p.opts.Plugins...), nil
}

// Unschedulable returns how many replicas of the workload wait in the cluster since the threshold,
// or longer, for a node in vain; placed is when it was decided last where it runs. An error
// means that nothing is known.
func (p *Profiles) Unschedulable(ctx context.Context, cluster string, of workv1alpha2.ObjectReference, threshold time.Duration, placed time.Time) (int32, error) {
	p.mu.RLock()
	is := p.known[cluster]
	p.mu.RUnlock()
	switch {
	case is == nil || is.waits == nil && is.waitsErr == nil:
		return 0, fmt.Errorf("cluster %s %w", cluster, errWaiting)
	case is.waitsErr != nil:
		return 0, fmt.Errorf("what cluster %s tells of what waits there cannot be read: %w", cluster, is.waitsErr)
	}
	silent, err := p.silent(ctx, cluster)
	if err == nil && silent > 0 {
		err = errSilent
	}
	now := p.opts.Clock.Now()
	if err == nil && now.Before(placed.Add(settling)) {
		err = errSettling
	}
	if err != nil {
		return 0, fmt.Errorf("cluster %s %w that counts: %w", cluster, errWaiting, err)
	}
	n, err := is.waits.Unschedulable(of, threshold, now)
	if err != nil {
		return 0, fmt.Errorf("count what waits in cluster %s: %w", cluster, err)
	}
	return n, nil
}

// Age returns how old the report of a cluster may be; zero: the cluster is ready, and reports
// each change.
func (p *Profiles) Age(ctx context.Context, cluster string) time.Duration {
	silent, err := p.silent(ctx, cluster)
	if err != nil {
		return memory
	}
	return silent
}

// silent returns for how long a cluster in pull mode has not been ready, as the hub knows it;
// zero: it is.
func (p *Profiles) silent(ctx context.Context, cluster string) (time.Duration, error) {
	c := &clusterv1alpha1.Cluster{}
	if err := p.hub.Get(ctx, client.ObjectKey{Name: cluster}, c, client.UnsafeDisableDeepCopy); err != nil {
		return 0, err
	}
	if c.Spec.SyncMode != clusterv1alpha1.Pull {
		return 0, errPushed
	}
	ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	switch {
	case ready == nil:
		return 0, errReported
	case meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady):
		return 0, nil
	}
	return max(p.opts.Clock.Since(ready.LastTransitionTime.Time), time.Second), nil
}

// changes returns the handler of events of ConfigMaps.
func (p *Profiles) changes() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    p.observe,
		UpdateFunc: func(_, is any) { p.observe(is) },
		DeleteFunc: func(obj any) {
			if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			if was, ok := obj.(*corev1.ConfigMap); ok {
				p.note(was, nil)
			}
		},
	}
}

func (p *Profiles) observe(obj any) {
	if is, ok := obj.(*corev1.ConfigMap); ok {
		says := &texts{profile: is.Data[clusterv1alpha1.NodeProfileKey]}
		if text, ok := is.Data[clusterv1alpha1.NodeProfileWaitingKey]; ok {
			says.waiting = &text
		}
		p.note(is, says)
	}
}

// note queues the content of a ConfigMap to be read; nil: it is gone.
func (p *Profiles) note(of *corev1.ConfigMap, says *texts) {
	cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(of.Namespace)
	if !ok || of.Name != clusterv1alpha1.NodeProfileName {
		return
	}
	p.mu.Lock()
	p.unread[cluster] = says
	p.mu.Unlock()
	select {
	case p.some <- struct{}{}:
	default:
	}
}

// follow reads what changes until ctx ends.
func (p *Profiles) follow(ctx context.Context) {
	for {
		wait := p.read(ctx)
		var due <-chan time.Time
		if wait > 0 {
			due = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-p.some:
		case <-due:
		}
	}
}

// read reads what has changed since it was called last, and returns how long it takes until
// the next that changed too often may be read; zero: there is none.
func (p *Profiles) read(ctx context.Context) (wait time.Duration) {
	due, wait := p.take(time.Now())
	for cluster, says := range due {
		p.mu.RLock()
		was := p.known[cluster]
		p.mu.RUnlock()
		var is *known
		if says != nil {
			is = knownOf(says, was, p.opts.Clock.Now())
		}
		p.mu.Lock()
		if p.known[cluster] = is; is == nil {
			delete(p.known, cluster)
		}
		p.mu.Unlock()
		is.report(log.FromContext(ctx).WithValues("cluster", cluster), was)
		if p.opts.More != nil && is.more(was) {
			p.opts.More(cluster)
		}
		if p.opts.Waits != nil && is != nil && is.waits != nil {
			p.opts.Waits(is.waits)
		}
	}
	return wait
}

// take returns what may be read now, and how long it takes until more may be; zero: that is
// all. No cluster waits for what another one reports.
func (p *Profiles) take(now time.Time) (due map[string]*texts, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	due = map[string]*texts{}
	for cluster, says := range p.unread {
		of := p.limiters[cluster]
		if of == nil {
			of = rate.NewLimiter(rate.Every(readPeriod), burst)
			p.limiters[cluster] = of
		}
		turn := of.ReserveN(now, 1)
		if left := turn.DelayFrom(now); left > 0 {
			turn.CancelAt(now)
			if wait == 0 || left < wait {
				wait = left
			}
			continue
		}
		due[cluster] = says
		delete(p.unread, cluster)
	}
	maps.DeleteFunc(p.limiters, func(_ string, of *rate.Limiter) bool { return of.TokensAt(now) >= burst })
	return due, wait
}

// knownOf returns what is known by the texts, and was before.
func knownOf(says *texts, was *known, now time.Time) *known {
	is := &known{}
	if is.profile, is.err = profile.Decode([]byte(says.profile)); is.err == nil {
		is.index = is.profile.Index()
	}
	if says.waiting == nil {
		return is
	}
	list, err := waiting.Decode([]byte(*says.waiting))
	if err != nil {
		is.waitsErr = err
		return is
	}
	var before *waiting.Known
	if was != nil {
		before = was.waits
	}
	is.waits = waiting.Read(list, before, now)
	return is
}

// report logs what cannot be read, once.
func (k *known) report(to logr.Logger, was *known) {
	if k == nil {
		return
	}
	if k.err != nil && (was == nil || was.err == nil) {
		to.Info("What a cluster tells of its nodes cannot be read; its sum counts", "reason", k.err.Error())
	}
	if k.waitsErr != nil && (was == nil || was.waitsErr == nil) {
		to.Info("What a cluster tells of what waits there cannot be read; none of it is moved", "reason", k.waitsErr.Error())
	}
}

// more reports whether more may fit than before.
func (k *known) more(was *known) bool {
	switch {
	case k == nil, k.err != nil:
		return false
	case was == nil, was.err != nil:
		return true
	default:
		return profile.More(was.profile, k.profile)
	}
}

// Register follows what agents report while mgr runs, also on a stand-by. No other
// ConfigMaps are looked at.
func (p *Profiles) Register(mgr ctrl.Manager) error {
	own, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.ConfigMap{}: {Field: fields.OneTermEqualSelector("metadata.name", clusterv1alpha1.NodeProfileName)},
		},
		DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return fmt.Errorf("set up the watch on what agents tell of nodes: %w", err)
	}
	return mgr.Add(&follower{profiles: p, cache: own})
}

// follower runs Profiles.
type follower struct {
	profiles *Profiles
	cache    cache.Cache
}

// NeedLeaderElection keeps a stand-by up to date, too.
func (f *follower) NeedLeaderElection() bool { return false }

// Start follows until ctx ends.
func (f *follower) Start(ctx context.Context) error {
	informer, err := f.cache.GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(false))
	if err == nil {
		_, err = informer.AddEventHandler(f.profiles.changes())
	}
	if err != nil {
		return fmt.Errorf("watch what agents tell of nodes: %w", err)
	}
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	running.Go(func() { f.profiles.follow(ctx) })
	return f.cache.Start(ctx)
}
