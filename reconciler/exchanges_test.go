package reconciler_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/acl"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
	"github.com/flotilla-io/flotilla/sources/artifact"
)

// seed is where random revisions begin.
var seed = flag.Uint64("seed", 0, "the seed of the random revisions of what moves, or is made and retired; 0: another one each time")

// randomly returns numbers that begin at the seed, which it tells.
func randomly(t *testing.T) *rand.Rand { return startingAt(t, uint64(time.Now().UnixNano())) }

// startingAt returns the numbers that follow the seed of the command line, or else this one.
func startingAt(t *testing.T, begin uint64) *rand.Rand {
	if *seed != 0 {
		begin = *seed
	}
	t.Logf("the seed is %d", begin)
	return rand.New(rand.NewPCG(begin, 0))
}

// TestWhatMovesIsOfOneRevision has random revisions of two Kustomizations of one source follow each other, which
// move objects from one to the other, change what moves and what stays, are renamed, and joined by a third one, with loops that die after a
// random write: whatever a Work ever holds, but for the labels of its owner, is what one revision wants there.
func TestWhatMovesIsOfOneRevision(t *testing.T) {
	random := randomly(t)
	x := newExchange(withoutLoops(t))
	defer func() { x.check(x.stop()) }()

	var history []revision
	var layouts []layout
	next := layout{revision: revision{templates: map[string]string{}, overrides: map[string]overrideOf{}, all: []string{from, to}}, in: map[string]string{}, names: map[string]int{}}
	for n := range 14 {
		next = next.after(random, n)
		history, layouts = append(history, next.revision), append(layouts, next)
		switch {
		case n == 0:
			x.start(-1)
		case random.IntN(3) > 0:
			x.check(x.stop())
			x.start(random.IntN(40))
		}
		x.release(next)
		x.everywhere(next.revision)
		x.stand(next.kustomizations()...)
		if t.Failed() {
			break
		}
	}
	if diff := cmp.Diff(sequences(history), x.seen()); diff != "" {
		t.Errorf("what Works held, one after the other (-want +got):\n%s", diff)
		for n, l := range layouts {
			t.Logf("revision %d: %+v", n, l)
		}
	}
}

// TestWhatMovesCountsWithBothRevisions has one of two Kustomizations be late with a commit that moves an object
// between them and edits, in the late one, what belongs to it, or that edits in each what belongs together.
func TestWhatMovesCountsWithBothRevisions(t *testing.T) {
	m := withoutLoops(t)
	with := func(template, override string) revision {
		return revision{templates: map[string]string{"t0": template}, overrides: map[string]overrideOf{"o0": {value: override}}, all: []string{from, to}}
	}
	none, left := revision{all: []string{from, to}}, map[string]string{"all": "right", "t0": "left", "o0": "left"}
	acrossOverrides := map[string]string{"all": "right", "t0": "left", "o0": "right", "o1": "right"}
	for name, tc := range map[string]struct {
		before, after map[string]string // which folder holds what
		late          string
		changed       revision
	}{
		"a template moves, and its override is edited late":               {left, map[string]string{"all": "right", "t0": "right", "o0": "left"}, "left", with("r1", "r1")},
		"a template moves late, and its override is edited":               {left, map[string]string{"all": "right", "t0": "right", "o0": "left"}, "right", with("r1", "r1")},
		"an override moves, and its template is edited late":              {left, map[string]string{"all": "right", "t0": "left", "o0": "right"}, "left", with("r1", "r1")},
		"an override moves late, and its template is edited":              {left, map[string]string{"all": "right", "t0": "left", "o0": "right"}, "right", with("r1", "r1")},
		"a policy moves, and the template that it carries is edited late": {map[string]string{"all": "left", "t0": "left", "o0": "left"}, map[string]string{"all": "right", "t0": "left", "o0": "left"}, "left", revision{templates: map[string]string{"t0": "r1"}, overrides: map[string]overrideOf{"o0": {value: "r0"}}, all: []string{from}}},
		"a template is edited, and its override late":                     {acrossOverrides, acrossOverrides, "right", with("r1", "r1")},
		"a template is edited, and another override for it is made late":  {acrossOverrides, acrossOverrides, "right", revision{templates: map[string]string{"t0": "r1"}, overrides: map[string]overrideOf{"o0": {value: "r0"}, "o1": {value: "r1"}}, all: []string{from, to}}},
		"an override is edited, and its template late":                    {acrossOverrides, acrossOverrides, "left", with("r1", "r1")},
		"a template is edited, and its override is deleted late":          {acrossOverrides, acrossOverrides, "right", revision{templates: map[string]string{"t0": "r1"}, all: []string{from, to}}},
		"an override is deleted, and its template is edited late":         {acrossOverrides, acrossOverrides, "left", revision{templates: map[string]string{"t0": "r1"}, all: []string{from, to}}},
		"a policy is edited, and the template that it carries late":       {left, left, "left", revision{templates: map[string]string{"t0": "r1"}, overrides: map[string]overrideOf{"o0": {value: "r0"}}, all: []string{from}}},
		"a template is edited, and the policy that carries it late":       {left, left, "right", revision{templates: map[string]string{"t0": "r1"}, overrides: map[string]overrideOf{"o0": {value: "r0"}}, all: []string{from}}},
		"an override is deleted beside its template, and another one for it is made late": {
			map[string]string{"all": "left", "t0": "right", "o0": "right", "o1": "left"}, map[string]string{"all": "left", "t0": "right", "o1": "left"}, "left",
			revision{templates: map[string]string{"t0": "r0"}, overrides: map[string]overrideOf{"o1": {value: "r1"}}, all: []string{from, to}},
		},
		"a template moves, and its override is deleted late": {left, map[string]string{"all": "right", "t0": "right"}, "left", revision{templates: map[string]string{"t0": "r1"}, all: []string{from, to}}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newExchange(m.in(t))
			history := []revision{none, with("r0", "r0"), tc.changed}
			x.start(-1)
			defer func() { x.check(x.stop()) }()
			first := layout{revision: history[1], in: tc.before}
			x.release(first)
			x.everywhere(first.revision)
			x.stand(first.kustomizations()...)
			x.late.deletes.Store(tc.before["o0"] == tc.late)
			x.hold(tc.late)
			second := layout{revision: history[2], in: tc.after}
			x.release(second)
			early := map[string]string{"left": "right0", "right": "left0"}[tc.late]
			x.eventually("the other one has written the revision, or it counts already", func() error {
				if written(x, early) || !cmp.Equal(sequences(history[:2]), x.seen()) {
					return nil
				}
				return fmt.Errorf("%s has not written the revision", early)
			})
			x.hold("")
			x.everywhere(second.revision)
			x.stand(second.kustomizations()...)
			if diff := cmp.Diff(sequences(history), x.seen()); diff != "" {
				t.Errorf("what Works held, one after the other (-want +got):\n%s", diff)
			}
		})
	}
}

// TestARuleOfAKustomizationThatTheCommitMakes has a commit edit a template, and make, or lead to another folder, the Kustomization of
// what the template is carried or overridden by, while somebody on the way there is late.
func TestARuleOfAKustomizationThatTheCommitMakes(t *testing.T) {
	m := withoutLoops(t)
	first := revision{templates: map[string]string{"t0": "r0"}, overrides: map[string]overrideOf{"o0": {value: "r0"}}, all: []string{from, to}}
	edited := revision{templates: map[string]string{"t0": "r1"}, overrides: map[string]overrideOf{"o0": {value: "r0"}, "o1": {value: "r1"}}, all: []string{from, to}}
	placed := revision{templates: map[string]string{"t0": "r1"}, overrides: first.overrides, all: []string{from, to}, name: "t0", one: []string{from}}
	in := map[string]string{"all": "right", "t0": "left", "o0": "left", "o1": "other", "one": "other"}
	for name, tc := range map[string]struct {
		before, after []child
		late          string
		changed       revision
	}{
		"the parent is late, and the rule is an override":        {nil, []child{{"other", "other", "root"}}, "root", edited},
		"the parent is late, and the rule is a policy":           {nil, []child{{"other", "other", "root"}}, "root", placed},
		"the child is late":                                      {nil, []child{{"other", "other", "root"}}, "other", edited},
		"the parent of a parent is late":                         {nil, []child{{"middle", "middle", "root"}, {"other", "other", "middle"}}, "root", edited},
		"who makes it holds the template, and it is late":        {nil, []child{{"other", "other", "left"}}, "other", edited},
		"one that is there is led to the folder, by who is late": {[]child{{"other", "empty", "root"}}, []child{{"other", "other", "root"}}, "root", edited},
	} {
		t.Run(name, func(t *testing.T) {
			x := newExchange(m.in(t))
			history := []revision{{all: []string{from, to}}, first, tc.changed}
			x.start(-1)
			defer func() { x.check(x.stop()) }()
			before := layout{revision: first, in: in, children: tc.before}
			x.release(before)
			x.everywhere(first)
			x.stand(before.kustomizations()...)
			x.hold(tc.late)
			after := layout{revision: tc.changed, in: in, children: tc.after}
			x.release(after)
			x.eventually("the template is written, or counts already", func() error {
				if written(x, "left0") || !cmp.Equal(sequences(history[:2]), x.seen()) {
					return nil
				}
				return errors.New("it is not written")
			})
			x.hold("")
			begun := time.Now()
			x.everywhere(tc.changed)
			x.stand(after.kustomizations()...)
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("it took %v, as long as others are waited for", took)
			}
			if diff := cmp.Diff(sequences(history), x.seen()); diff != "" {
				t.Errorf("what Works held, one after the other (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTwoKustomizationsThatTheCommitMakes has a commit make two Kustomizations, one with a template, and one with the override for it, which
// is built before the first one begins, and is late.
func TestTwoKustomizationsThatTheCommitMakes(t *testing.T) {
	m := withoutLoops(t)
	for name, before := range map[string]bool{"what makes them is there": true, "what makes them is made": false} {
		t.Run(name, func(t *testing.T) {
			x := newExchange(m.in(t))
			none := revision{all: []string{from, to}}
			made := revision{templates: map[string]string{"t0": "r0"}, overrides: map[string]overrideOf{"o0": {value: "r0"}}, all: []string{from, to}}
			x.start(-1)
			defer func() { x.check(x.stop()) }()
			if before {
				first := layout{revision: none, in: map[string]string{"all": "left"}}
				x.release(first)
				x.stand(first.kustomizations()...)
			}
			x.hold("other")
			after := layout{revision: made, in: map[string]string{"all": "left", "t0": "other", "o0": "another"}, children: []child{{"other1", "other", "root"}, {"other2", "another", "root"}}}
			x.release(after)
			x.eventually("the one with the override is built, and tries to announce that", func() error {
				if x.late.refused.Load() > 6 { // two of each, at least, fail before
					return nil
				}
				return errors.New("it does not")
			})
			x.hold("other2")
			x.eventually("the one with the template has written it, or that counts already", func() error {
				if written(x, "other1") || !cmp.Equal(map[string][]string{}, x.seen()) {
					return nil
				}
				return errors.New("it has not")
			})
			x.hold("")
			x.everywhere(made)
			x.stand(after.kustomizations()...)
			if diff := cmp.Diff(sequences([]revision{none, made}), x.seen()); diff != "" {
				t.Errorf("what Works held, one after the other (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnOverrideThatIsRetired has a commit retire the Kustomization of an override, while what the override means is late: it moves to
// another Kustomization, which the commit makes, is edited where it is, or goes as well.
func TestAnOverrideThatIsRetired(t *testing.T) {
	m := withoutLoops(t)
	first := revision{templates: map[string]string{"t0": "r0"}, overrides: map[string]overrideOf{"o0": {value: "r0"}}, all: []string{from, to}}
	edited := revision{templates: map[string]string{"t0": "r1"}, all: []string{from, to}}
	in := map[string]string{"all": "left", "t0": "left", "o0": "right"}
	for name, tc := range map[string]struct {
		late  []string
		after layout
	}{
		"the template moves to one that the commit makes": {[]string{"left", "other"}, layout{revision: edited, in: map[string]string{"all": "left", "t0": "other"}, children: []child{{"other", "other", "root"}}, retired: []string{"right"}}},
		"the template moves from one that goes as well":   {[]string{"other"}, layout{revision: edited, in: map[string]string{"all": "other", "t0": "other"}, children: []child{{"other", "other", "root"}}, retired: []string{"left", "right"}}},
		"the template is edited where it is":              {[]string{"left"}, layout{revision: edited, in: in, retired: []string{"right"}}},
		"the template goes":                               {[]string{"left"}, layout{revision: revision{all: []string{from, to}}, in: in, retired: []string{"right"}}},
		"the template goes with its Kustomization":        {[]string{"nobody"}, layout{revision: revision{all: []string{from, to}}, in: map[string]string{"all": "root"}, retired: []string{"left", "right"}}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newExchange(m.in(t))
			history := []revision{{all: []string{from, to}}, first, tc.after.revision}
			x.start(-1)
			defer func() { x.check(x.stop()) }()
			before := layout{revision: first, in: in}
			x.release(before)
			x.everywhere(first)
			x.stand(before.kustomizations()...)
			x.late.templates.Store(tc.late[0] == "nobody")
			x.hold(tc.late...)
			x.release(tc.after)
			x.eventually("the retired one says that it waits, or its override does not count any more", func() error {
				var ks kustomizev1.Kustomization
				if err := x.hub.Hub.Get(x.Context(), client.ObjectKey{Namespace: x.namespace, Name: "right0"}, &ks); client.IgnoreNotFound(err) != nil {
					return err
				}
				ready := apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition)
				if ks.DeletionTimestamp != nil && ready != nil && ready.Reason == siblings.ReasonHandingOver || !cmp.Equal(sequences(history[:2]), x.seen()) {
					return nil
				}
				return fmt.Errorf("it says %+v", ready)
			})
			x.hold("")
			begun := time.Now()
			x.everywhere(tc.after.revision)
			x.stand(tc.after.kustomizations()...)
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("it took %v, as long as others are waited for", took)
			}
			if diff := cmp.Diff(sequences(history), x.seen()); diff != "" {
				t.Errorf("what Works held, one after the other (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNobodyWaitsForWhoDoesNotApplyTheCommit has a commit edit a template, and make an override for it in a folder whose Kustomization
// never applies it.
func TestNobodyWaitsForWhoDoesNotApplyTheCommit(t *testing.T) {
	m := withoutLoops(t)
	for name, tc := range map[string]struct {
		namespace string // after that of the source
		change    func(*kustomizev1.KustomizationSpec)
		says      string
	}{
		"one that may not use the source": {"-evil", func(spec *kustomizev1.KustomizationSpec) {}, acl.AccessDeniedReason},
		"one that waits for what does not exist": {"", func(spec *kustomizev1.KustomizationSpec) {
			spec.DependsOn = []kustomizev1.DependencyReference{{Name: "nosuch"}}
		}, meta.DependencyNotReadyReason},
	} {
		t.Run(name, func(t *testing.T) {
			x := newExchange(m.in(t))
			with := func(template string, overrides map[string]overrideOf) revision {
				return revision{templates: map[string]string{"t0": template}, overrides: overrides, all: []string{from, to}}
			}
			own := map[string]overrideOf{"o0": {value: "r0"}}
			history := []revision{{all: []string{from, to}}, with("r0", own), with("r1", own)}
			in := map[string]string{"all": "left", "t0": "left", "o0": "left", "o1": "other"}
			x.start(-1)
			defer func() { x.check(x.stop()) }()
			x.release(layout{revision: history[1], in: in})
			x.everywhere(history[1])
			other := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace + tc.namespace, Name: "other"}}
			other.Spec = kustomizev1.KustomizationSpec{Interval: metav1.Duration{Duration: time.Hour}, Prune: true, Path: "./other",
				SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "fleet", Namespace: x.namespace}}
			tc.change(&other.Spec)
			x.check(client.IgnoreAlreadyExists(x.hub.Hub.Create(x.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other.Namespace}})))
			x.check(x.hub.Hub.Create(x.Context(), other))
			x.eventually("the other one says why it applies nothing", func() error {
				x.check(x.hub.Hub.Get(x.Context(), client.ObjectKeyFromObject(other), other))
				if c := apimeta.FindStatusCondition(other.Status.Conditions, meta.ReadyCondition); c == nil || c.Reason != tc.says {
					return fmt.Errorf("it says %+v", c)
				}
				return nil
			})
			begun := time.Now()
			x.release(layout{revision: with("r1", map[string]overrideOf{"o0": {value: "r0"}, "o1": {value: "r1"}}), in: in})
			x.everywhere(history[2])
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("it took %v, as long as others are waited for", took)
			}
			if diff := cmp.Diff(sequences(history), x.seen()); diff != "" {
				t.Errorf("what Works held, one after the other (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatIsEditedInTwoIsOfOneRevision has commits edit a template in one Kustomization, and in another one what it is carried
// by, with loops that die after ever more writes: whatever a Work ever holds is what one of the commits wants there.
func TestWhatIsEditedInTwoIsOfOneRevision(t *testing.T) {
	x := newExchange(withoutLoops(t))
	defer func() { x.check(x.stop()) }()
	var history []revision
	in := map[string]string{"all": "right", "t0": "left", "t1": "right", "o0": "right", "o1": "right"}
	for n := range 15 {
		value := fmt.Sprintf("r%d", n)
		next := revision{templates: map[string]string{"t0": value, "t1": "r0"}, overrides: map[string]overrideOf{"o0": {value: value}}, all: [][]string{{from, to}, {from}, {from, to}, {to}}[n/2%4]}
		if n%3 > 0 {
			next.overrides["o1"] = overrideOf{value: value, only: "t0"}
		}
		if n > 0 {
			x.check(x.stop())
			x.start(2 * (n - 1))
		} else {
			x.start(-1)
		}
		history = append(history, next)
		x.release(layout{revision: next, in: in})
		x.everywhere(next)
		x.stand(layout{revision: next, in: in}.kustomizations()...)
		if t.Failed() {
			break
		}
	}
	if diff := cmp.Diff(sequences(history), x.seen()); diff != "" {
		t.Errorf("what Works held, one after the other (-want +got):\n%s", diff)
	}
}

// TestAnOverrideThatIsDeletedInAnotherOneIsOfOneRevision has commits edit a template in one Kustomization, which is late, and delete the only
// override for it in another one, with loops that die after ever more writes.
func TestAnOverrideThatIsDeletedInAnotherOneIsOfOneRevision(t *testing.T) {
	x := newExchange(withoutLoops(t))
	defer func() { x.check(x.stop()) }()
	x.start(-1)
	in := map[string]string{"all": "right", "t0": "left", "o0": "right"}
	var history []revision
	for n := range 8 {
		value := fmt.Sprintf("r%d", n)
		next := revision{templates: map[string]string{"t0": value}, overrides: map[string]overrideOf{"o0": {value: value}}, all: []string{from, to}}
		l := layout{revision: next, in: in}
		if history = append(history, next); n%2 == 1 {
			delete(next.overrides, "o0")
			x.hold("left")
			x.check(x.stop())
			x.start(n)
		}
		x.release(l)
		if n%2 == 1 {
			x.eventually("the loops have died, or the other one has written its part", func() error {
				if x.plug.writes.Load() < 0 || written(x, "right0") {
					return nil
				}
				return errors.New("they go on")
			})
			x.check(x.stop())
			x.start(-1)
			x.eventually("the other one has written its part", func() error {
				if written(x, "right0") || !cmp.Equal(sequences(history[:n]), x.seen()) {
					return nil
				}
				return errors.New("it has not")
			})
			x.hold("")
		}
		x.everywhere(next)
		x.stand(l.kustomizations()...)
	}
	if diff := cmp.Diff(sequences(history), x.seen()); diff != "" {
		t.Errorf("what Works held, one after the other (-want +got):\n%s", diff)
	}
}

// written reports whether a Kustomization says that it has written all of a revision, and that others have not.
func written(x *exchange, name string) bool {
	var ks kustomizev1.Kustomization
	x.check(x.hub.Hub.Get(x.Context(), client.ObjectKey{Namespace: x.namespace, Name: name}, &ks))
	c := apimeta.FindStatusCondition(ks.Status.Conditions, revisiongate.Condition)
	return c != nil && c.Reason == revisiongate.ReasonWritten
}

// layout is a revision whose objects stand in two folders.
type layout struct {
	revision
	// in is the folder of each object, left or right, by name.
	in map[string]string
	// names count how often the Kustomization of a folder was renamed.
	names map[string]int
	// children are Kustomizations besides those of left and right.
	children []child
	// retired are the folders that have no Kustomization any more, and are not among the files.
	retired []string
}

// child is a Kustomization of a folder that the files of another one hold.
type child struct{ name, path, by string }

// manifest returns a Kustomization.
func (c child) manifest(namespace string) string {
	return fmt.Sprintf("---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: %s, namespace: %s}\nspec:\n"+
		"  interval: 1h\n  retryInterval: 1s\n  prune: true\n  path: ./%s\n  sourceRef: {kind: GitRepository, name: fleet}\n", c.name, namespace, c.path)
}

// exists reports whether a revision has an object.
func (r revision) exists(name string) bool {
	switch {
	case name == "all":
		return true
	case name == "one":
		return r.name != ""
	case strings.HasPrefix(name, "t"):
		return r.templates[name] != ""
	default:
		_, ok := r.overrides[name]
		return ok
	}
}

// set has an object of a revision be as it is in another one.
func (r *revision) set(name string, as revision) {
	switch {
	case name == "all":
		r.all = as.all
	case name == "one":
		r.name, r.one = as.name, as.one
	case strings.HasPrefix(name, "t"):
		if delete(r.templates, name); as.templates[name] != "" {
			r.templates[name] = as.templates[name]
		}
	default:
		if delete(r.overrides, name); as.exists(name) {
			r.overrides[name] = as.overrides[name]
		}
	}
}

// objectNames are those that revisions may have.
func objectNames() []string {
	return []string{"all", "one", "o0", "o1", "o2", "t0", "t1", "t2", "t3", "t4", "t5"}
}

// after returns a layout that differs from l at random; it may bring a Kustomization. Unless it moves objects from one folder to the other, or edits some in
// both, it differs in one policy or override at most: after a crash nobody knows any more which override meant a template of a
// Kustomization that the commit leaves alone.
func (l layout) after(random *rand.Rand, n int) layout {
	out := layout{revision: l.revision.after(random, n), in: maps.Clone(l.in), names: maps.Clone(l.names), children: l.children, retired: l.retired}
	how := random.IntN(6)
	if n > 0 && len(l.children) == 0 && random.IntN(4) == 0 {
		how = random.IntN(5)
		out.bring("other")
	}
	sides := out.sides()
	side := sides[random.IntN(len(sides))]
	moves, free := n > 0 && how < 3, n > 0 && how < 5
	var both []string
	for _, name := range objectNames() {
		before, after := n > 0 && l.exists(name), out.exists(name)
		switch {
		case before && !free && l.in[name] != side:
			out.set(name, l.revision)
		case before && !after && !free && name == "one" && l.in["all"] != side:
			out.set(name, l.revision)
		case before && after:
			both = append(both, name)
		case !before && free:
			out.in[name] = sides[random.IntN(len(sides))]
		case !before:
			out.in[name] = side
		}
	}
	if n == 0 {
		return out
	}
	if !moves && len(out.edited(l)) < 2 {
		out.leave(l.revision, random)
	}
	if moves {
		first := random.IntN(len(both))
		for i, name := range both {
			if i == first || random.IntN(4) == 0 {
				out.in[name] = sides[(slices.Index(sides, out.in[name])+1+random.IntN(len(sides)-1))%len(sides)]
			}
		}
	}
	if random.IntN(4) == 0 && slices.Contains([]string{"left", "right"}, side) {
		out.names[side]++
	}
	return out
}

// edited are the folders in which a layout differs from the one before.
func (l layout) edited(from layout) map[string]bool {
	out := map[string]bool{}
	before, after := from.objects(""), l.objects("")
	for _, name := range objectNames() {
		if before[name] != after[name] {
			out[l.in[name]] = true
		}
	}
	return out
}

// leave has policies and overrides be as they were, but for one.
func (r *revision) leave(as revision, random *rand.Rand) {
	rules, changed := []string{"all", "one", "o0", "o1", "o2"}, false
	random.Shuffle(len(rules), func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
	for _, name := range rules {
		same := r.exists(name) == as.exists(name)
		switch name {
		case "all":
			same = slices.Equal(r.all, as.all)
		case "one":
			same = r.name == as.name && slices.Equal(r.one, as.one)
		default:
			same = same && r.overrides[name] == as.overrides[name]
		}
		if !same && changed {
			r.set(name, as)
		}
		changed = changed || !same
	}
}

// kustomizations are those of a layout, with the one that makes them.
func (l layout) kustomizations() []string {
	out := []string{"root"}
	for _, folder := range []string{"left", "right"} {
		if !slices.Contains(l.retired, folder) {
			out = append(out, l.kustomization(folder))
		}
	}
	for _, c := range l.children {
		out = append(out, c.name)
	}
	return out
}

func (l layout) kustomization(folder string) string {
	return fmt.Sprintf("%s%d", folder, l.names[folder])
}

// exchange is a control plane whose source holds a Kustomization of two others.
type exchange struct {
	*switches
	late *lateness
	// unnamed says that commits name nothing that may go.
	unnamed bool
}

func newExchange(m *moves) *exchange {
	s := newSource(m)
	s.distinct = true
	s.create("root", "./root")
	x := &exchange{switches: s, late: &lateness{}}
	s.wrap = x.late.wrap
	return x
}

// release has the source fetch a layout.
func (x *exchange) release(l layout) {
	x.Helper()
	contents := map[string]*strings.Builder{}
	into := func(folder, manifest string) {
		if contents[folder] == nil {
			contents[folder] = &strings.Builder{}
			fmt.Fprintf(contents[folder], "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: %s, namespace: %s}\n", folder, x.namespace)
		}
		contents[folder].WriteString(manifest)
	}
	for _, folder := range []string{"left", "right", "other", "another"} {
		if !slices.Contains(l.retired, folder) {
			into(folder, "")
		}
	}
	if other := contents["other"]; other != nil { // without its rules
		contents["empty"] = &strings.Builder{}
		contents["empty"].WriteString(other.String())
	}
	into("root", "")
	for _, folder := range []string{"left", "right"} {
		if slices.Contains(l.retired, folder) {
			continue
		}
		into("root", child{name: l.kustomization(folder), path: folder}.manifest(x.namespace))
	}
	for _, c := range l.children {
		into(c.by, c.manifest(x.namespace))
	}
	for name, manifest := range l.objects(x.namespace) {
		into(l.in[name], manifest)
	}
	files := artifact.Files{}
	for folder, content := range contents {
		files[folder+"/all.yaml"] = artifact.File{Data: []byte(content.String())}
	}
	var allows []string
	for _, folder := range l.retired {
		if x.unnamed {
			break
		}
		allows = append(allows, "kustomization/"+x.namespace+"/"+l.kustomization(folder))
	}
	x.push(files, allows...)
}

// hold has the Kustomizations of folders write nothing until others are held, or none: "".
func (x *exchange) hold(folders ...string) { x.late.folders.Store(folders) }

// lateness refuses the writes of one folder's Kustomization, with deletes that overrides are deleted, by whomever, and with templates that
// ConfigMaps are. It counts what it has refused of any.
type lateness struct {
	folders            atomic.Value
	deletes, templates atomic.Bool
	refused            atomic.Int64
}

// holds reports whether a write is refused.
func (l *lateness) holds(req *http.Request) bool {
	folders, _ := l.folders.Load().([]string)
	return slices.ContainsFunc(folders, func(folder string) bool { return l.refuses(req, folder) })
}

// refuses reports whether a write is refused as one folder's Kustomization is late.
func (l *lateness) refuses(req *http.Request, folder string) bool {
	if folder == "" || req.Method == http.MethodGet || strings.Contains(req.URL.RawQuery, "dryRun") {
		return false
	}
	if strings.Contains(req.URL.Path, "/kustomizations/"+folder) {
		return strings.HasSuffix(req.URL.Path, "/status")
	}
	if req.Method == http.MethodDelete && strings.Contains(req.URL.Path, "/overridepolicies/") {
		return l.deletes.Load()
	}
	if req.Method == http.MethodDelete && strings.Contains(req.URL.Path, "/configmaps/") {
		return l.templates.Load()
	}
	return writes(req, folder)
}

// writes reports whether a request applies an object that carries the labels of a folder's Kustomization.
func writes(req *http.Request, folder string) bool {
	if req.Body == nil || !strings.Contains(req.URL.RawQuery, "fieldManager") {
		return false
	}
	body, err := io.ReadAll(req.Body)
	req.Body = io.NopCloser(bytes.NewReader(body))
	return err == nil && bytes.Contains(body, []byte(`"kustomize.toolkit.fluxcd.io/name":"`+folder))
}

func (l *lateness) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(req *http.Request) (*http.Response, error) {
		if l.holds(req) {
			l.refused.Add(1)
			return nil, errors.New("connection refused")
		}
		return next.RoundTrip(req)
	})
}

// roundTrip is a function that is an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
