package execution

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/execution/ownermeta"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// Two Works of a cluster may ask for one object: two templates that overrides
// rename into one, or a Work that a user wrote. The object belongs to the Work
// that it names, as long as that asks for it. The other waits and says so: were
// it applied, too, each look at either would undo the other.

// heldError says that another Work has the object of a manifest.
type heldError struct {
	manifest *manifest
	holder   client.ObjectKey
}

// Error names the Work that has it.
func (e *heldError) Error() string {
	return fmt.Sprintf("%s is held by the Work %s, and one object comes from one Work only: take it out of one of the two",
		e.manifest.title(), e.holder)
}

// cause is what the Work waits for.
func (e *heldError) cause() waitqueue.Cause {
	return waitqueue.Cause{Event: waitqueue.OnOwner, Kind: e.manifest.gvk, Object: e.manifest.key, Owner: e.holder}
}

// owners knows which Works of a lane ask for an object.
type owners struct {
	loop    *Reconciler
	applied *applyCache

	mu sync.Mutex
	// byHand are the Works that no binding made: they may ask for anything. All others are
	// named after their one object.
	byHand map[client.ObjectKey]bool
}

// note takes a Work in.
func (h *owners) note(work *workv1alpha1.Work) {
	_, made := bindings.OwnerOf(work)
	h.mu.Lock()
	defer h.mu.Unlock()
	if key := client.ObjectKeyFromObject(work); made {
		delete(h.byHand, key)
	} else {
		h.byHand[key] = true
	}
}

func (h *owners) forget(key client.ObjectKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.byHand, key)
}

// mayAsk returns the Works of a namespace that may ask for the object of a manifest, sorted
// behind the one that is named after it.
func (h *owners) mayAsk(namespace string, m *manifest) []client.ObjectKey {
	h.mu.Lock()
	defer h.mu.Unlock()
	named := client.ObjectKey{Namespace: namespace, Name: workv1alpha2.WorkName(m.gvk.Kind, m.key.Name, m.key.Namespace)}
	former := client.ObjectKey{Namespace: namespace, Name: workv1alpha2.FormerWorkName(m.gvk.Kind, m.key.Name, m.key.Namespace)}
	others := slices.SortedFunc(maps.Keys(h.byHand), func(a, b client.ObjectKey) int { return strings.Compare(a.String(), b.String()) })
	return append([]client.ObjectKey{named, former}, others...)
}

// conflict returns a *heldError if another Work has an object that says of itself
// what says does; nil stands for no object. What a member writes into an object
// only counts where that Work asks for it.
func (h *owners) conflict(ctx context.Context, s *state, m *manifest, says *members.Observed) error {
	if says == nil || says.Work == s.key || says.Work.Namespace != s.key.Namespace || says.Work.Name == "" || s.foreign(says) {
		return nil
	}
	asks, err := h.asks(ctx, says.Work, m)
	if err != nil || !asks {
		return err
	}
	held := &heldError{manifest: m, holder: says.Work}
	if h.succeeds(ctx, s, says.Work) { // both are one Work, which is being renamed
		return &waitqueue.Blocked{Cause: held.cause(), After: waitqueue.SafetyNet, Err: held}
	}
	return held
}

// succeeds reports whether the Work takes the place of another one, which is there under
// the name that it had formerly.
func (h *owners) succeeds(ctx context.Context, s *state, other client.ObjectKey) bool {
	former := &workv1alpha1.Work{}
	return other == ownermeta.Former(s.work) && h.loop.hub.Get(ctx, other, former, unsafeGet) == nil && plan.Succeeds(s.work, former)
}

// asks reports whether a Work asks for the object of a manifest, and has not let go
// of it.
func (h *owners) asks(ctx context.Context, key client.ObjectKey, m *manifest) (bool, error) {
	work := &workv1alpha1.Work{}
	err := h.loop.hub.Get(ctx, key, work, unsafeGet)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read work %s: %w", key, err)
	}
	if !work.DeletionTimestamp.IsZero() && !holds(work) {
		return false, nil
	}
	return slices.ContainsFunc(h.applied.manifests(work), m.same), nil
}

// freed reports whether what a Work waits for has come to pass already, if it waits
// for another Work.
func (h *owners) freed(ctx context.Context, err error) bool {
	var held *heldError
	if !errors.As(err, &held) {
		return false
	}
	asks, err := h.asks(ctx, held.holder, held.manifest)
	return err == nil && !asks
}

// successor returns a Work that asks for the object of a manifest, which the given one lets go
// of, and stays itself; none if ok is false.
func (h *owners) successor(ctx context.Context, s *state, m *manifest) (successor client.ObjectKey, ok bool, err error) {
	for _, key := range h.mayAsk(s.key.Namespace, m) {
		if key == s.key {
			continue
		}
		work := &workv1alpha1.Work{}
		switch err := h.loop.hub.Get(ctx, key, work, unsafeGet); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return key, false, fmt.Errorf("read work %s: %w", key, err)
		case slices.ContainsFunc(h.applied.manifests(work), m.same) && h.loop.parting.Stays(ctx, work):
			return key, true, nil
		}
	}
	return client.ObjectKey{}, false, nil
}

// same reports whether another manifest is about the same object.
func (m *manifest) same(other manifest) bool {
	return other.err == nil && m.key == other.key && m.gvk.GroupKind() == other.gvk.GroupKind()
}

// identity is what one object in a member is known by, whatever its version.
type identity struct {
	group, kind string
	key         types.NamespacedName
}

// claim has this Work alone send the object of a manifest until done is called;
// ok is false while another does.
func (l *applyCache) claim(m *manifest) (done func(), ok bool) {
	o := identity{m.gvk.Group, m.gvk.Kind, m.key}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sending[o] {
		return nil, false
	}
	l.sending[o] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.sending, o)
	}, true
}
