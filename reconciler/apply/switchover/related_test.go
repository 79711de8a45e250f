package switchover_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/apply/switchover"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
)

// overrides is an override of a namespace for ConfigMaps of a name; for all objects without one.
func overrides(namespace, name string) *unstructured.Unstructured {
	spec := map[string]any{}
	if name != "" {
		spec["resourceSelectors"] = []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": name}}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": policyv1alpha1.GroupVersion.String(), "kind": "OverridePolicy", "metadata": map[string]any{"namespace": namespace, "name": "rule"}, "spec": spec,
	}}
}

// carries is a policy of the fleet for ConfigMaps with a label.
func carries(label string) *policyv1alpha1.ClusterPropagationPolicy {
	return &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "rule"}, Spec: policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{
		{APIVersion: "v1", Kind: "ConfigMap", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": label}}},
	}}}
}

func unstructuredOf(policy *policyv1alpha1.ClusterPropagationPolicy) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(policy)
	if err != nil {
		panic(err)
	}
	obj := &unstructured.Unstructured{Object: content}
	obj.SetGroupVersionKind(policyv1alpha1.GroupVersion.WithKind(policyv1alpha1.ResourceKindClusterPropagationPolicy))
	return obj
}

// holds has a Kustomization have applied a rule.
func holds(kind, namespace string) func(*kustomizev1.Kustomization) {
	return func(ks *kustomizev1.Kustomization) {
		id := inventory.ID{Namespace: namespace, Name: "rule", GroupKind: schema.GroupKind{Group: policyv1alpha1.GroupVersion.Group, Kind: kind}}
		ks.Status.Inventory = inventory.Record([]inventory.Entry{{ID: id, Version: policyv1alpha1.GroupVersion.Version}})
	}
}

// A commit that edits in one Kustomization a template, and in another one a policy or override for it, has both count at once.
func TestWhatIsRelatedIsSwitchedTogether(t *testing.T) {
	same := func(ks *kustomizev1.Kustomization) { ks.Labels = map[string]string{"differs": "no"} }
	edited := []applier.Change{change(applier.Configured, "a", "shop")}
	labelled := change(applier.Configured, "a", "shop")
	labelled.Desired.SetLabels(map[string]string{"app": "web"})
	ruled := func(obj *unstructured.Unstructured) []applier.Change {
		return []applier.Change{{Desired: obj, Action: applier.Configured, Owner: key("shop")}}
	}
	was := func(obj *unstructured.Unstructured) applier.Observed {
		return applier.Observed{inventory.IDOf(obj): obj}
	}
	of, fleet := holds("OverridePolicy", "team"), holds("ClusterPropagationPolicy", "")
	for name, tc := range map[string]struct {
		query  switchover.Query
		shelf  *kustomizev1.Kustomization
		rule   client.Object
		others []client.Object
		wants  string // what an override of the other one means at the artifact
		want   string
	}{
		"an override that is new in another one means it":   {query: switchover.Query{Changes: edited}, shelf: named("shelf"), wants: "a", want: "team/shelf"},
		"an override of another one comes to mean it":       {query: switchover.Query{Changes: edited}, shelf: named("shelf", of), rule: overrides("team", "b"), wants: "a", want: "team/shelf"},
		"an override that is new means something else":      {query: switchover.Query{Changes: edited}, shelf: named("shelf"), wants: "b"},
		"an override of another one means it":               {query: switchover.Query{Changes: edited}, shelf: named("shelf", of), rule: overrides("team", "a"), want: "team/shelf"},
		"one that means all of the namespace":               {query: switchover.Query{Changes: edited}, shelf: named("shelf", of), rule: overrides("team", ""), want: "team/shelf"},
		"one that means another object":                     {query: switchover.Query{Changes: edited}, shelf: named("shelf", of), rule: overrides("team", "b")},
		"one of another namespace":                          {query: switchover.Query{Changes: edited}, shelf: named("shelf", holds("OverridePolicy", "other")), rule: overrides("other", "")},
		"one that is gone":                                  {query: switchover.Query{Changes: edited}, shelf: named("shelf", of), rule: overrides("other", "")},
		"a policy of another one carries it":                {query: switchover.Query{Changes: []applier.Change{labelled}}, shelf: named("shelf", fleet), rule: carries("web"), want: "team/shelf"},
		"a policy of another one carries others":            {query: switchover.Query{Changes: []applier.Change{labelled}}, shelf: named("shelf", fleet), rule: carries("db")},
		"nothing is written":                                {query: switchover.Query{Changes: []applier.Change{change(applier.Unchanged, "a", "shop")}}, shelf: named("shelf", of), rule: overrides("team", "a")},
		"the commit changes nothing of the other one":       {query: switchover.Query{Changes: edited}, shelf: named("shelf", of, same), rule: overrides("team", "a")},
		"the other one has applied it":                      {query: switchover.Query{Changes: edited}, shelf: named("shelf", of, at(present.Digest, present.Revision)), rule: overrides("team", "a")},
		"the other one has written it, and waits":           {query: switchover.Query{Changes: edited}, shelf: named("shelf", of, same, at(present.Digest, present.Revision), says(revisiongate.Condition, metav1.ConditionTrue, revisiongate.ReasonWritten)), rule: overrides("team", "a"), want: "team/shelf"},
		"the other one refuses it":                          {query: switchover.Query{Changes: edited}, shelf: named("shelf", of, tries, says(meta.ReadyCondition, metav1.ConditionFalse, "BuildFailed")), rule: overrides("team", "a")},
		"the other one waits for a third one":               {query: switchover.Query{Changes: edited}, shelf: named("shelf", of, tries, dependsOn("base"), says(meta.ReadyCondition, metav1.ConditionFalse, meta.DependencyNotReadyReason)), rule: overrides("team", "a"), others: []client.Object{named("base")}, want: "team/shelf"},
		"the other one waits for what does not exist":       {query: switchover.Query{Changes: edited}, shelf: named("shelf", of, tries, dependsOn("base"), says(meta.ReadyCondition, metav1.ConditionFalse, meta.DependencyNotReadyReason)), rule: overrides("team", "a")},
		"the other one refuses its own spec":                {query: switchover.Query{Changes: edited}, shelf: named("shelf", of, says(meta.ReadyCondition, metav1.ConditionFalse, "InvalidServiceAccount")), rule: overrides("team", "a")},
		"the other one is none of the siblings":             {query: switchover.Query{Changes: edited}, shelf: named("shelf", of, stranger), rule: overrides("team", "a")},
		"so it is where this one holds the override":        {query: switchover.Query{Changes: ruled(overrides("team", "a"))}, shelf: named("shelf", owns("a"), stranger)},
		"the other one is suspended":                        {query: switchover.Query{Changes: edited}, shelf: named("shelf", of, func(ks *kustomizev1.Kustomization) { ks.Spec.Suspend = true }), rule: overrides("team", "a")},
		"the other one is of another source":                {query: switchover.Query{Changes: edited}, shelf: named("shelf", of, func(ks *kustomizev1.Kustomization) { ks.Spec.SourceRef.Name = "other" }), rule: overrides("team", "a")},
		"the other one depends on this one":                 {query: switchover.Query{Changes: edited}, shelf: named("shelf", of, dependsOn("shop")), rule: overrides("team", "a")},
		"this one depends on the other one":                 {query: switchover.Query{Of: named("shop", dependsOn("shelf")), Changes: edited}, shelf: named("shelf", of), rule: overrides("team", "a")},
		"the other one is being deleted, with an override":  {query: switchover.Query{Changes: edited}, shelf: named("shelf", of, deleted), rule: overrides("team", "a"), want: "team/shelf"},
		"so is one that leaves what it applied":             {query: switchover.Query{Changes: edited}, shelf: named("shelf", of, deleted, func(ks *kustomizev1.Kustomization) { ks.Spec.Prune = false }), rule: overrides("team", "a")},
		"so is one that the brake holds":                    {query: switchover.Query{Changes: edited}, shelf: named("shelf", of, deleted, says(meta.StalledCondition, metav1.ConditionTrue, "PruneBlocked")), rule: overrides("team", "a")},
		"so is one whose override means another object":     {query: switchover.Query{Changes: edited}, shelf: named("shelf", of, deleted), rule: overrides("team", "b")},
		"an override means what another one has":            {query: switchover.Query{Changes: ruled(overrides("team", "a"))}, shelf: named("shelf", owns("a")), want: "team/shelf"},
		"an override meant what another one has":            {query: switchover.Query{Changes: ruled(overrides("team", "b")), Seen: was(overrides("team", "a"))}, shelf: named("shelf", owns("a")), want: "team/shelf"},
		"an override that is deleted meant it":              {query: switchover.Query{Leaving: siblings.Handover{Deleted: []inventory.Entry{{ID: inventory.IDOf(overrides("team", "a"))}}}, Seen: was(overrides("team", "a"))}, shelf: named("shelf", owns("a")), want: "team/shelf"},
		"an override means nothing of what another one has": {query: switchover.Query{Changes: ruled(overrides("team", "b"))}, shelf: named("shelf", owns("a"))},
		"an override means what another one has, unchanged": {query: switchover.Query{Changes: ruled(overrides("team", "a"))}, shelf: named("shelf", owns("a"), same)},
		"an override of another namespace means nothing":    {query: switchover.Query{Changes: ruled(overrides("other", ""))}, shelf: named("shelf", owns("a"))},
		"two overrides may mean the same":                   {query: switchover.Query{Changes: ruled(overrides("team", ""))}, shelf: named("shelf", of), rule: overrides("team", "b"), want: "team/shelf"},
		"two overrides come to mean the same":               {query: switchover.Query{Changes: ruled(overrides("team", "a"))}, shelf: named("shelf"), wants: "a", want: "team/shelf"},
		"an override that is deleted meant the same":        {query: switchover.Query{Leaving: siblings.Handover{Deleted: []inventory.Entry{{ID: inventory.IDOf(overrides("team", "a"))}}}, Seen: was(overrides("team", "a"))}, shelf: named("shelf"), wants: "a", want: "team/shelf"},
		"two overrides mean objects of other names":         {query: switchover.Query{Changes: ruled(overrides("team", "a"))}, shelf: named("shelf", of), rule: overrides("team", "b")},
		"two overrides are of other namespaces":             {query: switchover.Query{Changes: ruled(overrides("team", ""))}, shelf: named("shelf", holds("OverridePolicy", "other")), rule: overrides("other", "")},
		"an override and a policy of the fleet":             {query: switchover.Query{Changes: ruled(overrides("team", ""))}, shelf: named("shelf", fleet), rule: carries("web"), want: "team/shelf"},
		"two policies of the fleet are for other labels":    {query: switchover.Query{Changes: ruled(unstructuredOf(carries("db")))}, shelf: named("shelf", fleet), rule: carries("web")},
		"two policies of the fleet are for the same labels": {query: switchover.Query{Changes: ruled(unstructuredOf(carries("web")))}, shelf: named("shelf", fleet), rule: carries("web"), want: "team/shelf"},
		"the commit changes nothing of the other override":  {query: switchover.Query{Changes: ruled(overrides("team", "a"))}, shelf: named("shelf", of, same), rule: overrides("team", "a")},
		"the other one says that it is switched with this": {
			query: switchover.Query{Changes: edited}, want: "team/shelf",
			shelf: named("shelf", func(ks *kustomizev1.Kustomization) {
				ks.Status.Conditions = []metav1.Condition{{Type: revisiongate.Condition, Status: metav1.ConditionTrue, Reason: revisiongate.ReasonWritten, Message: revisiongate.Announcement(present.Revision, "x", []string{"team/shop"})}}
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append(tc.others, tc.shelf)
			if tc.rule != nil {
				objects = append(objects, tc.rule)
			}
			if tc.query.Of == nil {
				tc.query.Of = named("shop")
			}
			tc.query.At = present
			with, err := groups(clocktesting.NewFakePassiveClock(noon), map[string][]string{"shelf overrides": strings.Fields(tc.wants)}, objects...).With(t.Context(), tc.query)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, key := range with {
				names = append(names, key.String())
			}
			if got := strings.Join(names, " "); got != tc.want {
				t.Errorf("with %q, want %q", got, tc.want)
			}
		})
	}
}

// A policy or an override may stand in a Kustomization that the commit makes, or leads to another folder: it is not there yet, or says
// that it has all of the commit.
func TestARuleOfWhatArrives(t *testing.T) {
	now := at(present.Digest, present.Revision)
	as := func(name string, change ...func(*kustomizev1.Kustomization)) *kustomizev1.Kustomization {
		ks := named(name, change...)
		ks.Spec, ks.Labels = child(name).Spec, inventory.OwnerLabels(key("root"))
		return ks
	}
	led := as("new", now)
	led.Spec.Path = "./old"
	paused := as("new", now, func(ks *kustomizev1.Kustomization) { ks.Spec.Suspend, ks.Spec.Path = true, "./old" })
	makes := func(more ...string) map[string][]string {
		out := map[string][]string{"root makes": {"new"}, "new overrides": {"a"}}
		for _, wants := range more {
			name, what, _ := strings.Cut(wants, ": ")
			out[name] = strings.Fields(what)
		}
		return out
	}
	root := named("root")
	for name, tc := range map[string]struct {
		of      *kustomizev1.Kustomization
		made    string // what it makes itself
		wants   map[string][]string
		objects []client.Object
		want    string
	}{
		"who makes it has yet to":                           {wants: makes(), objects: []client.Object{root}, want: "team/new"},
		"it means something else":                           {wants: makes("new overrides: b"), objects: []client.Object{root}},
		"who makes it has done so, and somebody deleted it": {wants: makes(), objects: []client.Object{named("root", now)}},
		"it is there, and has yet to write it":              {wants: makes(), objects: []client.Object{root, as("new")}, want: "team/new"},
		"it is there, and has written it":                   {wants: makes(), objects: []client.Object{root, as("new", now)}},
		"it is there, and is led to another folder":         {wants: makes(), objects: []client.Object{root, led}, want: "team/new"},
		"it is there, and suspended":                        {wants: makes(), objects: []client.Object{root, paused}},
		"it comes suspended":                                {wants: makes("root makes: suspended", "suspended overrides: a"), objects: []client.Object{root}},
		"one that it makes means it":                        {wants: makes("root makes: middle", "middle makes: new"), objects: []client.Object{root}, want: "team/new"},
		"it waits for this one":                             {wants: makes("root makes: new-on-shop", "new-on-shop overrides: a"), objects: []client.Object{root}},
		"it waits for one that arrives and waits for this":  {wants: makes("root makes: new-on-b-on-shop b-on-shop", "new-on-b-on-shop overrides: a"), objects: []client.Object{root}},
		"this one waits for who makes it":                   {of: named("shop", dependsOn("root")), wants: makes(), objects: []client.Object{root}},
		"who makes it waits for this one":                   {wants: makes(), objects: []client.Object{named("root", dependsOn("shop"))}},
		"who makes it refuses the revision":                 {wants: makes(), objects: []client.Object{named("root", tries, says(meta.ReadyCondition, metav1.ConditionFalse, "PruneBlocked"))}},
		"who makes it is suspended":                         {wants: makes(), objects: []client.Object{named("root", func(ks *kustomizev1.Kustomization) { ks.Spec.Suspend = true })}},
		"who would make it is a stranger":                   {wants: makes(), objects: []client.Object{named("root", stranger)}},
		"this one makes it":                                 {made: "new", wants: makes("root makes:"), want: "team/new"},
	} {
		t.Run(name, func(t *testing.T) {
			x := groups(clocktesting.NewFakePassiveClock(noon), tc.wants, append(tc.objects, named("shop"))...)
			of := named("shop")
			if tc.of != nil {
				of = tc.of
			}
			changes := []applier.Change{change(applier.Configured, "a", "shop")}
			if tc.made != "" {
				made, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child(tc.made))
				if err != nil {
					t.Fatal(err)
				}
				obj := &unstructured.Unstructured{Object: made}
				obj.SetGroupVersionKind(kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind))
				changes = append(changes, applier.Change{Desired: obj, Action: applier.Created})
			}
			with, err := x.With(t.Context(), switchover.Query{Of: of, At: present, Changes: changes})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, key := range with {
				names = append(names, key.String())
			}
			if got := strings.Join(names, " "); got != tc.want {
				t.Errorf("with %q, want %q", got, tc.want)
			}
			if tc.made != "" {
				return // it is there before anybody is waited for
			}
			if _, err := x.Await(t.Context(), switchover.Wait{Of: of, At: present, With: []client.ObjectKey{key("new")}}); (err != nil) != (tc.want != "") && name != "it means something else" {
				t.Errorf("it is waited for: %v", err)
			}
		})
	}
}

// stranger has a Kustomization be none that may use the source, or of a tenant that others wait for nothing of.
func stranger(ks *kustomizev1.Kustomization) { ks.Labels = map[string]string{"stranger": "yes"} }

// One that is made between two looks at what is there is not missed: the cache did not have it at the first, and has it at the second.
func TestOneThatArrivesMeanwhile(t *testing.T) {
	build := func(_ context.Context, ks *kustomizev1.Kustomization, _ siblings.Artifact) (siblings.Wants, error) {
		if ks.Name == "root" {
			return siblings.Wants{Children: []*kustomizev1.Kustomization{child("new")}}, nil
		}
		return siblings.Wants{Rules: []*unstructured.Unstructured{overrides("team", "a")}}, nil
	}
	differs := func(context.Context, *kustomizev1.Kustomization, siblings.Artifact) (bool, error) { return true, nil }
	made := named("new")
	made.Spec = child("new").Spec
	store := func(objects ...client.Object) client.Client {
		return fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(append(objects, named("shop"), named("root"))...).Build()
	}
	hub, live := store(), store(made)
	index := siblings.New(hub, build, func(*kustomizev1.Kustomization, string) bool { return true })
	with, err := switchover.New(hub, live, index, differs, clocktesting.NewFakePassiveClock(noon)).With(t.Context(), switchover.Query{
		Of: named("shop"), At: present, Changes: []applier.Change{change(applier.Configured, "a", "shop")},
	})
	if diff := cmp.Diff([]client.ObjectKey{key("new")}, with); diff != "" || err != nil {
		t.Errorf("with (-want +got):\n%s\n%v", diff, err)
	}
}

// A policy or an override of more than twenty is found where it means the template already; those that come to mean it are not looked for
// where the commit changes, or brings, more than twenty.
func TestHowManyAreLookedInto(t *testing.T) {
	rule := overrides("team", "a")
	for name, tc := range map[string]struct {
		others, arrivals int
		want             int
	}{
		"twenty that are changed, of which one comes to mean it": {others: 20, want: 1},
		"one more than that":      {others: 21},
		"twenty that are brought": {arrivals: 20, want: 1},
		"one more than they":      {arrivals: 21},
		"one is brought beside many that are changed, by who holds others": {others: 30, arrivals: 1, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			root := named("root", func(ks *kustomizev1.Kustomization) {
				ks.Status.Inventory = inventory.Record([]inventory.Entry{{ID: inventory.ID{Namespace: "team", Name: "shop", GroupKind: schema.GroupKind{Group: kustomizev1.GroupVersion.Group, Kind: "Kustomization"}}, Version: "v1"}})
			})
			if tc.arrivals == 0 {
				root.Spec.Suspend = true
			}
			objects := []client.Object{named("shop"), root}
			for n := range tc.others {
				objects = append(objects, named(fmt.Sprintf("app-%02d", n)))
			}
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).Build()
			build := func(_ context.Context, ks *kustomizev1.Kustomization, _ siblings.Artifact) (out siblings.Wants, err error) {
				if ks.Name == "root" {
					for n := range tc.arrivals {
						out.Children = append(out.Children, child(fmt.Sprintf("new-%02d", n)))
					}
				}
				if ks.Name == "new-00" || ks.Name == "app-00" && tc.arrivals == 0 {
					out.Rules = []*unstructured.Unstructured{rule}
				}
				return out, nil
			}
			index := siblings.New(hub, build, func(*kustomizev1.Kustomization, string) bool { return true })
			differs := func(context.Context, *kustomizev1.Kustomization, siblings.Artifact) (bool, error) { return true, nil }
			with, err := switchover.New(hub, hub, index, differs, clocktesting.NewFakePassiveClock(noon)).With(t.Context(), switchover.Query{
				Of: named("shop"), At: present, Changes: []applier.Change{change(applier.Configured, "a", "shop")},
			})
			if err != nil || len(with) != tc.want {
				t.Errorf("with %v, want %d: %v", with, tc.want, err)
			}
		})
	}
}

// A source's files are not built for a Kustomization that may not use it.
func TestNothingIsBuiltForAStranger(t *testing.T) {
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(named("shelf", stranger)).Build()
	build := func(context.Context, *kustomizev1.Kustomization, siblings.Artifact) (siblings.Wants, error) {
		t.Error("it is built")
		return siblings.Wants{}, nil
	}
	differs := func(context.Context, *kustomizev1.Kustomization, siblings.Artifact) (bool, error) {
		t.Error("its files are compared")
		return true, nil
	}
	index := siblings.New(hub, build, func(*kustomizev1.Kustomization, string) bool { return false })
	with, err := switchover.New(hub, hub, index, differs, clocktesting.NewFakePassiveClock(noon)).With(t.Context(), switchover.Query{
		Of: named("shop"), At: present, Changes: []applier.Change{change(applier.Configured, "a", "shop")},
	})
	if err != nil || len(with) > 0 {
		t.Errorf("with %v: %v", with, err)
	}
}

// A rule for a large part of the fleet does not have all of that wait for the slowest.
func TestARuleThatMeansMuchWaitsForNobody(t *testing.T) {
	for count, want := range map[int]int{20: 20, 21: 0} {
		var objects []client.Object
		for n := range count {
			objects = append(objects, named(fmt.Sprintf("app-%02d", n), owns("a")))
		}
		with, err := groups(clocktesting.NewFakePassiveClock(noon), nil, objects...).With(t.Context(), switchover.Query{
			Of: named("shop"), At: present, Changes: []applier.Change{{Desired: overrides("team", ""), Action: applier.Configured, Owner: key("shop")}},
		})
		if err != nil || len(with) != want {
			t.Errorf("of %d it waits for %d, want %d: %v", count, len(with), want, err)
		}
	}
}
