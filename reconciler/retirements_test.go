package reconciler_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
)

// TestWhatIsMadeAndRetiredIsOfOneRevision has random revisions follow each other of which many make two Kustomizations at once, one
// with the override of the other's template, or retire some, with what they hold or without, with loops that die after a random write:
// whatever a Work ever holds is what one revision wants there.
func TestWhatIsMadeAndRetiredIsOfOneRevision(t *testing.T) {
	random := startingAt(t, 1) // the same each time: it is asserted how much of what is rare the revisions do
	m := withoutLoops(t)
	for _, tc := range []struct { // in this order: the numbers go on from one to the next
		name  string
		waits bool
	}{{"what makes them waits for their health", true}, {"what makes them does not", false}} {
		t.Run(tc.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(random.Uint64(), 0))
			x := newExchange(m.in(t))
			x.waits(tc.waits)
			defer func() { x.check(x.stop()) }()
			var history []revision
			var did coverage
			next := layout{revision: revision{templates: map[string]string{}, overrides: map[string]overrideOf{}, all: []string{from, to}}, in: map[string]string{}, names: map[string]int{}}
			for n := range 12 {
				next = next.evolve(random, n, &did)
				history = append(history, next.revision)
				switch {
				case n == 0:
					x.start(-1)
				case random.IntN(3) > 0:
					x.check(x.stop())
					x.start(random.IntN(60))
				}
				t.Logf("revision %d: %+v", n, next)
				x.release(next)
				x.everywhere(next.revision)
				x.stand(next.kustomizations()...)
				if t.Failed() {
					break
				}
			}
			if diff := cmp.Diff(sequences(history), x.seen()); diff != "" {
				t.Errorf("what Works held, one after the other (-want +got):\n%s", diff)
			}
			t.Logf("the revisions did %+v", did)
			if did.pairs < 1 || did.templates+did.overrides+did.both < 2 {
				t.Errorf("the revisions did no more than %+v", did)
			}
		})
	}
}

// coverage counts revisions that make two Kustomizations, one with the override of the other's template, and those that retire some that
// hold templates, overrides of what is carried, or both.
type coverage struct{ pairs, templates, overrides, both int }

// evolve returns a layout that differs from l at random: every third one, at least, makes two Kustomizations or retires some.
func (l layout) evolve(random *rand.Rand, n int, did *coverage) layout {
	absent := slices.DeleteFunc([]string{"left", "right", "other", "another"}, func(folder string) bool { return slices.Contains(l.sides(), folder) })
	if n == 0 || n%3 > 0 && random.IntN(2) == 0 {
		return l.after(random, n)
	}
	out := layout{revision: l.revision.clone(), in: maps.Clone(l.in), names: maps.Clone(l.names), children: l.children, retired: l.retired}
	if random.IntN(2) == 0 {
		out = l.after(random, n)
		absent = slices.DeleteFunc(absent, func(folder string) bool { return slices.Contains(out.sides(), folder) })
	}
	if len(absent) > 1 {
		random.Shuffle(len(absent), func(i, j int) { absent[i], absent[j] = absent[j], absent[i] })
		out.pair(absent[0], absent[1], random, n)
		did.pairs++
		return out
	}
	sides := out.sides()
	random.Shuffle(len(sides), func(i, j int) { sides[i], sides[j] = sides[j], sides[i] })
	if did.overrides+did.both == 0 { // else few of the revisions would retire one
		slices.SortStableFunc(sides, func(a, b string) int { return l.overriding(b) - l.overriding(a) })
	}
	for _, folder := range sides[:1+random.IntN(len(sides)-2)] {
		out.retire(l, folder, random, did)
	}
	return out
}

// overriding is how many overrides a folder holds that count.
func (l layout) overriding(folder string) int {
	count := 0
	for name := range l.overrides {
		if l.in[name] == folder && l.counts(name) {
			count++
		}
	}
	return count
}

func (r revision) clone() revision {
	r.templates, r.overrides = maps.Clone(r.templates), maps.Clone(r.overrides)
	return r
}

// sides are the folders that have a Kustomization.
func (l layout) sides() []string {
	var out []string
	for _, folder := range []string{"left", "right"} {
		if !slices.Contains(l.retired, folder) {
			out = append(out, folder)
		}
	}
	for _, c := range l.children {
		out = append(out, c.path)
	}
	return out
}

// bring makes a Kustomization of a folder.
func (l *layout) bring(folder string) {
	if slices.Contains(l.retired, folder) {
		l.retired = slices.DeleteFunc(slices.Clone(l.retired), func(one string) bool { return one == folder })
		l.names[folder]++
	}
	if folder == "other" || folder == "another" {
		l.children = append(slices.Clone(l.children), child{l.kustomization(folder), folder, "root"})
	}
}

// pair makes two Kustomizations, the one with a template and the other one with an override for it.
func (l *layout) pair(one, other string, random *rand.Rand, n int) {
	l.bring(one)
	l.bring(other)
	template, override, value := fmt.Sprintf("t%d", random.IntN(6)), fmt.Sprintf("o%d", random.IntN(3)), fmt.Sprintf("r%d", n)
	l.templates[template], l.in[template] = value, one
	l.overrides[override], l.in[override] = overrideOf{only: template, value: value}, other
}

// retire drops the Kustomization of a folder: what it holds goes, or moves to others.
func (l *layout) retire(before layout, folder string, random *rand.Rand, did *coverage) {
	l.children = slices.DeleteFunc(slices.Clone(l.children), func(c child) bool { return c.path == folder })
	l.retired = append(slices.Clone(l.retired), folder)
	var template, override bool
	for _, name := range objectNames() {
		if before.exists(name) && before.in[name] == folder {
			template = template || strings.HasPrefix(name, "t")
			override = override || name[0] == 'o' && name != "one" && before.counts(name)
		}
		if !l.exists(name) || l.in[name] != folder {
			continue
		}
		if sides := l.sides(); name == "all" || random.IntN(3) == 0 {
			l.in[name] = sides[random.IntN(len(sides))]
			continue
		}
		l.set(name, revision{})
	}
	switch {
	case template && override:
		did.both++
	case template:
		did.templates++
	case override:
		did.overrides++
	}
}

// counts reports whether an override counts for a template that is carried.
func (r revision) counts(name string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(r.templates)), func(template string) bool {
		only := r.overrides[name].only
		return (only == "" || only == template) && r.content(from, template)+r.content(to, template) != ""
	})
}

// waits has the Kustomization that makes the others wait for their health, or not. It may delete what left it.
func (x *exchange) waits(is bool) {
	x.Helper()
	root := &kustomizev1.Kustomization{}
	x.check(x.hub.Hub.Get(x.Context(), client.ObjectKey{Namespace: x.namespace, Name: "root"}, root))
	root.Spec.Wait = is
	root.Annotations = map[string]string{inventory.AllowPruneAnnotation: "true"}
	x.check(x.hub.Hub.Update(x.Context(), root))
}

// TestAKustomizationIsRetiredWithItsRules has a commit retire the Kustomization of overrides: also where who made it waits for the health of
// others before it deletes what left it, and may as the revision is allowed.
func TestAKustomizationIsRetiredWithItsRules(t *testing.T) {
	m := withoutLoops(t)
	with := func(template string, overrides ...string) revision {
		out := revision{templates: map[string]string{"t0": template}, overrides: map[string]overrideOf{}, all: []string{from, to}}
		for _, name := range overrides {
			out.overrides[name] = overrideOf{value: "r0"}
		}
		return out
	}
	for name, tc := range map[string]struct {
		before, after  revision
		template       string // the folder that holds it
		waits, unnamed bool
		both           bool // another one is retired along with it, which holds one of the overrides
	}{
		"who made it waits for health":                                 {with("r0", "o0"), with("r1"), "left", true, true, false},
		"who made it holds the template, and waits for health":         {with("r0", "o0"), with("r1"), "root", true, false, false},
		"it holds several overrides of what stays":                     {with("r0", "o0", "o1", "o2"), with("r0"), "left", false, false, false},
		"another one is, and both hold overrides of what stays":        {with("r0", "o0", "o1", "o2"), with("r0"), "root", false, false, true},
		"another one is, once all is healthy, with overrides of both":  {with("r0", "o0", "o1", "o2"), with("r0"), "root", true, false, true},
		"another one is, and both hold overrides of what changes then": {with("r0", "o0", "o1", "o2"), with("r1"), "root", false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			x := newExchange(m.in(t))
			x.waits(tc.waits)
			x.unnamed = tc.unnamed
			x.start(-1)
			defer func() { x.check(x.stop()) }()
			in, retired := map[string]string{"all": "left", "t0": tc.template, "o0": "right", "o1": "right", "o2": "right"}, []string{"right"}
			if tc.both {
				in["all"], in["o0"], retired = "root", "left", []string{"right", "left"}
			}
			first := layout{revision: tc.before, in: in}
			x.release(first)
			x.everywhere(first.revision)
			x.stand(first.kustomizations()...)
			second := layout{revision: tc.after, in: in, retired: retired}
			x.release(second)
			begun := time.Now()
			x.everywhere(second.revision)
			x.stand(second.kustomizations()...)
			if took := time.Since(begun); took > 25*time.Second {
				t.Errorf("it took %v, as long as others are waited for", took)
			}
			if diff := cmp.Diff(sequences([]revision{{all: []string{from, to}}, tc.before, tc.after}), x.seen()); diff != "" {
				t.Errorf("what Works held, one after the other (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatARetiredOneHoldsIsNotCarriedElsewhere has a commit retire the Kustomization of a template, and have the template's policy, which
// another one holds, name one more cluster: no commit has the template there, however long it stays as who made its Kustomization waits for
// the health of others before it deletes that. The other one does not wait for it in turn.
func TestWhatARetiredOneHoldsIsNotCarriedElsewhere(t *testing.T) {
	m := withoutLoops(t)
	for name, waits := range map[string]bool{"who made it waits for health": true, "who made it does not": false} {
		t.Run(name, func(t *testing.T) {
			x := newExchange(m.in(t))
			x.waits(waits)
			x.unnamed = true // what is named is deleted at once
			x.start(-1)
			defer func() { x.check(x.stop()) }()
			of := func(clusters []string, templates map[string]string, retired ...string) layout {
				in := map[string]string{"all": "left", "t0": "left", "t1": "right"}
				return layout{revision: revision{templates: templates, overrides: map[string]overrideOf{}, all: clusters}, in: in, retired: retired}
			}
			first := of([]string{from}, map[string]string{"t0": "r0", "t1": "r0"})
			x.release(first)
			x.everywhere(first.revision)
			x.stand(first.kustomizations()...)
			second := of([]string{from, to}, map[string]string{"t0": "r0"}, "right")
			if waits { // else it may delete it at once
				x.hold("root")
			}
			x.release(second)
			x.eventually("left waits for right", func() error {
				left := &kustomizev1.Kustomization{}
				err := x.hub.Hub.Get(x.Context(), client.ObjectKey{Namespace: x.namespace, Name: first.kustomization("left")}, left)
				if c := apimeta.FindStatusCondition(left.Status.Conditions, revisiongate.Condition); err == nil && waits && (c == nil || c.Reason != revisiongate.ReasonWritten) {
					return fmt.Errorf("its conditions are %v", left.Status.Conditions)
				}
				return err
			})
			x.hold("")
			begun := time.Now()
			x.everywhere(second.revision)
			x.stand(second.kustomizations()...)
			if took := time.Since(begun); took > 25*time.Second {
				t.Errorf("it took %v, as long as others are waited for", took)
			}
			if diff := cmp.Diff(sequences([]revision{{all: []string{from, to}}, first.revision, second.revision}), x.seen()); diff != "" {
				t.Errorf("what Works held, one after the other (-want +got):\n%s", diff)
			}
		})
	}
}
