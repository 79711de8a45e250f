package siblings_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

var (
	noon    = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	present = siblings.Artifact{Source: inventory.GitRepository(client.ObjectKey{Namespace: "team", Name: "fleet"}), Digest: "sha256:2", Revision: "main@sha1:2"}
)

// named returns a Kustomization that was created so many minutes after noon, with changes.
func named(name string, minutes int, change ...func(*kustomizev1.Kustomization)) *kustomizev1.Kustomization {
	ks := &kustomizev1.Kustomization{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name), Generation: 1, CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute))},
		Spec:       kustomizev1.KustomizationSpec{SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "fleet"}},
	}
	for _, c := range change {
		c(ks)
	}
	return ks
}

func key(name string) client.ObjectKey { return client.ObjectKey{Namespace: "team", Name: name} }

func configs(names ...string) []inventory.Entry {
	var out []inventory.Entry
	for _, name := range names {
		out = append(out, inventory.Entry{ID: inventory.ID{Namespace: "team", Name: name, GroupKind: schema.GroupKind{Kind: "ConfigMap"}}, Version: "v1"})
	}
	return out
}

func ready(revision string, owns ...string) func(*kustomizev1.Kustomization) {
	return func(ks *kustomizev1.Kustomization) {
		ks.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True"}}
		ks.Status.ObservedGeneration, ks.Status.LastAppliedRevision = ks.Generation, revision
		ks.Status.Inventory = inventory.Record(configs(owns...))
	}
}

func suspended(ks *kustomizev1.Kustomization) { ks.Spec.Suspend = true }

func deleted(ks *kustomizev1.Kustomization) {
	at := metav1.NewTime(noon)
	ks.DeletionTimestamp, ks.Finalizers = &at, []string{"x"}
}

// index returns an Index over Kustomizations whose builds yield the given words; "" is an error. It appends the
// names of what is built to built.
func index(builds map[string]string, built *[]string, list ...*kustomizev1.Kustomization) *siblings.Index {
	hub := fake.NewClientBuilder().WithScheme(scheme.New())
	for _, ks := range list {
		hub.WithObjects(ks)
	}
	build := func(_ context.Context, ks *kustomizev1.Kustomization, _ siblings.Artifact) (siblings.Wants, error) {
		*built = append(*built, ks.Name+strings.TrimPrefix(ks.Spec.Path, "./"))
		if builds[ks.Name] == "" {
			return siblings.Wants{}, errors.New("no such path")
		}
		var wants siblings.Wants
		for _, word := range strings.Fields(builds[ks.Name]) {
			if child, ok := strings.CutPrefix(word, "+"); ok {
				wants.Children = append(wants.Children, &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: child}, Spec: ks.Spec})
				continue
			}
			wants.Entries = append(wants.Entries, configs(word)...)
		}
		return wants, nil
	}
	return siblings.New(hub.Build(), build, func(ks *kustomizev1.Kustomization, namespace string) bool { return ks.Namespace == namespace })
}

func TestWhoWantsWhatLeaves(t *testing.T) {
	elsewhere := func(ks *kustomizev1.Kustomization) { ks.Namespace = "others"; ks.Spec.SourceRef.Namespace = "team" }
	otherSource := func(ks *kustomizev1.Kustomization) { ks.Spec.SourceRef.Name = "apps" }
	cases := map[string]struct {
		list   []*kustomizev1.Kustomization
		builds map[string]string
		query  siblings.Query
		of     func(*kustomizev1.Kustomization) // changes the one that asks; nil for nothing
		want   siblings.Answer
		built  []string
	}{
		"one that has applied the revision has taken what it holds, and gets what it wants": {
			list: []*kustomizev1.Kustomization{named("b", 1, ready("main@sha1:2", "x"))}, builds: map[string]string{"b": "x y"},
			want: siblings.Answer{
				Successors: map[inventory.ID]client.ObjectKey{configs("x")[0].ID: key("b"), configs("y")[0].ID: key("b")},
				Taken:      map[inventory.ID]bool{configs("x")[0].ID: true, configs("y")[0].ID: false},
			}, built: []string{"b"},
		},
		"children that a sibling is about to make, and theirs, want what they want": {
			list: []*kustomizev1.Kustomization{named("root", 1), named("c", 2)}, builds: map[string]string{"root": "+b +c", "b": "x +d", "d": "y +d", "c": "z"},
			want: siblings.Answer{Successors: map[inventory.ID]client.ObjectKey{configs("x")[0].ID: key("b"), configs("y")[0].ID: key("d")}}, built: []string{"root", "c", "b", "d"},
		},
		"a child that is about to be changed wants what it does and what it will": {
			list: []*kustomizev1.Kustomization{named("b", 2), named("root", 1, func(ks *kustomizev1.Kustomization) { ks.Spec.Path = "./2" })}, builds: map[string]string{"root": "+b", "b": "y"},
			want: siblings.Answer{Successors: map[inventory.ID]client.ObjectKey{configs("y")[0].ID: key("b")}}, built: []string{"root2", "b", "b2"},
		},
		"one that is being deleted, and is made anew, wants what it will": {
			list: []*kustomizev1.Kustomization{named("root", 1)}, builds: map[string]string{"root": "+a", "a": "x"}, of: deleted,
			want: siblings.Answer{Successors: map[inventory.ID]client.ObjectKey{configs("x")[0].ID: key("a")}}, built: []string{"root", "a"},
		},
		"one that is being deleted, and may be made anew, may want what it has": {
			list: []*kustomizev1.Kustomization{named("root", 1)}, builds: map[string]string{"root": "+a"}, of: deleted,
			want: siblings.Answer{Unknown: []client.ObjectKey{key("a")}}, built: []string{"root", "a"},
		},
		"whoever is suspended makes none anew": {
			list: []*kustomizev1.Kustomization{named("root", 1, suspended)}, builds: map[string]string{"root": "+a", "a": "x"}, of: deleted, built: []string{"root"},
		},
		"one that stays is not its own sibling": {
			list: []*kustomizev1.Kustomization{named("root", 1)}, builds: map[string]string{"root": "+a", "a": "x"}, built: []string{"root"},
		},
		"without an artifact what was applied last counts": {
			list:  []*kustomizev1.Kustomization{named("b", 1, ready("main@sha1:1", "x")), named("c", 2)},
			query: siblings.Query{At: siblings.Artifact{Source: present.Source}},
			want:  siblings.Answer{Successors: map[inventory.ID]client.ObjectKey{configs("x")[0].ID: key("b")}, Unknown: []client.ObjectKey{key("c")}},
		},
		"one that is at the one before is": {
			list: []*kustomizev1.Kustomization{named("b", 1, ready("main@sha1:1", "x"))}, builds: map[string]string{"b": "y z"},
			want: siblings.Answer{Successors: map[inventory.ID]client.ObjectKey{configs("y")[0].ID: key("b")}}, built: []string{"b"},
		},
		"of two that want it the older one gets it": {
			list: []*kustomizev1.Kustomization{named("b", 2), named("c", 1)}, builds: map[string]string{"b": "x", "c": "x"},
			want: siblings.Answer{Successors: map[inventory.ID]client.ObjectKey{configs("x")[0].ID: key("c")}}, built: []string{"c", "b"},
		},
		"one that cannot be built may want it, unless it is suspended": {
			list: []*kustomizev1.Kustomization{named("b", 1), named("c", 2, suspended)}, builds: map[string]string{},
			want: siblings.Answer{Unknown: []client.ObjectKey{key("b")}}, built: []string{"b", "c"},
		},
		"those that are deleted, of other sources or of other tenants are none": {
			list: []*kustomizev1.Kustomization{named("b", 1, deleted), named("c", 1, otherSource), named("d", 1, elsewhere)},
		},
		"what is about to be applied stands for what there is, and what is about to go for nothing": {
			list: []*kustomizev1.Kustomization{named("b", 1), named("c", 1)}, builds: map[string]string{"b": "z", "new": "y"},
			query: siblings.Query{Upcoming: []*kustomizev1.Kustomization{
				{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "b"}, Spec: named("b", 1).Spec}, {ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "new"}, Spec: named("b", 1).Spec},
			}, Going: []client.ObjectKey{key("c")}},
			want: siblings.Answer{Successors: map[inventory.ID]client.ObjectKey{configs("y")[0].ID: key("new")}}, built: []string{"b", "new"},
		},
		"what goes with it wants nothing, on each level": {
			list: []*kustomizev1.Kustomization{named("c", 1, prunes, made("d")), named("d", 1, prunes, by("c"), made("e")), named("e", 1, by("d"))}, query: siblings.Query{Going: []client.ObjectKey{key("c")}},
		},
		"what it leaves behind may want it": {
			list: []*kustomizev1.Kustomization{named("c", 1, prunes, made("d"), leavesOrphans), named("d", 1, by("c"))}, query: siblings.Query{Going: []client.ObjectKey{key("c")}},
			want: siblings.Answer{Unknown: []client.ObjectKey{key("d")}}, built: []string{"d"},
		},
		"what only has its labels, or is another one's by now, may want it": {
			list:  []*kustomizev1.Kustomization{named("c", 1, prunes, made("e")), named("d", 1, by("c")), named("e", 1, by("d"))},
			query: siblings.Query{Going: []client.ObjectKey{key("c")}},
			want:  siblings.Answer{Unknown: []client.ObjectKey{key("d"), key("e")}}, built: []string{"d", "e"},
		},
		"what goes with it, but for another one that makes it, too, wants what that says": {
			list: []*kustomizev1.Kustomization{named("b", 1), named("c", 1, prunes, made("d")), named("d", 1, by("c"))}, builds: map[string]string{"b": "+d", "d": "x"},
			query: siblings.Query{Going: []client.ObjectKey{key("c")}},
			want:  siblings.Answer{Successors: map[inventory.ID]client.ObjectKey{configs("x")[0].ID: key("d")}}, built: []string{"b", "d"},
		},
		"what its parent drops wants nothing, also if it cannot be built, and so does what goes with that": {
			list:   []*kustomizev1.Kustomization{named("p", 1, prunes, made("d")), named("d", 2, prunes, by("p"), made("e")), named("e", 3, by("d"))},
			builds: map[string]string{"p": "z"}, built: []string{"p", "d", "e"},
		},
		"what its parent drops may want it if the parent prunes nothing": {
			list: []*kustomizev1.Kustomization{named("p", 1, made("d")), named("d", 2, by("p"))}, builds: map[string]string{"p": "z"},
			want: siblings.Answer{Unknown: []client.ObjectKey{key("d")}}, built: []string{"p", "d"},
		},
		"what its parent drops may want it if the parent is suspended": {
			list: []*kustomizev1.Kustomization{named("p", 1, prunes, suspended, made("d")), named("d", 2, by("p"))}, builds: map[string]string{"p": "z"},
			want: siblings.Answer{Unknown: []client.ObjectKey{key("d")}}, built: []string{"p", "d"},
		},
		"what its parent drops may want it if that is told to be kept": {
			list: []*kustomizev1.Kustomization{named("p", 1, prunes, made("d")), named("d", 2, by("p"), neverPruned)}, builds: map[string]string{"p": "z"},
			want: siblings.Answer{Unknown: []client.ObjectKey{key("d")}}, built: []string{"p", "d"},
		},
		"what its parent drops may want it if a label has that kept": {
			list:   []*kustomizev1.Kustomization{named("p", 1, prunes, made("d")), named("d", 2, by("p"), func(ks *kustomizev1.Kustomization) { ks.Labels["kustomize.toolkit.fluxcd.io/reconcile"] = "Disabled" })},
			builds: map[string]string{"p": "z"}, want: siblings.Answer{Unknown: []client.ObjectKey{key("d")}}, built: []string{"p", "d"},
		},
		"without an artifact no parent drops anything": {
			list:  []*kustomizev1.Kustomization{named("p", 1, prunes, ready("main@sha1:1", "z"), made("d")), named("d", 2, by("p"))},
			query: siblings.Query{At: siblings.Artifact{Source: present.Source}},
			want:  siblings.Answer{Unknown: []client.ObjectKey{key("d")}},
		},
		"what has another parent's labels alone may want it": {
			list: []*kustomizev1.Kustomization{named("p", 1, prunes), named("d", 2, by("p"))}, builds: map[string]string{"p": "z"},
			want: siblings.Answer{Unknown: []client.ObjectKey{key("d")}}, built: []string{"p", "d"},
		},
		"what its parent drops and another one makes may want it": {
			list: []*kustomizev1.Kustomization{named("p", 1, prunes, made("d")), named("q", 2), named("d", 3, by("p"))}, builds: map[string]string{"p": "z", "q": "+d"},
			want: siblings.Answer{Unknown: []client.ObjectKey{key("d")}}, built: []string{"p", "q", "d"},
		},
		"what stays with its parent may want it": {
			list: []*kustomizev1.Kustomization{named("p", 1, prunes, made("d")), named("d", 2, by("p"))}, builds: map[string]string{"p": "+d"},
			want: siblings.Answer{Unknown: []client.ObjectKey{key("d")}}, built: []string{"p", "d", "d"},
		},
		"what a parent that cannot be built has may want it, and so may the parent": {
			list: []*kustomizev1.Kustomization{named("p", 1, prunes, made("d")), named("d", 2, by("p"))},
			want: siblings.Answer{Unknown: []client.ObjectKey{key("d"), key("p")}}, built: []string{"p", "d"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var built []string
			own := named("a", 0, ready("main@sha1:1", "x", "y"))
			if tc.of != nil {
				tc.of(own)
			}
			x := index(tc.builds, &built, append(tc.list, own)...)
			tc.query.Of, tc.query.Objects = own, configs("x", "y")
			if tc.query.At == (siblings.Artifact{}) {
				tc.query.At = present
			}
			got, err := x.Ask(t.Context(), tc.query)
			if err != nil {
				t.Fatal(err)
			}
			if tc.want.Successors == nil {
				tc.want.Successors = map[inventory.ID]client.ObjectKey{}
			}
			if tc.want.Taken == nil {
				tc.want.Taken = map[inventory.ID]bool{}
				for id := range tc.want.Successors {
					tc.want.Taken[id] = false
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.built, built); diff != "" {
				t.Errorf("built (-want +got):\n%s", diff)
			}
		})
	}
}

// by is a change of one that another has applied.
func by(owner string) func(*kustomizev1.Kustomization) {
	return func(ks *kustomizev1.Kustomization) { ks.Labels = inventory.OwnerLabels(key(owner)) }
}

// made is a change of one that has applied others.
func made(children ...string) func(*kustomizev1.Kustomization) {
	return func(ks *kustomizev1.Kustomization) {
		ks.Status.Inventory = &kustomizev1.ResourceInventory{}
		for _, name := range children {
			ks.Status.Inventory.Entries = append(ks.Status.Inventory.Entries, kustomizev1.ResourceRef{ID: "team_" + name + "_kustomize.toolkit.fluxcd.io_Kustomization", Version: "v1"})
		}
	}
}

func prunes(ks *kustomizev1.Kustomization) { ks.Spec.Prune = true }

func neverPruned(ks *kustomizev1.Kustomization) {
	ks.Annotations = map[string]string{"kustomize.toolkit.fluxcd.io/prune": "disabled"}
}

func leavesOrphans(ks *kustomizev1.Kustomization) {
	ks.Spec.DeletionPolicy = kustomizev1.DeletionPolicyOrphan
}

// What was built, or learned, is not built again until the Kustomization or the artifact changes.
func TestWhatIsKnownIsNotBuilt(t *testing.T) {
	var built []string
	a, b := named("a", 0), named("b", 1)
	x := index(map[string]string{"b": "x"}, &built, a, b)
	ask := func(at siblings.Artifact, want string) {
		t.Helper()
		if _, err := x.Ask(t.Context(), siblings.Query{Of: a, At: at, Objects: configs("x")}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(built, " "); got != want {
			t.Errorf("built %q, want %q", got, want)
		}
	}
	ask(present, "b")
	ask(present, "b")
	next := siblings.Artifact{Source: present.Source, Digest: "sha256:3", Revision: "main@sha1:3"}
	x.Learn(b, next, siblings.Wants{Entries: configs("y")})
	ask(next, "b")
	ask(present, "b b")
	ask(siblings.Artifact{Source: present.Source}, "b b")
	b.Spec.PostBuild = &kustomizev1.PostBuild{SubstituteFrom: []kustomizev1.SubstituteReference{{Kind: "ConfigMap", Name: "vars"}}}
	x = index(map[string]string{"b": "x"}, &built, a, b)
	x.Learn(b, present, siblings.Wants{Entries: configs("x")})
	ask(present, "b b b")
	b.Spec.PostBuild = nil
	x = index(map[string]string{"b": "x"}, &built, a, b)
	x.Learn(b, present, siblings.Wants{Entries: configs("x")})
	x.Forget(key("b"))
	ask(present, "b b b b")
}

func TestTheOneThatIsLearnedOfLaterGivesWay(t *testing.T) {
	var built []string
	a, b, c := named("a", 0), named("b", 1), named("c", 2, deleted)
	x := index(map[string]string{"b": "x"}, &built, a, b, c)
	x.Learn(c, present, siblings.Wants{Entries: configs("x")})
	x.Learn(b, present, siblings.Wants{Entries: configs("v", "x")})
	x.Learn(a, present, siblings.Wants{Entries: configs("w", "x")})
	x.Learn(b, present, siblings.Wants{Entries: configs("u", "x")})
	got, err := x.Earlier(t.Context(), a, present, configs("w", "x"))
	if want := []siblings.Shared{{ID: configs("x")[0].ID, With: key("b")}}; !slices.Equal(got, want) || err != nil {
		t.Errorf("a: %+v, %v; want %+v", got, err, want)
	}
	if got, err := x.Earlier(t.Context(), b, present, configs("v", "x")); len(got) > 0 || err != nil {
		t.Errorf("b: %+v, %v; want none", got, err)
	}
	for name, tc := range map[string]struct {
		holder string
		id     inventory.ID
		want   siblings.Claim
	}{
		"it wants it":          {"b", configs("x")[0].ID, siblings.Holds},
		"it does not any more": {"b", configs("w")[0].ID, siblings.GaveUp},
		"it is being deleted":  {"c", configs("x")[0].ID, 0},
		"it is gone":           {"d", configs("x")[0].ID, siblings.GaveUp},
	} {
		if got, err := x.ClaimOf(t.Context(), a, present, tc.id, key(tc.holder)); got != tc.want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestWhatLeavesSplits(t *testing.T) {
	successors := map[inventory.ID]client.ObjectKey{configs("a")[0].ID: key("b"), configs("e")[0].ID: key("c")}
	may := inventory.AllowanceOf("configmap/team/d", "", "main@sha1:2")
	cases := map[string]struct {
		doomed  string
		unknown []client.ObjectKey
		deleted string
		says    string
		within  string
	}{
		"nothing":      {},
		"all is known": {"a d x", nil, "d x", "ConfigMap/team/a changes hands: Kustomization team/b has yet to apply it", ""},
		"those of other namespaces are not named": {"a x", []client.ObjectKey{key("y"), key("z")}, "",
			"ConfigMap/team/a changes hands: Kustomization of another namespace has yet to apply it; ConfigMap/team/x left this one and stays: nobody can tell whether " +
				`Kustomization of another namespace wants it, as that cannot be built; mend that, or allow the removal with the annotation kustomize.flotilla.io/allow-prune: "configmap/team/x", or in a commit by the trailer Flotilla-Allow-Delete: configmap/team/x`, "shop"},
		"two siblings cannot be built": {"x", []client.ObjectKey{key("y"), key("z")}, "",
			"ConfigMap/team/x left this one and stays: nobody can tell whether " +
				`Kustomizations team/y, team/z want it, as they cannot be built; mend that, or allow the removal with the annotation kustomize.flotilla.io/allow-prune: "configmap/team/x", or in a commit by the trailer Flotilla-Allow-Delete: configmap/team/x`, ""},
		"one sibling cannot be built": {"a d e x", []client.ObjectKey{key("z")}, "d",
			"ConfigMap/team/a, ConfigMap/team/e change hands: Kustomizations team/b, team/c have yet to apply them; ConfigMap/team/x left this one and stays: nobody can tell whether " +
				`Kustomization team/z wants it, as that cannot be built; mend that, or allow the removal with the annotation kustomize.flotilla.io/allow-prune: "configmap/team/x", or in a commit by the trailer Flotilla-Allow-Delete: configmap/team/x`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := siblings.Of(configs(strings.Fields(tc.doomed)...), siblings.Answer{Successors: successors, Unknown: tc.unknown}, may, "main@sha1:2")
			if diff := cmp.Diff(configs(strings.Fields(tc.deleted)...), got.Deleted); diff != "" {
				t.Errorf("deleted (-want +got):\n%s", diff)
			}
			got.Within = tc.within
			if got.String() != tc.says || got.Waits() != (tc.says != "") {
				t.Errorf("it says %q, want %q", got, tc.says)
			}
		})
	}
}
