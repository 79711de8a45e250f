package forecast

import (
	"context"
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/sources/build"
)

// Forecaster foresees what Kustomizations apply.
type Forecaster struct {
	// Build returns what a Kustomization holds of files.
	Build func(ctx context.Context, ks *kustomizev1.Kustomization, files *build.Tree) ([]*unstructured.Unstructured, error)
	// Eligible says which Kustomizations may take over what leaves others.
	Eligible siblings.Eligible
	// Scope says which kinds have namespaces.
	Scope Scope
	// Look returns an object of the control plane that a state does not have; nil if there is none. A nil Look finds none.
	Look func(ctx context.Context, of inventory.Entry) (*unstructured.Unstructured, error)
	// Complete returns the objects of one Kustomization as the control plane would store them, or a NotTakenError; nil leaves
	// them as they are.
	Complete func(ctx context.Context, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error)
	// Brake limits deletions.
	Brake inventory.Brake
}

// NotTakenError says that the control plane will not take an object.
type NotTakenError struct{ Err error }

// Error implements error.
func (e NotTakenError) Error() string { return e.Err.Error() }

// Unwrap returns what the control plane says.
func (e NotTakenError) Unwrap() error { return e.Err }

// Revision is what a source has.
type Revision struct {
	Source inventory.Source
	// Name is the revision for people, such as "main@sha1:9f2c…"; empty for files that are no revision yet.
	Name string
	// Allows are the objects whose deletion its commit allows, separated by commas.
	Allows string
	Files  *build.Tree
	// Digest returns a digest of the files that a Kustomization with a path may read, for one that cannot be built of them. Nil: not known.
	Digest func(path string) string
	// Stands says that the control plane is taken to have applied it. Values of Secrets that a state withholds are replaced
	// by those of the files then, and nothing of it is reported.
	Stands bool
}

// unnamed stands for the name of a revision that has none.
const unnamed = "0000000-of-this-change"

// digest returns a digest of the files that a Kustomization with this path may read; empty if it is not known.
func (r Revision) digest(path string) string {
	if r.Digest == nil {
		return ""
	}
	return r.Digest(path)
}

func (r Revision) name() string {
	if r.Name == "" {
		return unnamed
	}
	return r.Name
}

// words returns a text of the apply loop about a revision that may have no name.
func (r Revision) words(text string) string {
	if r.Name != "" {
		return text
	}
	text = strings.ReplaceAll(text, "revision "+unnamed, "this change")
	return strings.ReplaceAll(text, unnamed, "COMMIT")
}

// Query is what is asked of a Forecaster.
type Query struct {
	// Before is the state that the revision meets.
	Before   State
	Revision Revision
	// Only names a Kustomization: what neither it applies nor those that it applies is left as it is. Empty for all.
	Only client.ObjectKey
}

// Outcome is what a revision makes of a state.
type Outcome struct {
	// Before is the state before, with what Look has found. After is the one after.
	Before, After State
	// Risks are what is refused, and what is not followed. What somebody can allow is in After as if it was allowed.
	Risks []comparison.Risk
	// Still says what was refused before in the same words, one line each.
	Still []string
}

// After returns the state once all Kustomizations of the source have applied a revision. It returns an error if none
// follows the source, if the control plane cannot be asked, or if the context ends.
func (f *Forecaster) After(ctx context.Context, q Query) (Outcome, error) {
	if !slices.ContainsFunc(sorted(q.Before.Kustomizations), func(key client.ObjectKey) bool {
		return inventory.SourceOf(q.Before.Kustomizations[key]) == q.Revision.Source
	}) {
		return Outcome{}, fmt.Errorf("no Kustomization has the source %s", q.Revision.Source)
	}
	c := &course{
		Forecaster: f, revision: q.Revision, before: q.Before.clone(), held: map[client.ObjectKey]refusal{}, builds: map[client.ObjectKey]made{},
		at: siblings.Artifact{Source: q.Revision.Source, Digest: "of this change", Revision: q.Revision.name()},
	}
	for {
		if err := c.settle(ctx); err != nil {
			return Outcome{}, err
		}
		holder := holder{c}
		more, err := holder.hold(ctx)
		if err == nil && !more {
			more, err = holder.complete(ctx, result{c}.within(q.Only))
		}
		if err == nil && !more {
			more = holder.strand()
		}
		if err != nil {
			return Outcome{}, err
		}
		if !more {
			break
		}
	}
	return result{c}.outcome(ctx, q.Only)
}

// result puts together what was found out.
type result struct{ *course }

// outcome returns all of it; only is a Kustomization to whose part it is limited, empty for none.
func (c result) outcome(ctx context.Context, only client.ObjectKey) (Outcome, error) {
	laid, removed := c.changes()
	within := c.within(only)
	laid = slices.DeleteFunc(laid, func(obj *unstructured.Unstructured) bool { return !c.concerns(within, obj) })
	for id := range removed {
		if !c.concerns(within, c.before.Objects[id]) {
			delete(removed, id)
		}
	}
	if err := c.look(ctx, laid); err != nil {
		return Outcome{}, err
	}
	out := Outcome{Before: c.before, After: c.before.clone()}
	var err error
	if !c.revision.Stands {
		if out.Risks, err = (assessor{c.course}).risks(ctx, within); err != nil {
			return Outcome{}, err
		}
		out.Still = assessor{c.course}.still(within)
	}
	after := &out.After
	after.Fleet = Without(after.Fleet, func(id inventory.ID, _ metav1.Object) bool { return removed[id] })
	if after.Fleet, err = With(after.Fleet, laid, !c.revision.Stands); err != nil {
		return Outcome{}, err
	}
	for id := range removed {
		delete(after.Objects, id)
	}
	for _, obj := range laid {
		after.Objects[inventory.IDOf(obj)] = obj
	}
	c.record(after)
	after.contents = dormancy{c.course}.contents(ctx)
	if !c.revision.Stands {
		out.Risks = append(out.Risks, dormancy{c.course}.risks(after.contents, within, out.Risks)...)
		slices.SortFunc(out.Risks, byPolicy)
	}
	return out, nil
}

// changes returns what is applied, and what is deleted. What one Kustomization deletes and another one applies is not
// deleted.
func (c result) changes() (laid []*unstructured.Unstructured, removed map[inventory.ID]bool) {
	removed = map[inventory.ID]bool{}
	for _, leaving := range c.leaving {
		for _, e := range leaving.Deleted {
			removed[e.ID] = true
		}
	}
	applied := map[inventory.ID]bool{}
	for _, key := range sorted(c.alive) {
		m, applies := c.applies(key)
		if !applies {
			continue
		}
		for _, obj := range m.objects {
			id := inventory.IDOf(obj)
			if applied[id] {
				continue
			}
			applied[id] = true
			delete(removed, id)
			if there := c.before.Objects[id]; !applier.Skips(obj, there) {
				laid = append(laid, obj)
			}
		}
	}
	return laid, removed
}

// record writes into a state who owns what, and which Kustomizations there are.
func (c result) record(after *State) {
	after.Kustomizations, after.refused = c.alive, map[client.ObjectKey]string{}
	for key := range c.before.Kustomizations {
		if c.alive[key] == nil {
			delete(after.Owned, key)
		}
	}
	for key := range c.alive {
		m, applies := c.applies(key)
		if applies {
			after.Owned[key] = inventory.Union(c.leaving[key].Staying(), m.entries)
		}
		// What another one has taken is not its own any more.
		after.Owned[key] = slices.DeleteFunc(slices.Clone(after.Owned[key]), func(e inventory.Entry) bool {
			owner, has := inventory.OwnerOf(labelsOf(after.Objects[e.ID]))
			return has && owner != key && c.alive[owner] != nil
		})
		if why, is := c.held[key]; is {
			after.refused[key] = why.text
		}
		if m.err != nil {
			after.refused[key] = m.err.Error()
		}
	}
	after.suspended = c.suspended
}

// labels are those of an object that may not be there.
type labels map[string]string

// GetLabels implements inventory.Labelled.
func (l labels) GetLabels() map[string]string { return l }

func labelsOf(obj *unstructured.Unstructured) labels {
	if obj == nil {
		return nil
	}
	return obj.GetLabels()
}

// within returns a Kustomization, and those that it applies before or after; nil for all.
func (c result) within(only client.ObjectKey) map[client.ObjectKey]bool {
	if only == (client.ObjectKey{}) {
		return nil
	}
	out, next := map[client.ObjectKey]bool{}, []client.ObjectKey{only}
	for len(next) > 0 {
		key := next[0]
		if next = next[1:]; out[key] {
			continue
		}
		out[key] = true
		next = append(next, siblings.KeysIn(c.before.Owned[key])...)
		if m, applies := c.applies(key); applies {
			next = append(next, siblings.KeysIn(m.entries)...)
		}
	}
	return out
}

// concerns reports whether one of these Kustomizations owns an object before or after.
func (c result) concerns(within map[client.ObjectKey]bool, obj *unstructured.Unstructured) bool {
	if within == nil {
		return true
	}
	after, _ := inventory.OwnerOf(labelsOf(obj))
	before, _ := inventory.OwnerOf(labelsOf(c.before.Objects[inventory.IDOf(obj)]))
	return within[after] || within[before]
}
