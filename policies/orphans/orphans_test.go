package orphans_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
	"github.com/flotilla-io/flotilla/policies/orphans"
)

func id(name string) orphans.ID {
	return orphans.ID{Kind: schema.GroupKind{Kind: "ConfigMap"}, NamespacedName: types.NamespacedName{Namespace: "shop", Name: name}}
}

// TestSuspect: only what says in every way that it was applied from here.
func TestSuspect(t *testing.T) {
	ours, contested := hubclaim.Standing{Hub: "one"}, hubclaim.Standing{Hub: "one", Contested: true}
	cases := map[string]struct {
		change   func(*orphans.Object)
		standing hubclaim.Standing
		want     bool
	}{
		"applied from here":                           {func(*orphans.Object) {}, ours, true},
		"by another hub":                              {func(o *orphans.Object) { o.Owner.Hub = "two" }, ours, false},
		"long ago, before hubs said so":               {func(o *orphans.Object) { o.Owner.Hub = "" }, ours, true},
		"long ago, where another hub was before":      {func(o *orphans.Object) { o.Owner.Hub = "" }, contested, false},
		"without the label":                           {func(o *orphans.Object) { o.Managed = false }, ours, false},
		"a copy that somebody else made of an object": {func(o *orphans.Object) { o.Applied = false }, ours, false},
		"being deleted":                               {func(o *orphans.Object) { o.Leaving = true }, ours, true},
		"names no Work":                               {func(o *orphans.Object) { o.Work = types.NamespacedName{} }, ours, false},
		"under another name that the cluster had":     {func(o *orphans.Object) { o.Work.Namespace = "karmada-es-west" }, ours, true},
		"so, where another hub was before":            {func(o *orphans.Object) { o.Work.Namespace = "karmada-es-west" }, contested, true},
		"so, by another hub":                          {func(o *orphans.Object) { o.Work.Namespace, o.Owner.Hub = "karmada-es-west", "two" }, ours, false},
		"so, long ago":                                {func(o *orphans.Object) { o.Work.Namespace, o.Owner.Hub = "karmada-es-west", "" }, ours, false},
		"so, and nobody knows who asks":               {func(o *orphans.Object) { o.Work.Namespace, o.Owner.Hub = "karmada-es-west", "" }, hubclaim.Standing{}, false},
		"names a Work where there are none":           {func(o *orphans.Object) { o.Work.Namespace = "shop" }, ours, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := orphans.Object{
				ID: id("a"), Work: types.NamespacedName{Namespace: "karmada-es-east", Name: "a-1"},
				Owner: hubclaim.Ownership{Hub: "one", Work: "w"}, Managed: true, Applied: true,
			}
			tc.change(&o)
			if got := o.Suspect("east", tc.standing); got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
			}
		})
	}
}

// TestWorks: the Works that an object may mean, under the names that they and the cluster
// had.
func TestWorks(t *testing.T) {
	now, former := workv1alpha2.WorkName("ConfigMap", "a", "shop"), workv1alpha2.FormerWorkName("ConfigMap", "a", "shop")
	work := func(cluster, name string) string { return "karmada-es-" + cluster + "/" + name }
	for what, tc := range map[string]struct {
		namespace, name string
		want            []string
	}{
		"of the cluster":                   {"karmada-es-east", now, []string{work("east", now)}},
		"under its former name":            {"karmada-es-east", former, []string{work("east", former), work("east", now)}},
		"when the cluster had another one": {"karmada-es-west", now, []string{work("west", now), work("east", now)}},
		"both":                             {"karmada-es-west", former, []string{work("west", former), work("west", now), work("east", former), work("east", now)}},
	} {
		o := orphans.Object{ID: id("a"), Work: types.NamespacedName{Namespace: tc.namespace, Name: tc.name}}
		var got []string
		for key := range o.Works("east") {
			got = append(got, key.String())
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

func TestNamed(t *testing.T) {
	manifest := func(raw string) []workv1alpha1.Manifest {
		return []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(raw)}}}
	}
	twice := &workv1alpha1.Work{}
	twice.Spec.Workload.Manifests = manifest(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"a"},"KIND":"Secret","Metadata":{"name":"b"}}`)
	asks, remembers, unread, other := &workv1alpha1.Work{}, &workv1alpha1.Work{}, &workv1alpha1.Work{}, &workv1alpha1.Work{}
	asks.Spec.Workload.Manifests = manifest(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"a"}}`)
	remembers.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Identifier: workv1alpha1.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a"}}}
	unread.Spec.Workload.Manifests = manifest(`{`)
	other.Spec.Workload.Manifests = manifest(`{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"shop","name":"a"}}`)
	for name, tc := range map[string]struct {
		work *workv1alpha1.Work
		want bool
	}{
		"no Work": {nil, false}, "one that asks for it": {asks, true}, "one that has yet to remove it": {remembers, true},
		"one that cannot be read": {unread, true}, "one that can be read in two ways": {twice, true}, "one that asks for something else": {other, false},
	} {
		if got := orphans.Named(tc.work, id("a")); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

func TestMessage(t *testing.T) {
	var seven []orphans.Object
	for i := range 7 {
		seven = append(seven, orphans.Object{ID: id(fmt.Sprint(i))})
	}
	hang := []orphans.Object{seven[0], {ID: id("hangs"), Leaving: true}}
	data := orphans.Object{ID: id("data")}
	data.Kind.Kind = "PersistentVolumeClaim"
	got := []string{orphans.Message("east", append(slices.Clone(seven), data), orphans.KeptByPolicy), orphans.Message("east", seven[:1], orphans.KeptByPolicy), orphans.Message("east", seven, orphans.KeptAsMany), orphans.Message("east", seven[:1], orphans.KeptAsHeld),
		orphans.Message("east", hang, orphans.KeptByPolicy), orphans.Message("east", hang[1:], orphans.KeptByPolicy)}
	want := []string{
		"8 objects that no Work names: PersistentVolumeClaim shop/data (with its data), ConfigMap shop/0, ConfigMap shop/1, ConfigMap shop/2, ConfigMap shop/3 and 3 more; " +
			"flotilla prune --cluster east removes what nobody needs",
		"1 object that no Work names: ConfigMap shop/0; flotilla prune --cluster east removes what nobody needs",
		"7 objects that no Work names: ConfigMap shop/0, ConfigMap shop/1, ConfigMap shop/2, ConfigMap shop/3, ConfigMap shop/4 and 2 more; " +
			"flotilla prune --cluster east removes what nobody needs, as its policy does not for so many at once",
		"1 object that no Work names: ConfigMap shop/0; the control plane was set back to an older backup, and what was made since is among them: " +
			"nothing is removed before flotilla resume hub was said",
		"2 objects that no Work names: ConfigMap shop/0, ConfigMap shop/hangs (being deleted); flotilla prune --cluster east removes what nobody needs",
		"1 object that no Work names: ConfigMap shop/hangs (being deleted); what is being deleted goes once nothing keeps it there, such as a finalizer",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !orphans.NamesVolumeClaims(got[0]) || orphans.NamesVolumeClaims(got[1]) {
		t.Errorf("which of these tells of claims is not known: %q", got[:2])
	}
}

func TestBrakes(t *testing.T) {
	for counts, want := range map[[2]int]bool{{1, 10}: false, {5, 10}: false, {6, 10}: true, {6, 30}: false, {7, 30}: true, {2, 2}: true} {
		if got := orphans.Brakes(counts[0], counts[1]); got != want {
			t.Errorf("%d of %d: %t, want %t", counts[0], counts[1], got, want)
		}
	}
}

// TestByPolicy: what holds data, or things of others, is removed by nobody's rule.
func TestByPolicy(t *testing.T) {
	for name, want := range map[string]bool{"ConfigMap": true, "Namespace": false, "PersistentVolumeClaim": false} {
		of := id("a")
		of.Kind.Kind = name
		if got := orphans.ByPolicy(of); got != want {
			t.Errorf("%s: %t, want %t", name, got, want)
		}
		if got := orphans.Removable(of); got != (name != "Namespace") {
			t.Errorf("%s is removed where somebody names it: %t", name, got)
		}
	}
}
