package revisiongate

import (
	"context"
	"slices"
	"sync"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Condition is the type of the condition that is True on a Kustomization while it is switched.
const Condition = "Switching"

// ReasonWritten is the condition's reason once all of the revision is written, which counts when others with which
// the Kustomization exchanges objects have written it, too.
const ReasonWritten = "Written"

// ReasonDefining is the condition's reason while nothing of the revision is written but namespaces and kinds: they alone are held.
const ReasonDefining = "Defining"

// Listener receives what takes effect from now on. Functions must return at once; nil ones are not called.
type Listener struct {
	// Override is called with the versions of an override, before and after, once the last one is in force.
	Override func(versions ...policyv1alpha1.Override)
	// Ending is called for each override whose version in force changes with the end of a switch, just
	// before it is.
	Ending func(owner client.ObjectKey, versions ...policyv1alpha1.Override)
	// Ended is called once a Kustomization is not switched any more, or something that left it is not
	// leaving any more.
	Ended func(owner client.ObjectKey)
}

type listeners []Listener

func (l listeners) ended(owners ...client.ObjectKey) {
	for _, owner := range owners {
		for _, l := range l {
			if l.Ended != nil {
				l.Ended(owner)
			}
		}
	}
}

// Tracker knows what is being switched, and the overrides in force. Use New. It is safe for use by
// several goroutines.
type Tracker struct {
	watches watches

	mu sync.RWMutex
	// begun are the Kustomizations that are switched here; stated are those of which the control
	// plane's status says that they are being switched.
	begun, stated map[client.ObjectKey]bool
	// mixed are those that are stated and were not begun here: which overrides counted before is not
	// known.
	mixed map[client.ObjectKey]bool
	// definitions are those that write namespaces and kinds before all else.
	definitions definitions
	// joined are the Kustomizations with which another one, the key, stops being switched; resumed are those of them that the
	// control plane's status says, and nobody here yet.
	joined    joins
	resumed   joins
	overrides overrides
	leaving   leaving
	suspends  suspends
	lives     lives
	retired   retired

	listeners listeners
	synced    []toolscache.InformerSynced

	// ends is held while a switch may end, and by who joins one.
	ends sync.Mutex
}

// New returns a Tracker that knows of nothing. hub reads from the cache that loops read from.
func New(hub client.Reader, templates Templates) *Tracker {
	return &Tracker{
		watches: watches{hub: hub, templates: templates},
		begun:   map[client.ObjectKey]bool{}, stated: map[client.ObjectKey]bool{}, mixed: map[client.ObjectKey]bool{},
		definitions: definitions{begun: map[client.ObjectKey]bool{}, stated: map[client.ObjectKey]bool{}},
		joined:      joins{},
		resumed:     joins{},
		overrides:   newOverrides(), leaving: leaving{}, suspends: suspends{}, lives: lives{}, retired: retired{},
	}
}

// Listen adds a listener, before the cache of the control plane starts.
func (t *Tracker) Listen(l Listener) { t.listeners = append(t.listeners, l) }

// Begin records that a Kustomization is going to be switched: to be called before its status says so, and
// again by a run that continues it, or switches all after it wrote definitions.
func (t *Tracker) Begin(owner client.ObjectKey, of Extent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if of == Definitions {
		t.definitions.begun[owner] = true
	} else {
		t.begun[owner] = true
	}
}

// End records that a Kustomization is switched, after its status says so: to be called once all that was
// written is seen. What left the revision, and is not gone yet, keeps the overrides that counted before.
func (t *Tracker) End(ctx context.Context, owner client.ObjectKey, leaving []inventory.Entry) {
	t.mu.RLock()
	dropped, retiring := kustomizationsIn(leaving), []client.ObjectKey(nil)
	for _, key := range dropped {
		retiring = append(retiring, t.lives.madeBy(key)...)
	}
	kustomizations := t.lives.among(retiring)
	t.mu.RUnlock()
	resources, held := t.watches.resources(ctx, leaving), t.watches.held(ctx, kustomizations)
	t.end(owner, func() {
		if t.begun[owner] {
			t.joined.leave(owner, t.resumed)
		}
		delete(t.begun, owner)
		delete(t.definitions.begun, owner)
		t.leaving.keep(owner, resources, &t.overrides, t.mixed)
		for _, key := range dropped {
			t.leaving.add(owner, inventory.OfKustomization(key), left{})
		}
		for _, key := range retiring {
			t.retired.keep(key, held[key], &t.overrides, t.mixed)
		}
	})
}

// observe records an event of a Kustomization; nil is one that is gone. First is true for what existed before the watch began.
func (t *Tracker) observe(ctx context.Context, owner client.ObjectKey, ks *kustomizev1.Kustomization, first bool) {
	var fresh []selector.Resource
	if !first && !states(ks) {
		t.mu.RLock()
		entries := t.leaving.fresh(owner, ks)
		t.mu.RUnlock()
		fresh = t.watches.resources(ctx, entries)
	}
	t.mu.Lock()
	differs := t.lives.observe(owner, ks)
	t.leaving.keep(owner, fresh, &t.overrides, t.mixed)
	if !states(ks) { // before it ends: what left it is not carried in between
		differs = t.leaving.observe(owner, ks) || differs
		differs = t.suspends.observe(owner, ks) || differs
	}
	t.mu.Unlock()
	if differs {
		concerned := retire(ctx, t, owner, first)
		defer func() { t.listeners.ended(concerned...) }()
	}
	if !states(ks) {
		defines := says(ks)
		t.end(owner, func() {
			delete(t.stated, owner)
			if !defines {
				delete(t.definitions.stated, owner)
			}
		})
		t.mu.Lock()
		if defines {
			t.definitions.stated[owner] = true
		}
		t.mu.Unlock()
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.definitions.stated, owner)
	if t.stated[owner] = true; !t.begun[owner] {
		t.mixed[owner] = true
		for _, other := range partners(owner, ks) {
			t.joined.add(other, owner)
			t.resumed.add(other, owner)
			if !t.begun[other] {
				t.mixed[other] = true
			}
		}
	}
}

// states reports whether a Kustomization's status says that it is being switched, with all that it holds.
func states(ks *kustomizev1.Kustomization) bool {
	return says(ks) && HoldsAll(ks.Status.Conditions)
}

// says reports whether a Kustomization's status says that some of a revision is written.
func says(ks *kustomizev1.Kustomization) bool {
	return ks != nil && !ks.Spec.Suspend && apimeta.IsStatusConditionTrue(ks.Status.Conditions, Condition) && (ks.DeletionTimestamp.IsZero() || HandsOver(ks))
}

// HandsOver reports whether a Kustomization that is being deleted was being switched, and others have yet to take some of it:
// they finish that.
func HandsOver(ks *kustomizev1.Kustomization) bool {
	return !ks.DeletionTimestamp.IsZero() && !ks.Spec.Suspend && apimeta.IsStatusConditionTrue(ks.Status.Conditions, Condition) && len(inventory.Undecided(ks.Status)) > 0
}

// end calls a function that may end a switch. If it does, all that was written takes effect from then on, and so does
// what Kustomizations wrote that have joined it.
func (t *Tracker) end(owner client.ObjectKey, do func()) {
	t.ends.Lock()
	defer t.ends.Unlock()
	// Anything of it waits for the end of a switch.
	holds := func(o client.ObjectKey) bool { return t.switches(o) || t.definitions.of(o) }
	t.mu.Lock()
	var were []client.ObjectKey
	pending := map[client.ObjectKey][][]policyv1alpha1.Override{}
	for _, o := range t.joined.by(owner) {
		if holds(o) {
			were, pending[o] = append(were, o), t.overrides.awaiting(o)
		}
	}
	t.mu.Unlock()
	if len(were) == 0 {
		return
	}
	for _, l := range t.listeners {
		for _, o := range were {
			for _, versions := range pending[o] {
				if l.Ending != nil {
					l.Ending(o, versions...)
				}
			}
		}
	}
	t.mu.Lock()
	do()
	ended := slices.DeleteFunc(were, holds)
	for _, o := range ended {
		delete(t.mixed, o)
		delete(t.joined, o)
		delete(t.resumed, o)
		t.overrides.countPending(o)
	}
	t.mu.Unlock()
	t.listeners.ended(ended...)
}

// switches reports whether a Kustomization is being switched, or one that it has joined.
func (t *Tracker) switches(owner client.ObjectKey) bool {
	itself := func(o client.ObjectKey) bool { return t.begun[o] || t.stated[o] }
	return itself(owner) || len(t.joined[owner]) > 0 && slices.ContainsFunc(t.joined.with(owner), itself)
}

// Switching returns the Kustomization that holds an object and is being switched, as far as the object goes; false if none is.
func (t *Tracker) Switching(obj inventory.Labelled) (client.ObjectKey, bool) {
	if obj == nil {
		return client.ObjectKey{}, false
	}
	owner, owned := inventory.OwnerOf(obj)
	if !owned {
		return owner, false
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return owner, t.switches(owner) || isDefinition(obj) && t.definitions.of(owner)
}

// IsSwitching reports whether a Kustomization is being switched.
func (t *Tracker) IsSwitching(owner client.ObjectKey) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.switches(owner)
}

// Overrides returns the overrides in force for a resource. Where that is not known, known is false, and
// owner is the Kustomization that another replica began to switch, that the resource left, or that is about to be deleted with it.
func (t *Tracker) Overrides(r selector.Resource) (found []policyv1alpha1.Override, owner client.ObjectKey, known bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	owner, owned := inventory.OwnerOf(labelled(r.Labels))
	if l, leaving := t.leaving[owner][idOf(r)]; owned && leaving && !t.suspends[owner] {
		return l.overrides, owner, l.known
	}
	if owned && t.lives.retires(owner, t.leaving, t.suspends) {
		l := t.retired[owner][idOf(r)]
		return l.overrides, owner, l.known
	}
	return t.overrides.inForce(r, owner, t.mixed)
}

// EachOverride calls yield with every override in force, in no order.
func (t *Tracker) EachOverride(yield func(policyv1alpha1.Override)) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	t.overrides.index.Each(yield)
}

type labelled map[string]string

func (l labelled) GetLabels() map[string]string { return l }
