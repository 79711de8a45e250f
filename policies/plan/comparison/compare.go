package comparison

import (
	"bytes"
	"cmp"
	"maps"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// Side is a fleet at one side of a change.
type Side struct {
	// Fleet is what the plans were made from. Its bindings tell which clusters hold a template about which nothing is
	// decided.
	Fleet plan.FleetInput
	// Plans are plan.Fleet of it.
	Plans []plan.TemplatePlan
}

// Plan returns the side of a fleet.
func Plan(in plan.FleetInput) Side { return Side{Fleet: in, Plans: plan.Fleet(in)} }

// Then returns a fleet that follows on this side: with the bindings that this side's plans leave, and with the claims of
// its policies on templates that have none. Whole and Bindings of head are replaced, and nothing else.
func (s Side) Then(head plan.FleetInput) plan.FleetInput {
	before := newIndex(s)
	head.Whole, head.Bindings = true, nil
	head.Templates = slices.Clone(head.Templates)
	for i, t := range head.Templates {
		id := identityOf(t.GetAPIVersion(), t.GetKind(), t.GetNamespace(), t.GetName())
		p := before.plans[id]
		switch {
		case p == nil:
			continue
		case p.Binding != nil:
			head.Bindings = append(head.Bindings, p.Binding)
		case before.bindings[id] != nil && !p.Dropped:
			head.Bindings = append(head.Bindings, before.bindings[id])
		}
		if _, claimed := propagation.Claimed(t); !claimed && p.Outcome == propagation.Carried {
			t = t.DeepCopy()
			propagation.ClaimOf(p.Policy).Set(t)
			head.Templates[i] = t
		}
	}
	return head
}

// Input is what is compared.
type Input struct {
	Base, Head Side
	// Salt is what nobody else knows. Without it, short values of Secrets could be guessed from the digests that stand
	// for them.
	Salt []byte
	// Default fills in what a server would, so that this makes no difference; nil fills in nothing. It is given copies, and is
	// called side by side.
	Default func(*unstructured.Unstructured)
	// Brake returns why a removal would be refused, on one line; empty where it would not. Nil refuses none.
	Brake func(Removal) string
	// Risks are known besides, such as what the loop that applies files will refuse.
	Risks []Risk
	// WhatIf are the events that Head supposes, Supposed is the same as a clause, and Notes are what is to be said of them.
	WhatIf   []string
	Supposed string
	Notes    []string
}

// Removal is what a change takes away from a Kustomization.
type Removal struct {
	// Kustomization is NAMESPACE/NAME.
	Kustomization string
	// Owned are all its objects before the change, and Gone those of them that nobody has afterwards, sorted by name.
	Owned, Gone []Object
}

// Compare returns what the change from base to head does. The input is not changed.
func Compare(in Input) Comparison {
	c := newComparer(in, newIndex(in.Base), newIndex(in.Head))
	c.templates()
	c.out = Comparison{APIVersion: APIVersion, Kind: Kind, Held: c.held, Placements: c.placements, WhatIf: in.WhatIf, Supposed: in.Supposed, Notes: in.Notes}
	c.out.Changes, c.out.Restarts = sortedChanges(c.groups), sortedRestarts(c.restarts)
	(&assessor{c}).assess()
	c.risks = append(c.risks, in.Risks...)
	c.out.Risks = sortedRisks(c.risks)
	c.out.Summary = summaryOf(&c.out)
	return c.out
}

func newComparer(in Input, base, head index) *comparer {
	return &comparer{Input: in, base: base, head: head, groups: map[string]*Change{}, restarts: map[string]*Restart{}}
}

// templates compares all templates, side by side: they have nothing to do with each other.
func (c *comparer) templates() {
	ids := c.identities()
	parts := make([]*comparer, min(runtime.GOMAXPROCS(0), len(ids)))
	var group errgroup.Group
	for n := range parts {
		parts[n] = newComparer(c.Input, c.base, c.head)
		group.Go(func() error {
			for i := n; i < len(ids); i += len(parts) {
				parts[n].template(ids[i])
			}
			return nil
		})
	}
	_ = group.Wait() // none errs
	for _, part := range parts {
		maps.Copy(c.groups, part.groups)
		maps.Copy(c.restarts, part.restarts)
		c.placements, c.held, c.risks = append(c.placements, part.placements...), append(c.held, part.held...), append(c.risks, part.risks...)
	}
	slices.SortFunc(c.placements, func(a, b Placement) int { return compareObjects(a.Object, b.Object) })
	slices.SortFunc(c.held, func(a, b Held) int { return compareObjects(a.Object, b.Object) })
}

// comparer collects a Comparison.
type comparer struct {
	Input
	base, head index
	out        Comparison
	// groups and restarts are what was found so far, by what makes them equal.
	groups     map[string]*Change
	restarts   map[string]*Restart
	placements []Placement
	held       []Held
	risks      []Risk
}

// identities returns the templates of both sides, sorted.
func (c *comparer) identities() []identity {
	all := make([]identity, 0, len(c.head.plans))
	for id := range c.head.plans {
		all = append(all, id)
	}
	for id := range c.base.plans {
		if _, both := c.head.plans[id]; !both {
			all = append(all, id)
		}
	}
	slices.SortFunc(all, identity.compare)
	return all
}

// template compares one template.
func (c *comparer) template(id identity) {
	base, head := c.base.plans[id], c.head.plans[id]
	if base != nil && head != nil && sameWorks(base.Works, head.Works) {
		return
	}
	was, is := c.base.holding(base), c.head.holding(head)
	if is.undecided {
		if clusters := was.clusters(); !was.undecided && len(clusters) > 0 {
			c.held = append(c.held, Held{Object: c.object(id), Clusters: clusters, Why: whyHeld(head)})
		}
		is.in, is.targets = was.in, was.targets
	}
	c.place(id, was, is)
	d := differ{comparer: c, id: id, object: c.object(id), seen: map[string]*difference{}}
	before := len(c.groups)
	for _, cluster := range union(was.in, is.in) {
		d.cluster(cluster, was.in, is.in)
	}
	if len(c.groups) > before {
		c.images(id)
	}
}

// sameWorks reports whether two plans are one, as they are where a plan was kept.
func sameWorks(a, b []plan.WorkPlan) bool {
	return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0]
}

// cluster compares what one cluster holds.
func (d *differ) cluster(name string, base, head map[string]content) {
	was, had := base[name]
	is, has := head[name]
	if has && is.err != nil {
		if !had || was.err == nil {
			d.fault(name, is.err)
		}
		return // it keeps what it has
	}
	if had && was.err != nil {
		was.raw = nil
		had = has // whether it has anything is not known
	}
	switch {
	case !had && !has:
	case !had:
		d.add(name, Created, nil, &is)
	case !has && (was.preserved || d.head.keeps(d.id, name)):
		d.add(name, Left, &was, nil)
	case !has:
		d.add(name, Deleted, &was, nil)
	case was.suspended != is.suspended && is.suspended:
		d.add(name, Suspended, nil, nil)
	case !bytes.Equal(was.raw, is.raw):
		d.add(name, Updated, &was, &is)
	case was.suspended != is.suspended:
		d.add(name, Resumed, nil, nil)
	}
}

// union returns the keys of both, sorted.
func union[V any](a, b map[string]V) []string {
	keys := slices.Collect(maps.Keys(a))
	for key := range b {
		if _, both := a[key]; !both {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func sortedChanges(groups map[string]*Change) []Change {
	var out []Change
	for _, g := range groups {
		slices.Sort(g.Clusters)
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Action.rank(), b.Action.rank()), compareObjects(a.Object, b.Object),
			cmp.Compare(len(b.Clusters), len(a.Clusters)), slices.Compare(a.Clusters, b.Clusters))
	})
	return out
}

func sortedRestarts(all map[string]*Restart) []Restart {
	var out []Restart
	for _, r := range all {
		slices.Sort(r.Clusters)
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b Restart) int {
		return cmp.Or(compareObjects(a.Object, b.Object), cmp.Compare(a.Effect, b.Effect), slices.Compare(a.Clusters, b.Clusters))
	})
	return out
}

func compareObjects(a, b Object) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.APIVersion, b.APIVersion))
}

func summaryOf(c *Comparison) Summary {
	out := Summary{}
	clusters, objects := map[string]bool{}, map[Object]bool{}
	for i := range c.Changes {
		change := &c.Changes[i]
		n := len(change.Clusters)
		switch change.Action {
		case Deleted:
			out.Deleted += n
		case Left:
			out.Left += n
		case Created:
			out.Created += n
		case Updated:
			out.Updated += n
		case Moved:
			out.Moved += n
		}
		objects[change.Object] = true
		for _, name := range change.Clusters {
			clusters[name] = true
		}
	}
	for i := range c.Restarts {
		if r := &c.Restarts[i]; r.Effect == Restarts && r.Pods != nil {
			out.Restarts += *r.Pods
		}
	}
	out.Clusters, out.Objects = len(clusters), len(objects)
	return out
}
