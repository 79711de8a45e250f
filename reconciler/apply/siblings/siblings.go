// Package siblings decides which Kustomization of a source an object belongs to, where a commit moves objects between them:
// who takes over what leaves one of them, and which objects two of them hold at once.
//
// In go the results of builds, and Kustomizations as the control plane has them; out come the
// siblings that hold given objects. Two that apply one object would overwrite each other at each interval, and both be ready. A
// sibling whose objects are not known is built (Builds). It writes nothing, and keeps only what can be built again.
package siblings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Artifact is what a source fetched.
type Artifact struct {
	// Source is the source that fetched it.
	Source inventory.Source
	// Digest names it in the store, and Revision is its name for people. Both are empty if the
	// source has none, or is gone: siblings then want what they wanted last.
	Digest, Revision string
}

// Wants is what a Kustomization holds at an artifact.
type Wants struct {
	Entries []inventory.Entry
	// Children are the Kustomizations among these, with their specs.
	Children []*kustomizev1.Kustomization
	// Rules are the policies and overrides among these.
	Rules []*unstructured.Unstructured
}

// Build returns what a Kustomization holds at an artifact. An error means that this is not known.
type Build func(ctx context.Context, ks *kustomizev1.Kustomization, at Artifact) (Wants, error)

// Eligible reports whether a Kustomization is supported and may use its source, and may take over what
// another one in the given namespace applied.
type Eligible func(ks *kustomizev1.Kustomization, namespace string) bool

// Index finds siblings. Use New. It is safe for use by several goroutines.
type Index struct {
	hub      client.Reader
	build    Build
	eligible Eligible

	mu    sync.Mutex
	known map[client.ObjectKey]learned
	led   map[client.ObjectKey]led
	count int // the order of what was learned last
}

// learned is what a Kustomization was found to want, and from what that was found.
type learned struct {
	Wants
	order      int // increases with each Kustomization, spec or artifact that is learned
	uid        types.UID
	generation int64
	at         Artifact
}

// of reports whether this is what the current generation of a Kustomization wants at the artifact.
func (w learned) of(ks *kustomizev1.Kustomization, at Artifact) bool {
	return w.uid == ks.UID && w.generation == ks.Generation && w.at.Digest == at.Digest && w.at.Source == at.Source
}

// New returns an Index that has learned nothing; hub reads from a cache.
func New(hub client.Reader, build Build, eligible Eligible) *Index {
	return &Index{hub: hub, build: build, eligible: eligible, known: map[client.ObjectKey]learned{}, led: map[client.ObjectKey]led{}}
}

// Learn records what a Kustomization wants at an artifact.
func (x *Index) Learn(ks *kustomizev1.Kustomization, at Artifact, wants Wants) {
	x.mu.Lock()
	defer x.mu.Unlock()
	key := client.ObjectKeyFromObject(ks)
	next := learned{Wants: wants, uid: ks.UID, generation: ks.Generation, at: at}
	if have, ok := x.known[key]; ok && have.of(ks, at) {
		next.order = have.order
	} else {
		x.count++
		next.order = x.count
	}
	x.known[key] = next
}

// Forget drops what is known of a Kustomization that is gone.
func (x *Index) Forget(key client.ObjectKey) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.known, key)
	delete(x.led, key)
}

// Query asks which siblings hold objects.
type Query struct {
	// Of is the Kustomization that would remove them. It is not its own sibling. But if it is being deleted and
	// another one holds a Kustomization of its name, which will be created once it is gone, that one is.
	Of *kustomizev1.Kustomization
	// At is the artifact of its source.
	At Artifact
	// Objects are what it would remove.
	Objects []inventory.Entry
	// Upcoming are Kustomizations that Of is about to apply: they replace existing ones of the same name. Going
	// are those that it is about to delete.
	Upcoming []*kustomizev1.Kustomization
	Going    []client.ObjectKey
}

// Answer says which siblings hold which objects.
type Answer struct {
	// Successors is the sibling that wants each object; where several do, the oldest, then the first by name.
	Successors map[inventory.ID]client.ObjectKey
	// Taken are the objects of siblings that have applied the artifact: these have been taken over, even
	// if their labels do not say so.
	Taken map[inventory.ID]bool
	// Unknown are the siblings of which it is not known what they want, sorted: they cannot be built, and no parent drops them.
	Unknown []client.ObjectKey
}

// Ask returns which siblings hold the objects. Where the Kustomization followed another source before, those of that are siblings, too: a
// commit may move objects from it to them, and it to the other source. Errors come from the control plane or the context.
func (x *Index) Ask(ctx context.Context, q Query) (Answer, error) {
	out := Answer{Successors: map[inventory.ID]client.ObjectKey{}, Taken: map[inventory.ID]bool{}}
	if len(q.Objects) == 0 {
		return out, nil
	}
	err := x.ask(ctx, q, &out)
	for _, former := range lastgood.Former(q.Of) {
		if err == nil {
			q.At, _, err = x.Latest(ctx, former)
		}
		if err == nil {
			err = x.ask(ctx, q, &out)
		}
	}
	slices.SortFunc(out.Unknown, func(a, b client.ObjectKey) int { return cmp.Compare(a.String(), b.String()) })
	out.Unknown = slices.Compact(out.Unknown)
	return out, err
}

// ask adds to the answer what those hold that are siblings by the source of q.At.
func (x *Index) ask(ctx context.Context, q Query, out *Answer) error {
	list, err := x.siblings(ctx, q)
	if err != nil {
		return err
	}
	var unknown []client.ObjectKey
	asked := make(map[inventory.ID]bool, len(q.Objects))
	for _, e := range q.Objects {
		asked[e.ID] = true
	}
	known := map[client.ObjectKey][]*kustomizev1.Kustomization{}
	parents := parents{known: known, failed: sets.New[client.ObjectKey](), children: sets.New[client.ObjectKey]()}
	for _, ks := range list {
		known[client.ObjectKeyFromObject(ks)] = append(known[client.ObjectKeyFromObject(ks)], ks)
	}
	for i := 0; i < len(list); i++ {
		ks := list[i]
		key := client.ObjectKeyFromObject(ks)
		wants, err := x.wants(ctx, ks, q.At)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			parents.failed.Insert(key)
		}
		if err != nil && (!ks.Spec.Suspend || key == client.ObjectKeyFromObject(q.Of)) {
			unknown = append(unknown, key)
		}
		for _, child := range wants.Children {
			parents.children.Insert(client.ObjectKeyFromObject(child))
		}
		list = append(list, x.coming(known, ks, wants.Children, q)...)
		entries := applied(ks, q.At)
		for _, e := range wants.Entries {
			if !asked[e.ID] {
				continue
			}
			if _, other := out.Successors[e.ID]; !other {
				out.Successors[e.ID] = key
			}
			out.Taken[e.ID] = out.Taken[e.ID] || entries[e.ID]
		}
	}
	if q.At.Digest != "" { // else nobody knows what parents hold, only what they have applied
		unknown = parents.remaining(unknown)
	}
	out.Unknown = append(out.Unknown, unknown...)
	return nil
}

// coming returns the siblings that one of them is about to create or change, and adds them to those that are known, by name.
// An existing sibling stays known as it is, as the change may have to wait.
func (x *Index) coming(known map[client.ObjectKey][]*kustomizev1.Kustomization, by *kustomizev1.Kustomization, children []*kustomizev1.Kustomization, q Query) []*kustomizev1.Kustomization {
	var out []*kustomizev1.Kustomization
	// Without an artifact, or while the parent is suspended, nothing is created again.
	anew := q.Of.DeletionTimestamp != nil && q.At.Digest != "" && !by.Spec.Suspend
	for _, child := range children {
		key := client.ObjectKeyFromObject(child)
		same := func(ks *kustomizev1.Kustomization) bool { return equality.Semantic.DeepEqual(ks.Spec, child.Spec) }
		if (anew || key != client.ObjectKeyFromObject(q.Of)) && x.Is(child, q.Of.Namespace, q.At) && !slices.ContainsFunc(known[key], same) {
			out, known[key] = append(out, child), append(known[key], child)
		}
	}
	return out
}

// siblings returns the siblings of q.Of, the oldest first.
func (x *Index) siblings(ctx context.Context, q Query) ([]*kustomizev1.Kustomization, error) {
	all, err := list(ctx, x.hub)
	if err != nil {
		return nil, err
	}
	own := client.ObjectKeyFromObject(q.Of)
	var out []*kustomizev1.Kustomization
	add := func(ks *kustomizev1.Kustomization) {
		if client.ObjectKeyFromObject(ks) != own && x.Is(ks, q.Of.Namespace, q.At) {
			out = append(out, ks)
		}
	}
	replaced := going(all, q.Going)
	for _, ks := range q.Upcoming {
		replaced[client.ObjectKeyFromObject(ks)] = true
		add(ks)
	}
	for i := range all {
		if !replaced[client.ObjectKeyFromObject(&all[i])] {
			add(&all[i])
		}
	}
	slices.SortStableFunc(out, byAge)
	return out, nil
}

// going returns these Kustomizations and those that go with them, which they have applied: an empty folder of one of
// these leaves no doubt about what it wants. One that moves to another parent comes again with what that wants.
func going(all []kustomizev1.Kustomization, first []client.ObjectKey) map[client.ObjectKey]bool {
	byKey := make(map[client.ObjectKey]*kustomizev1.Kustomization, len(all))
	for i := range all {
		byKey[client.ObjectKeyFromObject(&all[i])] = &all[i]
	}
	out := make(map[client.ObjectKey]bool, len(first))
	for next := slices.Clone(first); len(next) > 0; next = next[1:] {
		key := next[0]
		if out[key] {
			continue
		}
		out[key] = true
		ks := byKey[key]
		if ks == nil || !inventory.Deletes(ks) {
			continue
		}
		owned, err := inventory.Here(ks)
		if err != nil {
			continue // its own run reports that
		}
		for _, child := range KeysIn(owned) {
			if byKey[child] == nil {
				continue
			}
			if by, _ := inventory.OwnerOf(byKey[child]); by == key {
				next = append(next, child)
			}
		}
	}
	return out
}

func list(ctx context.Context, hub client.Reader) ([]kustomizev1.Kustomization, error) {
	var list kustomizev1.KustomizationList
	if err := hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Kustomizations: %w", err)
	}
	return list.Items, nil
}

// Is reports whether a Kustomization is a sibling of those in the namespace that apply artifacts of the same source.
func (x *Index) Is(ks *kustomizev1.Kustomization, namespace string, at Artifact) bool {
	return ks.DeletionTimestamp == nil && inventory.SourceOf(ks) == at.Source && x.eligible(ks, namespace)
}

// byAge sorts the oldest first. One that is not created yet is the youngest.
func byAge(a, b *kustomizev1.Kustomization) int {
	if a.CreationTimestamp.IsZero() != b.CreationTimestamp.IsZero() {
		if a.CreationTimestamp.IsZero() {
			return 1
		}
		return -1
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// wants returns what a Kustomization wants at an artifact.
func (x *Index) wants(ctx context.Context, ks *kustomizev1.Kustomization, at Artifact) (Wants, error) {
	x.mu.Lock()
	have, ok := x.known[client.ObjectKeyFromObject(ks)]
	x.mu.Unlock()
	if ok && have.of(ks, at) && !varies(ks) {
		return have.Wants, nil
	}
	if at.Digest == "" {
		if ok && have.uid == ks.UID && have.generation == ks.Generation {
			return have.Wants, nil
		}
		return last(ks)
	}
	wants, err := x.build(ctx, ks, at)
	if err == nil && ks.UID != "" {
		x.Learn(ks, at, wants)
	}
	return wants, err
}

// Wants returns what a sibling, or one that is about to be made, wants at an artifact: nothing of one that cannot be built.
func (x *Index) Wants(ctx context.Context, ks *kustomizev1.Kustomization, at Artifact) (Wants, error) {
	wants, err := x.wants(ctx, ks, at)
	if err != nil {
		return Wants{}, ctx.Err()
	}
	return wants, nil
}

// varies reports whether what a Kustomization wants depends on ConfigMaps or Secrets, too.
func varies(ks *kustomizev1.Kustomization) bool {
	return ks.Spec.PostBuild != nil && len(ks.Spec.PostBuild.SubstituteFrom) > 0
}

// last returns what a Kustomization applied last. It returns an error if that is nothing, or cannot be read.
func last(ks *kustomizev1.Kustomization) (Wants, error) {
	if ks.Status.LastAppliedRevision == "" {
		return Wants{}, errors.New("it was never applied")
	}
	entries, err := inventory.Here(ks)
	return Wants{Entries: entries}, err
}

// applied returns the objects of a Kustomization that has applied the artifact's revision with its current generation
// and is ready; nil for any other.
func applied(ks *kustomizev1.Kustomization, at Artifact) map[inventory.ID]bool {
	if !apimeta.IsStatusConditionTrue(ks.Status.Conditions, meta.ReadyCondition) || ks.Status.ObservedGeneration != ks.Generation ||
		at.Revision == "" || ks.Status.LastAppliedRevision != at.Revision {
		return nil
	}
	entries, err := inventory.Here(ks)
	if err != nil {
		return nil
	}
	out := make(map[inventory.ID]bool, len(entries))
	for _, e := range entries {
		out[e.ID] = true
	}
	return out
}

// Shared is an object that two Kustomizations hold: this one, and With.
type Shared struct {
	ID   inventory.ID
	With client.ObjectKey
}

// Claim is whether a Kustomization wants an object. The zero value means that this is not known.
type Claim int

const (
	// Holds says that it wants the object.
	Holds Claim = iota + 1
	// GaveUp says that it is gone, or that its build does not hold the object.
	GaveUp
)

// ClaimOf returns whether the Kustomization that an object's labels name wants it at the artifact, with the spec that one of upcoming gives
// it, if one does. Nothing is known of one that is suspended, cannot be built, or has another source.
func (x *Index) ClaimOf(ctx context.Context, of *kustomizev1.Kustomization, at Artifact, id inventory.ID, owner client.ObjectKey, upcoming ...*kustomizev1.Kustomization) (Claim, error) {
	ks := &kustomizev1.Kustomization{}
	switch err := x.hub.Get(ctx, owner, ks); {
	case apierrors.IsNotFound(err):
		return GaveUp, nil
	case err != nil:
		return 0, fmt.Errorf("read the Kustomization %s: %w", owner, err)
	case !x.Is(ks, of.Namespace, at) || ks.Spec.Suspend:
		return 0, nil
	}
	ks, changes := asUpcoming(ks, upcoming)
	if changes && !x.Is(ks, of.Namespace, at) {
		return 0, nil
	}
	wants, err := x.wants(ctx, ks, at)
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err != nil:
		return 0, nil
	case slices.ContainsFunc(wants.Entries, func(e inventory.Entry) bool { return e.ID == id }):
		return Holds, nil
	default:
		return GaveUp, nil
	}
}

// Earlier returns those of the objects that a sibling wants at the artifact as well, if the sibling was learned
// before this one. It builds nothing but those that upcoming ones give another spec: of two that share an object, the one that is learned
// later notices.
func (x *Index) Earlier(ctx context.Context, of *kustomizev1.Kustomization, at Artifact, objects []inventory.Entry, upcoming ...*kustomizev1.Kustomization) ([]Shared, error) {
	if len(objects) == 0 {
		return nil, nil
	}
	asked := make(map[inventory.ID]bool, len(objects))
	for _, e := range objects {
		asked[e.ID] = true
	}
	var out []Shared
	for key, shared := range x.matches(client.ObjectKeyFromObject(of), at, asked) {
		ks := &kustomizev1.Kustomization{}
		err := x.hub.Get(ctx, key, ks)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read the Kustomization %s: %w", key, err)
		}
		if err != nil || !x.Is(ks, of.Namespace, at) || ks.Spec.Suspend || !shared.of(ks, at) {
			continue
		}
		entries := shared.Entries
		if next, changes := asUpcoming(ks, upcoming); changes {
			wants, err := x.Wants(ctx, next, at)
			if err != nil {
				return nil, err
			}
			entries = wants.Entries
		}
		for _, e := range entries {
			if asked[e.ID] {
				out = append(out, Shared{ID: e.ID, With: key})
			}
		}
	}
	return out, nil
}

// matches returns what was learned of others at the artifact before own was, where that contains one of the
// objects.
func (x *Index) matches(own client.ObjectKey, at Artifact, asked map[inventory.ID]bool) map[client.ObjectKey]learned {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := map[client.ObjectKey]learned{}
	before := x.known[own].order
	for key, w := range x.known {
		if key != own && w.order < before && w.at.Digest == at.Digest && w.at.Source == at.Source && slices.ContainsFunc(w.Entries, func(e inventory.Entry) bool { return asked[e.ID] }) {
			out[key] = w
		}
	}
	return out
}
