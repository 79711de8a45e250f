package owners

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/execution/manifest"
	"github.com/flotilla-io/flotilla/reconciler/execution/ownermeta"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
	"github.com/flotilla-io/flotilla/reconciler/execution/workfinalizer"
)

// Owned is the error of a manifest whose object another Work owns.
type Owned struct {
	manifest *manifest.Manifest
	owner    client.ObjectKey
}

// Error names the owner.
func (o *Owned) Error() string {
	return fmt.Sprintf("%s is held by the Work %s, and one object comes from one Work only: take it out of one of the two",
		o.manifest.Title(), o.owner)
}

// Cause returns what the Work waits for.
func (o *Owned) Cause() waitqueue.Cause {
	return waitqueue.Cause{Event: waitqueue.OnOwner, Kind: o.manifest.GVK, Object: o.manifest.Key, Owner: o.owner}
}

// IsOwned reports whether err is an *Owned.
func IsOwned(err error) bool { return errors.As(err, new(*Owned)) }

// Manifests returns the manifests of Works.
type Manifests interface {
	Of(work *workv1alpha1.Work) []manifest.Manifest
}

// WorkKeeper reports which Works are not being deleted.
type WorkKeeper interface {
	Stays(ctx context.Context, work *workv1alpha1.Work) bool
}

// Owners knows which Works of a cluster ask for an object. Use New. It is safe for use by
// several goroutines.
type Owners struct {
	hub       client.Reader
	manifests Manifests
	finalizer WorkKeeper

	mu sync.Mutex
	// byHand are the Works that people wrote, which may have any manifests. All others have a binding, and are
	// named after their one object.
	byHand map[client.ObjectKey]bool
}

// New returns Owners without any Works.
func New(hub client.Reader, manifests Manifests, p WorkKeeper) *Owners {
	return &Owners{hub: hub, manifests: manifests, finalizer: p, byHand: map[client.ObjectKey]bool{}}
}

// Note records a Work, or a change of it.
func (o *Owners) Note(work *workv1alpha1.Work) {
	_, made := bindings.OwnerOf(work)
	o.mu.Lock()
	defer o.mu.Unlock()
	if key := client.ObjectKeyFromObject(work); made {
		delete(o.byHand, key)
	} else {
		o.byHand[key] = true
	}
}

// Forget drops what is kept of a Work that is gone.
func (o *Owners) Forget(work client.ObjectKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.byHand, work)
}

// Conflict returns an *Owned if another Work owns the object of a manifest. says is the object's metadata; nil
// stands for no object. If work is the other Work under its new name, the error is a *waitqueue.Blocked.
// A member may write any metadata, so another Work counts only if it has a manifest for the object.
func (o *Owners) Conflict(ctx context.Context, work *workv1alpha1.Work, member ownermeta.Member, m *manifest.Manifest, says *members.Observed) error {
	key := client.ObjectKeyFromObject(work)
	if says == nil || says.Work == key || says.Work.Namespace != key.Namespace || says.Work.Name == "" || ownermeta.OwnerOf(work, member).Foreign(says) {
		return nil
	}
	asks, err := o.Asks(ctx, says.Work, m)
	if err == nil && !asks && says.Work == ownermeta.Former(work) {
		return o.outdated(ctx, work)
	}
	if err != nil || !asks {
		return err
	}
	owned := &Owned{manifest: m, owner: says.Work}
	if o.succeeds(ctx, work, says.Work) { // both are the same Work, which is being renamed
		return &waitqueue.Blocked{Cause: owned.Cause(), After: waitqueue.SafetyNet, Err: owned}
	}
	return owned
}

// outdated returns a *waitqueue.Blocked for a Work that has been written since it was read: a rename may have given it
// the record of what was applied under its former name. The cache that has lost the former Work also has
// that write, as it was made before.
func (o *Owners) outdated(ctx context.Context, work *workv1alpha1.Work) error {
	key, latest := client.ObjectKeyFromObject(work), &workv1alpha1.Work{}
	if err := o.hub.Get(ctx, key, latest, client.UnsafeDisableDeepCopy); err != nil {
		return client.IgnoreNotFound(err)
	}
	if latest.ResourceVersion == work.ResourceVersion {
		return nil
	}
	return &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnRetry}, Err: fmt.Errorf("the Work %s was written since it was read", key)}
}

// succeeds reports whether the Work replaces another one, which still exists under its
// former name.
func (o *Owners) succeeds(ctx context.Context, work *workv1alpha1.Work, other client.ObjectKey) bool {
	former := &workv1alpha1.Work{}
	return other == ownermeta.Former(work) && o.hub.Get(ctx, other, former, client.UnsafeDisableDeepCopy) == nil && plan.Succeeds(work, former)
}

// Asks reports whether a Work has a manifest for the same object. One that is being deleted counts until its finalizer
// is removed.
func (o *Owners) Asks(ctx context.Context, key client.ObjectKey, m *manifest.Manifest) (bool, error) {
	work := &workv1alpha1.Work{}
	err := o.hub.Get(ctx, key, work, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read work %s: %w", key, err)
	}
	if !work.DeletionTimestamp.IsZero() && !workfinalizer.Has(work) {
		return false, nil
	}
	return slices.ContainsFunc(o.manifests.Of(work), m.Same), nil
}

// Freed reports whether err is an *Owned whose owner has released the object already.
func (o *Owners) Freed(ctx context.Context, err error) bool {
	var owned *Owned
	if !errors.As(err, &owned) {
		return false
	}
	asks, err := o.Asks(ctx, owned.owner, owned.manifest)
	return err == nil && !asks
}

// Successor returns another Work with a manifest for the same object that is not being deleted, when the given Work
// releases the object; none if ok is false.
func (o *Owners) Successor(ctx context.Context, of client.ObjectKey, m *manifest.Manifest) (successor client.ObjectKey, ok bool, err error) {
	for _, key := range o.mayAsk(of.Namespace, m) {
		if key == of {
			continue
		}
		work := &workv1alpha1.Work{}
		switch err := o.hub.Get(ctx, key, work, client.UnsafeDisableDeepCopy); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return key, false, fmt.Errorf("read work %s: %w", key, err)
		case slices.ContainsFunc(o.manifests.Of(work), m.Same) && o.finalizer.Stays(ctx, work):
			return key, true, nil
		}
	}
	return client.ObjectKey{}, false, nil
}

// mayAsk returns the Works of a namespace that may have a manifest for the same object: first those whose name
// follows from the object, and then the ones that people wrote, sorted.
func (o *Owners) mayAsk(namespace string, m *manifest.Manifest) []client.ObjectKey {
	o.mu.Lock()
	defer o.mu.Unlock()
	named := client.ObjectKey{Namespace: namespace, Name: workv1alpha2.WorkName(m.GVK.Kind, m.Key.Name, m.Key.Namespace)}
	former := client.ObjectKey{Namespace: namespace, Name: workv1alpha2.FormerWorkName(m.GVK.Kind, m.Key.Name, m.Key.Namespace)}
	others := slices.SortedFunc(maps.Keys(o.byHand), func(a, b client.ObjectKey) int { return strings.Compare(a.String(), b.String()) })
	return append([]client.ObjectKey{named, former}, others...)
}
