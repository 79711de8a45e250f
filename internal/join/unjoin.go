package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/join/outlook"
	"github.com/flotilla-io/flotilla/internal/setback"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

var (
	// ErrPull means that the cluster is in pull mode, and leaves by its agent.
	ErrPull = errors.New("the cluster is in pull mode: use unregister, or --force if its agent is gone for good")
	// ErrStays means that the cluster did not leave in time.
	ErrStays = errors.New("the cluster has not left")
	// ErrElsewhere means that another copy of the hub acts in the member.
	ErrElsewhere = errors.New("another copy of this control plane acts in the cluster: do it there, or stop that copy first; if none runs, try again about 40s after this one was started, or 100s where yet another copy has asked there")
	// ErrMoving means that one may: the hub has moved, and waits whether another
	// copy answers.
	ErrMoving = errors.New("this control plane was in another folder or machine when it last acted in the cluster, and waits to see whether one still runs there: try again in about 40s, or 100s where yet another copy has asked there")
	// ErrHeld means that the hub was set back, and removes nothing until it is
	// resumed.
	ErrHeld = errors.New("this control plane was set back to an older backup, and removes nothing from the cluster before somebody has said flotilla resume hub; with --dry-run that says what would be done")
	// ErrOther means that the given member is not the cluster that leaves.
	ErrOther = errors.New("that is another cluster")
)

// UnjoinOptions are what leaves. Name and Hub are required.
type UnjoinOptions struct {
	// Name of the cluster on the hub.
	Name string
	// Hub is a client with all permissions there.
	Hub client.Client
	// Opened returns the revision at which the hub was opened, see setback.Opened;
	// nil means that it is not known.
	Opened func(context.Context) (int64, error)
	// HubID is the hub's identity; if it is empty, it is read by Hub.
	HubID string
	// Member is a client for the member, to clean it up; nil leaves it as it is.
	// It has to answer, unless Force is set.
	Member client.Client
	// Witness reads from the member what it has seen of the hub, where there is no
	// Member. It may be nil, and need not answer.
	Witness client.Reader
	// Namespace holds accounts in the member and credentials on the hub; empty
	// means karmada-cluster.
	Namespace string
	// Wait is how long the cluster may take to leave; zero means 60 s.
	Wait time.Duration
	// Force removes the cluster even if what runs in it could not be removed, and
	// stays there.
	Force bool
	// DryRun reports the steps without doing them.
	DryRun bool
	// Progress is called at every step; it may be nil.
	Progress func(Step)
	// Found is called once the cluster was found, before the member is asked
	// anything; it may be nil.
	Found func()
	// Inside shows what is in the member; nil means that only what the hub knows
	// is predicted.
	Inside outlook.Inside
	// Predicted is called, before anything is done, with what will become of what
	// the fleet runs there; it may be nil.
	Predicted func(outlook.Outlook)
	// Departure observes the cluster, and has the objects that stayed in it
	// afterwards; it may be nil.
	Departure *Departure
}

const (
	defaultWait = time.Minute
	leavePoll   = 250 * time.Millisecond
	// observeEvery is how many polls pass between two observations of the Works.
	observeEvery = 4
	// timeout is how long a member may take to show its identity.
	timeout = 20 * time.Second
)

func (o *UnjoinOptions) complete() error {
	if o.Namespace == "" {
		o.Namespace = workv1alpha2.NamespaceKarmadaCluster
	}
	if o.Wait == 0 {
		o.Wait = defaultWait
	}
	if o.Progress == nil {
		o.Progress = func(Step) {}
	}
	return checkName(o.Name)
}

// Unjoin removes a cluster from the hub: first its workloads, then its
// registration, then the hub's accounts in it. After an interruption it may be
// run again, and finishes. Errors: ErrPull, ErrStays, those of MayLeave, a
// NotFound error if there was nothing to remove, or those of either side.
func Unjoin(ctx context.Context, o UnjoinOptions) error {
	if err := o.complete(); err != nil {
		return err
	}
	// An interrupted run may have removed the Cluster already. So whether the
	// cluster was known at all shows only in whether anything was found to remove.
	removed := false
	report := o.Progress
	o.Progress = func(step Step) {
		removed = true
		report(step)
	}
	hub := side{name: "hub", client: o.Hub, dry: o.DryRun, progress: o.Progress}
	cluster := &clusterv1alpha1.Cluster{}
	missing := o.Hub.Get(ctx, client.ObjectKey{Name: o.Name}, cluster)
	if client.IgnoreNotFound(missing) != nil {
		return fmt.Errorf("read cluster %s: %w", o.Name, missing)
	}
	if cluster.Spec.SyncMode == clusterv1alpha1.Pull && !o.Force {
		return ErrPull
	}
	if o.Found != nil && (missing == nil || o.Member != nil) {
		o.Found()
	}
	if missing == nil && o.Departure != nil {
		cluster = byItsAnswer(ctx, o.Departure, cluster)
	}
	if err := o.mayLeave(ctx, cluster); err != nil {
		return err
	}
	if missing == nil {
		if err := o.deregister(ctx, hub, cluster); err != nil {
			return err
		}
	}
	for _, name := range []string{o.Name, ImpersonatorSecret(o.Name)} {
		if err := hub.removeFound(ctx, hubSecret(o.Namespace, name, nil)); err != nil {
			return err
		}
	}
	// Last, as the hub needs the accounts until the registration has ended.
	if err := o.cleanUp(ctx); err != nil {
		return err
	}
	if missing != nil && !removed {
		return fmt.Errorf("read cluster %s: %w", o.Name, missing)
	}
	return nil
}

// MayLeave returns an error if the hub must not remove a cluster, before anything
// is done: another copy of the hub acts there, or the member has seen more of the
// hub than the hub knows itself. Of the options it reads Name, Hub, Opened,
// HubID, Member and Force; cluster is the one on the hub, or zero. Errors:
// ErrElsewhere, ErrMoving, ErrHeld, ErrOther, setback.ErrBehind, or those of
// either side.
func MayLeave(ctx context.Context, o UnjoinOptions, cluster *clusterv1alpha1.Cluster) error {
	return o.mayLeave(ctx, cluster)
}

// mayLeave is MayLeave. With Force, it clears o.Member if that does not answer,
// so that the member is left as it is.
func (o *UnjoinOptions) mayLeave(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	if err := Elsewhere(cluster); err != nil && (!o.Force || o.Member != nil) {
		return err
	}
	if err := o.meet(ctx, cluster.Spec.ID); err != nil {
		return err
	}
	if err := o.held(ctx); err != nil {
		return err
	}
	if !outlook.Reached(cluster) {
		o.Witness = nil // it would not answer
	}
	return o.here(ctx)
}

// held returns ErrHeld if the hub was set back and waits, as the loops would then
// not remove anything.
func (o *UnjoinOptions) held(ctx context.Context) error {
	if o.Force {
		return nil
	}
	hold, err := setback.Waits(ctx, o.Hub)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil // a hub that has no such record
	}
	if err == nil && hold.Of(o.Name) != nil {
		return ErrHeld
	}
	return err
}

// meet checks that the member is the cluster that leaves, before anything is
// done. With Force, a member that does not answer is left as it is.
func (o *UnjoinOptions) meet(ctx context.Context, id string) error {
	if o.Member == nil {
		return nil
	}
	short, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	is, err := identity(short, o.Member)
	switch {
	case err != nil && o.Force:
		o.Member = nil
		return nil
	case err != nil:
		return fmt.Errorf("the member does not answer: where it is gone for good, leave --cluster-kubeconfig out, and what the control plane has there stays: %w", err)
	case id != "" && is != id:
		return fmt.Errorf("%w: %s was registered with the id %s, and the member has the id %s: name the right one, or none to leave it as it is", ErrOther, o.Name, id, is)
	default:
		return o.named(short)
	}
}

// named checks that the hub's claim on the member has the name that leaves, so
// that a mistyped name removes no other cluster.
func (o *UnjoinOptions) named(ctx context.Context) error {
	mine, err := o.identity(ctx)
	if err != nil || mine == "" {
		return err
	}
	_, claim, err := claimOf(ctx, o.Member)
	if err != nil || hubclaim.Judge(claim, hubclaim.Claimant{Hub: mine}) != hubclaim.Ours || claim.Cluster == o.Name {
		return err
	}
	return fmt.Errorf("%w: the member is the cluster %s of this control plane, and not %s: name the right one, or none to leave it as it is", ErrOther, claim.Cluster, o.Name)
}

// deregister removes the Cluster and waits until it is gone.
func (o *UnjoinOptions) deregister(ctx context.Context, hub side, cluster *clusterv1alpha1.Cluster) error {
	if o.DryRun {
		if err := Going(ctx, o.Hub, cluster, o.Inside, o.Progress); err != nil {
			return err
		}
	} else if err := o.predict(ctx, cluster); err != nil {
		return err
	}
	if err := hub.remove(ctx, cluster); err != nil {
		return err
	}
	return o.gone(ctx, hub)
}

// predict reports what will become of what runs in the cluster, and begins to
// observe it.
func (o *UnjoinOptions) predict(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	if o.Predicted != nil {
		will, err := outlook.Of(ctx, o.Hub, cluster, o.Inside)
		if err != nil {
			return err
		}
		o.Predicted(will)
	}
	return o.observe(ctx, cluster)
}

// gone waits until the Cluster is gone. With Force, it removes the finalizers
// when the time is over.
func (o *UnjoinOptions) gone(ctx context.Context, hub side) error {
	if o.DryRun {
		return nil
	}
	err := o.await(ctx, o.Wait)
	if err == nil || !wait.Interrupted(err) || ctx.Err() != nil {
		return err
	}
	if !o.Force {
		return o.stays(ctx)
	}
	if o.Departure != nil {
		o.Departure.Abandon()
	}
	if err := o.release(ctx, hub); err != nil {
		return err
	}
	return o.await(ctx, o.Wait)
}

// stays returns the error for a cluster that has not left, with what keeps it and
// what to do about it.
func (o *UnjoinOptions) stays(ctx context.Context) error {
	works := &workv1alpha1.WorkList{}
	if err := o.Hub.List(ctx, works, client.InNamespace(workv1alpha2.ExecutionNamespace(o.Name)), client.Limit(1)); err != nil {
		return fmt.Errorf("list the works of cluster %s: %w", o.Name, err)
	}
	by, err := placedIn(ctx, o.Hub, o.Name)
	switch {
	case err != nil:
		return err
	case len(works.Items) == 0 && by != "":
		return fmt.Errorf("%w after %s: nothing that the fleet ran is left there, but this is placed there still: %s; have it placed elsewhere, or delete it, and run again, or with --force to let the cluster go all the same", ErrStays, o.Wait, by)
	case len(works.Items) == 0:
		return fmt.Errorf("%w after %s: nothing that the fleet ran is left there, and the control plane has not let go of it yet; run again to wait on", ErrStays, o.Wait)
	default:
		return fmt.Errorf("%w after %s: its workloads could not be removed from it; run again to wait on, or with --force to leave them there", ErrStays, o.Wait)
	}
}

func (o *UnjoinOptions) await(ctx context.Context, most time.Duration) error {
	polls := 0
	return wait.PollUntilContextTimeout(ctx, leavePoll, most, true, func(ctx context.Context) (bool, error) {
		cluster := &clusterv1alpha1.Cluster{}
		err := o.Hub.Get(ctx, client.ObjectKey{Name: o.Name}, cluster)
		switch polls++; {
		case apierrors.IsNotFound(err):
			return true, o.observe(ctx, nil)
		case err == nil && polls%observeEvery == 0:
			err = o.observe(ctx, cluster)
		}
		return false, err
	})
}

// observe passes the cluster to the departure; nil means that it is gone.
func (o *UnjoinOptions) observe(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	if o.Departure == nil {
		return nil
	}
	return o.Departure.Observe(ctx, cluster)
}

// release removes the finalizers of the cluster's Works and of the Cluster. The
// objects are deleted first, as loops would otherwise add their finalizers again.
func (o *UnjoinOptions) release(ctx context.Context, hub side) error {
	var works workv1alpha1.WorkList
	if err := o.Hub.List(ctx, &works, client.InNamespace(workv1alpha2.ExecutionNamespace(o.Name))); err != nil {
		return fmt.Errorf("list the works of cluster %s: %w", o.Name, err)
	}
	for i := range works.Items {
		work := &works.Items[i]
		if err := hub.removeFound(ctx, work); err != nil {
			return err
		}
		if err := hub.letGo(ctx, work, workv1alpha2.ExecutionControllerFinalizer); err != nil {
			return err
		}
	}
	if err := hub.remove(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: workv1alpha2.ExecutionNamespace(o.Name)}}); err != nil {
		return err
	}
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: o.Name}}
	return hub.letGo(ctx, cluster, clusterv1alpha1.ClusterControllerFinalizer)
}

// letGo removes a finalizer from an object that is being deleted, as it is now.
// An object that was recreated under the name is left alone.
func (s side) letGo(ctx context.Context, obj client.Object, finalizer string) error {
	reported := false
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := s.client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		before, ok := obj.DeepCopyObject().(client.Object)
		if !ok || obj.GetDeletionTimestamp().IsZero() || !slices.Contains(obj.GetFinalizers(), finalizer) {
			return nil
		}
		obj.SetFinalizers(slices.DeleteFunc(obj.GetFinalizers(), func(f string) bool { return f == finalizer }))
		reported = true
		return s.client.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("let go of %s: %w", s.describe(obj), err)
	}
	if reported {
		s.report("let go of", obj)
	}
	return nil
}

// cleanUp removes from the member what Join created there, in reverse order. What
// other registrations of the member use stays.
func (o *UnjoinOptions) cleanUp(ctx context.Context) error {
	if o.Member == nil {
		return nil
	}
	if err := o.here(ctx); err != nil { // checked again, as another copy may have begun to act since
		return err
	}
	another, err := o.ceded(ctx)
	if err != nil {
		return err
	}
	shared, err := o.shared(ctx)
	if err != nil {
		return err
	}
	shared = shared || another != nil
	member := side{name: "member", client: o.Member, dry: o.DryRun, progress: o.Progress}
	objects := accounts(o.Name, o.Namespace)
	slices.Reverse(objects)
	for _, obj := range objects {
		if name := obj.GetName(); shared && (name == ImpersonatorAccount || name == o.Namespace) {
			continue
		}
		if another != nil && another.Cluster == o.Name {
			continue // the other hub has it under the same name, with the same accounts
		}
		_, isSpace := obj.(*corev1.Namespace)
		if isSpace && o.Hub != nil && Itself(ctx, o.Hub, o.Member) {
			continue // the namespace has the credentials of all clusters, and their Leases
		}
		err := member.removeFound(ctx, obj)
		if isSpace && apierrors.IsForbidden(err) {
			member.report("kept", obj) // the member needs it itself, as a control plane does
			continue
		}
		if err != nil {
			return err
		}
	}
	return o.disclaim(ctx)
}

// Itself reports whether the hub may be the member, so that what both need must
// not be removed. If either identity cannot be read, it may be. A hub without a
// namespace kube-system is not a cluster, and so not the member.
func Itself(ctx context.Context, hub, member client.Reader) bool {
	is, err := identity(ctx, hub)
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	other, err := identity(ctx, member)
	return err != nil || is == other
}

// shared reports whether the accounts' namespace has objects of other
// registrations, with this hub or another.
func (o *UnjoinOptions) shared(ctx context.Context) (bool, error) {
	own := []string{ImpersonatorAccount, accountOf(o.Name), o.Name, ImpersonatorSecret(o.Name)}
	for _, list := range []client.ObjectList{&corev1.ServiceAccountList{}, &corev1.SecretList{}} {
		if err := o.Member.List(ctx, list, client.InNamespace(o.Namespace), client.MatchingLabels(systemLabels())); err != nil {
			return false, fmt.Errorf("list the accounts in the member: %w", err)
		}
		foreign := false
		err := meta.EachListItem(list, func(obj runtime.Object) error {
			found, err := meta.Accessor(obj)
			foreign = foreign || err == nil && !slices.Contains(own, found.GetName())
			return err
		})
		if foreign || err != nil {
			return foreign, err
		}
	}
	return false, nil
}

// removeFound deletes an object if it exists and is not being deleted.
func (s side) removeFound(ctx context.Context, obj client.Object) error {
	found, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return nil
	}
	err := s.client.Get(ctx, client.ObjectKeyFromObject(obj), found)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read %s on the %s: %w", s.describe(obj), s.name, err)
	}
	if err != nil || !found.GetDeletionTimestamp().IsZero() {
		return nil
	}
	return s.remove(ctx, obj)
}
