// Package deletionrecheck decides once more, before it is done, whether a Work that is being deleted may take its objects along, where its cluster, its agent, or
// the control plane, was away before that was done.
//
// On the control plane, in go the Work and its Cluster, from the cache its binding and the binding's other Works, and which clusters
// answer; out comes why the objects stay for now. An agent knows no other cluster: there in goes the Work alone, and out comes a question
// for the control plane, which is answered by an annotation. The package writes nothing. It has clusters asked whether they are there
// where that matters.
package deletionrecheck

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/policies/staleremoval"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// Reason goes with the condition DeletionBlocked True: the cluster may have the only copy that serves.
const Reason = workv1alpha1.WorkLastCopyReason

// Kept is why the objects of a Work stay for now.
type Kept struct {
	Title string   // of the template: "Deployment shop/web"
	In    []string // the clusters in which it is placed; it is healthy in none
}

func (k *Kept) Error() string {
	return staleremoval.Lasting(k.Title, k.In)
}

// Is reports whether err says that a copy is kept as the last one, or as it may be that.
func Is(err error) bool { return errors.As(err, new(*Kept)) || Asks(err) }

// unheard is why the objects stay for a moment: something is not known yet.
type unheard struct {
	text  string
	after time.Duration
}

func (u *unheard) Error() string {
	return "this cluster or the control plane was away before the copy here was removed: " + u.text
}

// Waits reports whether an error of Keeps is about a moment only, and not worth an Event.
func Waits(err error) bool { return errors.As(err, new(*unheard)) }

// again is the pause before it is judged once more.
const again = 5 * time.Second

// Again returns the pause after an error of Keeps before it is judged once more.
func Again(err error) time.Duration {
	var u *unheard
	switch {
	case errors.As(err, &u):
		return u.after
	case Asks(err): // the answer is an event
		return waitqueue.SafetyNet
	}
	return again
}

// IfThere returns an error of Keeps if the cluster has a copy, which there is asked only if one is to stay: what is not there is not the last
// one. The error is one of Waits if that is not known.
func IfThere(err error, there func() (bool, error)) error {
	if !Is(err) {
		return err
	}
	switch is, unread := there(); {
	case unread != nil:
		return &unheard{text: "whether it is there is not known: " + unread.Error(), after: again}
	case !is:
		return nil
	}
	return err
}

// Options say what a Judge knows.
type Options struct {
	// Bindings says that bindings can be read here. An agent cannot: there the Hub is asked.
	Bindings bool
	// Hub is what an agent knows of its hub; nil asks nothing, and keeps nothing.
	Hub Hub
	// Answers asks clusters whether they are there; nil: nobody does here, and what is stored is believed.
	Answers Answers
	// Returns is when clusters began to answer. Keeps needs it with Answers, and with a Hub.
	Returns *Returns
	// Woke is when this process last woke; nil: it never slept.
	Woke Woke
	// Clock is the time. It must not be nil if Answers, or Hub, is not.
	Clock clock.PassiveClock
}

// Woke returns when this process last woke after it was stopped, or its machine was; zero if it was not.
type Woke func() time.Time

// Judge reads what Keeps needs, and remembers which removals failed. Use New. It is safe for use by several goroutines.
type Judge struct {
	hub      client.Reader
	opts     Options
	failures failures
}

// New returns a Judge that reads from the hub's cache.
func New(hub client.Reader, o Options) *Judge {
	return &Judge{hub: hub, opts: o, failures: failures{at: map[client.ObjectKey]time.Time{}, seen: map[client.ObjectKey]types.UID{}}}
}

// Keeps returns a *Kept if a Work that is being deleted has to keep its objects, and nil if it may remove them. It
// was decided that it may when other copies were healthy; since then its cluster was away, or nobody was there to look, and they may
// be gone. A copy elsewhere counts if its cluster has answered since this one is back; until that is known the error is one of Waits.
// In an agent it is an error of Asks, until the control plane has judged it.
// What somebody has asked for is done all the same: that the template or its binding goes, that it is pruned there,
// or that it leaves before it starts elsewhere, or that the cluster leaves the fleet. A Work whose objects stay anyway keeps
// none.
//
// Other errors: the hub could not be read, so that nothing is known.
func (j *Judge) Keeps(ctx context.Context, work *workv1alpha1.Work, cluster *clusterv1alpha1.Cluster) error {
	if !j.opts.Bindings {
		return j.asks(work, cluster)
	}
	back, yes := j.interrupted(work, cluster)
	if !yes {
		return nil
	}
	return j.Lacks(ctx, work, cluster, back)
}

// Lacks is Keeps for a Work whose removal was interrupted, by clusters that have answered since that was over.
func (j *Judge) Lacks(ctx context.Context, work *workv1alpha1.Work, cluster *clusterv1alpha1.Cluster, over time.Time) error {
	if !matters(work, cluster) {
		return nil
	}
	b, found, err := j.binding(ctx, work)
	if err != nil || !found {
		return err
	}
	verdict := staleremoval.Judge(b, cluster.Name, func(target string) staleremoval.Copy {
		healthy, unread := j.healthy(ctx, b, target)
		if err = errors.Join(err, unread); !healthy {
			return staleremoval.Copy{}
		}
		return staleremoval.Copy{Healthy: true, After: j.confirm(target, over)}
	})
	switch {
	case err != nil || verdict.Goes:
		return err
	case verdict.Awaits != "":
		return &unheard{text: fmt.Sprintf("whether the one in %s is still there is being asked", verdict.Awaits), after: verdict.After}
	}
	return &Kept{Title: title(b.BindingSpec()), In: verdict.In}
}

// matters reports whether anybody may miss the copy of a Work: it goes from a cluster that stays, and may have served.
func matters(work *workv1alpha1.Work, cluster *clusterv1alpha1.Cluster) bool {
	return !stays(work) && cluster.DeletionTimestamp.IsZero() && served(work)
}

// stays reports whether the objects stay in the cluster although the Work goes.
func stays(work *workv1alpha1.Work) bool {
	return ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false) || work.Annotations[workv1alpha2.WantedAgainAnnotation] == "true"
}

// noticed is how long it may take until a loss is known, which counts from its first sign: by default 30 s, and a probe.
const noticed = time.Minute

// interrupted reports whether the Work's deletion began before its cluster, or this process, was away, and since when both are
// there; or whether that was found before. It did not if the cluster was known to be lost by then: somebody has asked for that.
func (j *Judge) interrupted(work *workv1alpha1.Work, cluster *clusterv1alpha1.Cluster) (back time.Time, yes bool) {
	broken := false
	if j.opts.Answers != nil {
		back, broken = j.broken(work, cluster.Name)
	}
	if c := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkDeletionBlocked); c != nil && (c.Reason == Reason || c.Reason == workv1alpha1.WorkWantedAgainReason) {
		return back, true
	}
	if failover.Away(cluster) {
		ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
		return back, work.DeletionTimestamp.Time.Before(ready.LastTransitionTime.Add(noticed))
	}
	return back, broken
}

// comparisonTime is how long a cluster has to have answered until what is stored of its Works is believed: by then it has been compared with
// what is there.
const comparisonTime = 5 * time.Second

// confirm returns how long to wait until a cluster that is said to have a healthy copy has answered since a time; zero if it has.
func (j *Judge) confirm(cluster string, asked time.Time) time.Duration {
	if j.opts.Answers == nil {
		return 0
	}
	since, yes, after := j.opts.Answers(cluster, asked)
	if !yes {
		return after
	}
	return max(0, comparisonTime-j.opts.Clock.Since(since))
}

// served reports whether the copy may serve somebody. What was reported of it last says little: that was before the absence, and nothing is
// reported of a Work that is being deleted. If nothing ever was, who applied it may have stopped before the report.
func served(work *workv1alpha1.Work) bool {
	before := *work
	before.DeletionTimestamp = nil
	reported := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied) != nil
	return !reported || rollup.Serves(&before, false, false)
}

// binding returns the Work's binding; false if it is gone, or goes.
func (j *Judge) binding(ctx context.Context, work *workv1alpha1.Work) (workv1alpha2.Binding, bool, error) {
	key, owned := bindings.OwnerOf(work)
	if !owned {
		return nil, false, nil
	}
	b := bindings.New(key.Namespace)
	err := j.hub.Get(ctx, key, b, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read the binding %s: %w", key, err)
	}
	return b, b.GetDeletionTimestamp() == nil && b.GetLabels()[bindings.IDLabel(b)] == bindings.IDOf(work), nil
}

// healthy reports whether a cluster that is heard of has a healthy copy, by what is stored.
func (j *Judge) healthy(ctx context.Context, b workv1alpha2.Binding, name string) (bool, error) {
	cluster := &clusterv1alpha1.Cluster{}
	switch err := j.hub.Get(ctx, client.ObjectKey{Name: name}, cluster, client.UnsafeDisableDeepCopy); {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read the cluster %s: %w", name, err)
	}
	if _, silent := rollup.SilenceOf(cluster); silent {
		return false, nil
	}
	work, found, err := bindings.WorkIn(ctx, j.hub, b, name)
	return found && rollup.Ready(work), err
}

func title(spec *workv1alpha2.ResourceBindingSpec) string {
	ref := &spec.Resource
	return ref.Kind + " " + strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/")
}
