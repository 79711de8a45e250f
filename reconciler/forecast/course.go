package forecast

import (
	"context"
	"fmt"
	"maps"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// mostRounds is how deep Kustomizations that apply others are followed.
const mostRounds = 32

// course is how a revision is applied, found out round by round: a Kustomization among the files changes what others
// hold, and with that which Kustomizations there are.
type course struct {
	*Forecaster
	revision Revision
	at       siblings.Artifact
	before   State

	// alive are the Kustomizations as they will be, and gone those that are deleted.
	alive map[client.ObjectKey]*kustomizev1.Kustomization
	gone  map[client.ObjectKey]bool
	// held are those that do not apply the revision.
	held map[client.ObjectKey]refusal
	// builds are what each holds, for the Kustomization as it was when it was built.
	builds map[client.ObjectKey]made
	// leaving is what leaves each, and suspended are those that files suspend.
	leaving   map[client.ObjectKey]siblings.Handover
	suspended map[client.ObjectKey]bool
	// endless says that the rounds did not come to an end.
	endless bool
}

// made is what a Kustomization holds of the files.
type made struct {
	of      *kustomizev1.Kustomization
	objects []*unstructured.Unstructured
	entries []inventory.Entry
	wants   siblings.Wants
	err     error
	// complete says that objects are as the control plane would store them.
	complete bool
}

// settle finds out which Kustomizations there will be.
func (c *course) settle(ctx context.Context) error {
	c.alive, c.gone = c.before.Kustomizations, map[client.ObjectKey]bool{}
	for range mostRounds {
		alive, suspended := c.arriving(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("plan: %w", context.Cause(ctx))
		}
		leaving, gone, err := c.departing(ctx, alive)
		if err != nil {
			return err
		}
		maps.DeleteFunc(alive, func(key client.ObjectKey, _ *kustomizev1.Kustomization) bool { return gone[key] })
		same := maps.Equal(gone, c.gone) && maps.EqualFunc(alive, c.alive, equal)
		c.alive, c.gone, c.leaving, c.suspended = alive, gone, leaving, suspended
		if same {
			return nil
		}
	}
	c.endless = true
	return nil
}

// equal reports whether two Kustomizations build the same.
func equal(a, b *kustomizev1.Kustomization) bool {
	return a == b || equality.Semantic.DeepEqual(a.Spec, b.Spec) && maps.Equal(a.Annotations, b.Annotations) && maps.Equal(a.Labels, b.Labels)
}

// follows reports whether a Kustomization applies the revision, unless something is wrong with it.
func (c *course) follows(ks *kustomizev1.Kustomization) bool {
	return inventory.SourceOf(ks) == c.revision.Source && ks.DeletionTimestamp == nil && !ks.Spec.Suspend && ks.Spec.KubeConfig == nil
}

// applies returns what a Kustomization applies of the revision; false for one that keeps what it has.
func (c *course) applies(key client.ObjectKey) (made, bool) {
	ks := c.alive[key]
	if ks == nil || !c.follows(ks) {
		return made{}, false
	}
	_, held := c.held[key]
	m := c.builds[key]
	return m, !held && m.of != nil && m.err == nil
}

// made builds a Kustomization, once for each form in which it is.
func (c *course) made(ctx context.Context, ks *kustomizev1.Kustomization) made {
	key := client.ObjectKeyFromObject(ks)
	if m := c.builds[key]; m.of != nil && equal(m.of, ks) {
		return m
	}
	m := made{of: ks}
	if field, instead := kustomizations.Unsupported(ks.Spec); field != "" {
		m.err = fmt.Errorf("%s is not supported yet: %s", field, instead)
	} else {
		m.objects, m.err = c.Build(ctx, ks, c.revision.Files)
	}
	if m.err == nil {
		if m.entries, m.err = c.named(m.objects); m.err == nil {
			m.wants = siblings.WantsOf(m.entries, m.objects)
		}
	}
	if ctx.Err() == nil {
		c.builds[key] = m
	}
	return m
}

// named returns the identities of objects, without the namespace of those that have none.
func (c *course) named(objects []*unstructured.Unstructured) ([]inventory.Entry, error) {
	for _, obj := range objects {
		switch namespaced := c.Scope.Namespaced(obj, objects); {
		case !namespaced:
			obj.SetNamespace("")
		case obj.GetNamespace() == "":
			return nil, fmt.Errorf("%s names no namespace: set metadata.namespace, the namespace of the kustomization, or spec.targetNamespace", inventory.Describe(inventory.IDOf(obj)))
		}
	}
	return inventory.Of(objects)
}

// arriving returns the Kustomizations that there are before, as files change them, and those that files bring.
func (c *course) arriving(ctx context.Context) (all map[client.ObjectKey]*kustomizev1.Kustomization, suspended map[client.ObjectKey]bool) {
	all, suspended = maps.Clone(c.before.Kustomizations), maps.Clone(c.before.suspended)
	by := map[client.ObjectKey]bool{}
	for _, key := range sorted(c.alive) {
		if !c.follows(c.alive[key]) {
			continue
		}
		m := c.made(ctx, c.alive[key])
		if _, held := c.held[key]; held || m.err != nil {
			continue
		}
		for _, child := range m.wants.Children {
			name := client.ObjectKeyFromObject(child)
			if by[name] {
				continue
			}
			by[name] = true
			all[name] = c.applied(child)
			suspended[name] = child.Spec.Suspend
		}
	}
	return all, suspended
}

// applied returns a Kustomization of files as the control plane will have it: with its identity and status, what others
// have annotated it with, and suspended if people have done so.
func (c *course) applied(child *kustomizev1.Kustomization) *kustomizev1.Kustomization {
	key := client.ObjectKeyFromObject(child)
	was := c.before.Kustomizations[key]
	if was == nil {
		return child
	}
	out := was.DeepCopy()
	out.Labels = child.Labels
	if out.Annotations = maps.Clone(was.Annotations); out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	maps.Copy(out.Annotations, child.Annotations)
	suspended := was.Spec.Suspend && !c.before.suspended[key] && !appliedField(was, "suspend")
	out.Spec = child.Spec
	out.Spec.Suspend = out.Spec.Suspend || suspended
	return out
}

// departing finds out what leaves each Kustomization, with what goes along with those that are deleted.
func (c *course) departing(ctx context.Context, alive map[client.ObjectKey]*kustomizev1.Kustomization) (map[client.ObjectKey]siblings.Handover, map[client.ObjectKey]bool, error) {
	there := maps.Clone(alive)
	maps.DeleteFunc(there, func(key client.ObjectKey, _ *kustomizev1.Kustomization) bool { return c.gone[key] })
	index := siblings.New(values{kustomizations: there}, c.wants, c.Eligible)
	leaving, gone := map[client.ObjectKey]siblings.Handover{}, map[client.ObjectKey]bool{}
	var next []client.ObjectKey
	for _, key := range sorted(c.before.Kustomizations) {
		switch owner, _ := inventory.OwnerOf(c.before.Kustomizations[key]); {
		case c.gone[key] && owner == key: // it has deleted itself
			next, gone[key] = append(next, key), true
		case !c.gone[key]:
			next = append(next, key)
		}
	}
	for len(next) > 0 {
		key := next[0]
		next = next[1:]
		if alive[key] == nil { // an inventory names it, and it is not there
			continue
		}
		left, err := c.leaves(ctx, index, alive[key], gone[key])
		if err != nil {
			return nil, nil, err
		}
		leaving[key] = left
		for _, child := range siblings.KeysIn(left.Deleted) {
			if !gone[child] {
				gone[child] = true
				next = append(next, child)
			}
		}
	}
	return leaving, gone, nil
}

// leaves returns what leaves a Kustomization, split as the apply loop splits it. With goes set, it is deleted itself.
func (c *course) leaves(ctx context.Context, index *siblings.Index, ks *kustomizev1.Kustomization, goes bool) (siblings.Handover, error) {
	key := client.ObjectKeyFromObject(ks)
	owned := c.before.Owned[key]
	query := siblings.Query{Of: ks, At: c.at}
	removed := owned
	var desired []inventory.Entry
	if goes {
		if !inventory.Deletes(ks) {
			return siblings.Handover{}, nil
		}
		query.Of = ks.DeepCopy()
		query.Of.DeletionTimestamp = &metav1.Time{Time: c.before.Fleet.Now}
		query.At.Source = inventory.SourceOf(ks)
	} else {
		m, applies := c.applies(key)
		if !applies || !ks.Spec.Prune {
			return siblings.Handover{}, nil
		}
		desired = m.entries
		removed = inventory.Compare(owned, desired).Removed
		query.Upcoming = m.wants.Children
	}
	if err := c.lookFor(ctx, removed); err != nil {
		return siblings.Handover{}, err
	}
	doomed := applier.Prunable(slices.Clone(removed), c.before.observed(key, removed))
	query.Objects, query.Going = doomed, siblings.KeysIn(doomed)
	answer, err := index.Ask(ctx, query)
	if err != nil {
		return siblings.Handover{}, err
	}
	return siblings.Of(doomed, answer, c.allowance(ks, owned, desired, doomed), c.revision.name()), nil
}

func (c *course) allowance(ks *kustomizev1.Kustomization, known ...[]inventory.Entry) inventory.Allowance {
	return inventory.AllowanceOf(ks.Annotations[inventory.AllowPruneAnnotation], c.revision.Allows, c.revision.name()).Among(known...)
}

// wants is a siblings.Build. Kustomizations of other sources want what they have.
func (c *course) wants(ctx context.Context, ks *kustomizev1.Kustomization, at siblings.Artifact) (siblings.Wants, error) {
	if at.Source != c.revision.Source {
		return siblings.Wants{Entries: c.before.Owned[client.ObjectKeyFromObject(ks)]}, nil
	}
	m := c.made(ctx, ks)
	return m.wants, m.err
}

// lookFor adds objects that the state before does not have.
func (c *course) lookFor(ctx context.Context, entries []inventory.Entry) error {
	if c.Look == nil {
		return nil
	}
	for _, e := range entries {
		if _, known := c.before.Objects[e.ID]; known {
			continue
		}
		obj, err := c.Look(ctx, e)
		if err != nil {
			return err
		}
		if c.before.Objects[e.ID] = obj; obj != nil && e.ID.GroupKind.Group != policyv1alpha1.GroupVersion.Group {
			c.before.Fleet.Templates = append(slices.Clip(c.before.Fleet.Templates), obj)
		}
	}
	return nil
}

func (c *course) look(ctx context.Context, objects []*unstructured.Unstructured) error {
	entries := make([]inventory.Entry, len(objects))
	for i, obj := range objects {
		entries[i] = inventory.Entry{ID: inventory.IDOf(obj), Version: obj.GroupVersionKind().Version}
	}
	return c.lookFor(ctx, entries)
}

// planned returns what a revision does, object by object, as the apply loop plans it. taken are the objects that others have
// applied of it by then.
func (c *course) planned(m made, taken map[inventory.ID]client.ObjectKey) []applier.Change {
	out := make([]applier.Change, 0, len(m.objects))
	for _, obj := range m.objects {
		there := c.before.Objects[inventory.IDOf(obj)]
		change := applier.Change{Desired: obj, Action: applier.Configured, Shares: applier.Shares(obj, there)}
		switch {
		case there == nil:
			change.Action = applier.Created
		case same(obj, there):
			change.Action = applier.Unchanged
		}
		if there != nil {
			change.Owner, _ = inventory.OwnerOf(there)
		}
		if by, is := taken[inventory.IDOf(obj)]; is {
			change.Owner = by
		}
		out = append(out, change)
	}
	return out
}
