package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// sharedQuota is the quota shop/team with shares.
func sharedQuota(t *testing.T, shares string) *policyv1alpha1.FederatedResourceQuota {
	t.Helper()
	q := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team", UID: "q-1", Generation: 3}}
	if err := yaml.UnmarshalStrict([]byte(`{overall: {cpu: 10}, staticAssignments: `+shares+`}`), &q.Spec); err != nil {
		t.Fatal(err)
	}
	return q
}

// TestShares: clusters that are there and have a share get it, and no others.
func TestShares(t *testing.T) {
	var clusters []*clusterv1alpha1.Cluster
	for _, name := range []string{"west", "east", "north"} {
		clusters = append(clusters, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}})
	}
	long := sharedQuota(t, `[{clusterName: east, hard: {cpu: 4}}]`)
	long.Name = strings.Repeat("x", 64)
	for name, tc := range map[string]struct {
		quota *policyv1alpha1.FederatedResourceQuota
		want  map[string]string // spec of the ResourceQuota, or the fault, by cluster
	}{
		"a quota without shares":         {sharedQuota(t, `[]`), map[string]string{}},
		"two clusters of three":          {sharedQuota(t, `[{clusterName: west, hard: {cpu: 4}}, {clusterName: east, hard: {cpu: 500m}}]`), map[string]string{"west": `{"hard":{"cpu":"4"}}`, "east": `{"hard":{"cpu":"500m"}}`}},
		"a cluster that has not joined":  {sharedQuota(t, `[{clusterName: mars, hard: {cpu: 4}}]`), map[string]string{}},
		"a cluster that has two shares":  {sharedQuota(t, `[{clusterName: east, hard: {cpu: 4}}, {clusterName: east, hard: {cpu: 1}}]`), map[string]string{"east": `{"hard":{"cpu":"1"}}`}},
		"a name too long to be a label":  {long, map[string]string{"east": "a quota with shares needs a name of at most 63 characters: its Works have it as a label"}},
		"a share of nothing is a share":  {sharedQuota(t, `[{clusterName: east, hard: {}}]`), map[string]string{"east": `{}`}},
		"a share of what is not limited": {sharedQuota(t, `[{clusterName: east, hard: {pods: 3}}]`), map[string]string{"east": `{"hard":{"pods":"3"}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			got, last := map[string]string{}, ""
			for _, p := range plan.Shares(tc.quota, clusters, nil) {
				if p.Cluster < last {
					t.Errorf("%s comes after %s", p.Cluster, last)
				}
				if last = p.Cluster; p.Err != nil {
					got[p.Cluster] = p.Err.Error()
					continue
				}
				if key, is := plan.ShareOf(p.Work); !is || key != (types.NamespacedName{Namespace: "shop", Name: "team"}) {
					t.Errorf("it is a share of %v, %t", key, is)
				}
				spec, err := json.Marshal(object(t, string(p.Work.Spec.Workload.Manifests[0].Raw)).Object["spec"])
				if err != nil {
					t.Fatal(err)
				}
				got[p.Cluster] = string(spec)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("shares (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAShare: the whole Work, and what is in it.
func TestAShare(t *testing.T) {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: "c-1"}}
	works := plan.Shares(sharedQuota(t, `[{clusterName: east, hard: {cpu: 4}}]`), []*clusterv1alpha1.Cluster{cluster}, nil)
	if len(works) != 1 || works[0].Err != nil {
		t.Fatal(works)
	}
	got := works[0].Work
	id := plan.WorkID("FederatedResourceQuota/shop/team", "east")
	manifest := map[string]any{
		"apiVersion": "v1", "kind": "ResourceQuota",
		"metadata": map[string]any{
			"namespace": "shop", "name": "team",
			"labels": map[string]any{
				"federatedresourcequota.karmada.io/name": "team", "federatedresourcequota.karmada.io/namespace": "shop",
				"karmada.io/managed": "true", "work.karmada.io/permanent-id": id,
			},
			"annotations": map[string]any{
				"resourcetemplate.karmada.io/managed-annotations": "resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels," +
					"resourcetemplate.karmada.io/uid,work.karmada.io/conflict-resolution,work.karmada.io/name,work.karmada.io/namespace",
				"resourcetemplate.karmada.io/managed-labels": "federatedresourcequota.karmada.io/name,federatedresourcequota.karmada.io/namespace,karmada.io/managed,work.karmada.io/permanent-id",
				"resourcetemplate.karmada.io/uid":            "", "work.karmada.io/conflict-resolution": "abort",
				"work.karmada.io/name": got.Name, "work.karmada.io/namespace": "karmada-es-east",
			},
		},
		"spec": map[string]any{"hard": map[string]any{"cpu": "4"}},
	}
	if diff := cmp.Diff(manifest, object(t, string(got.Spec.Workload.Manifests[0].Raw)).Object); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
	got.Spec.Workload.Manifests = nil
	want := &workv1alpha1.Work{
		TypeMeta: metav1.TypeMeta{APIVersion: "work.karmada.io/v1alpha1", Kind: "Work"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "karmada-es-east", Name: plan.ShareName(types.NamespacedName{Namespace: "shop", Name: "team"}),
			Labels: map[string]string{
				"federatedresourcequota.karmada.io/name": "team", "federatedresourcequota.karmada.io/namespace": "shop", "work.karmada.io/permanent-id": id,
			},
			Finalizers: []string{"karmada.io/execution-controller"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("work (-want +got):\n%s", diff)
	}
}

// TestABindingHasPrecedence: where a policy carries a ResourceQuota of the name there is no
// share; elsewhere there is.
func TestABindingHasPrecedence(t *testing.T) {
	var clusters []*clusterv1alpha1.Cluster
	for _, name := range []string{"east", "north", "west"} {
		clusters = append(clusters, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	q := sharedQuota(t, `[{clusterName: east, hard: {cpu: 4}}, {clusterName: north, hard: {cpu: 1}}, {clusterName: west, hard: {cpu: 1}}]`)
	beside := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team-resourcequota"}}
	beside.Spec.Resource.Kind = "ResourceQuota"
	beside.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}}
	beside.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Clusters: []workv1alpha2.TargetCluster{{Name: "north"}}}}
	got := map[string]string{}
	for _, p := range plan.Shares(q, clusters, beside) {
		got[p.Cluster] = "a share"
		if p.Err != nil {
			got[p.Cluster] = p.Err.Error()
		}
	}
	const refused = "it has the ResourceQuota shop/team of the binding shop/team-resourcequota, and so no share: give the FederatedResourceQuota or the ResourceQuota another name"
	if diff := cmp.Diff(map[string]string{"east": refused, "north": refused, "west": "a share"}, got); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
	beside.Spec.Resource.Kind = "Quota"
	if p := plan.Shares(q, clusters, beside); p[0].Err != nil {
		t.Errorf("the binding of another kind: %v", p[0].Err)
	}
}

// TestWhoseAShareIs: labels alone make no share.
func TestWhoseAShareIs(t *testing.T) {
	team := types.NamespacedName{Namespace: "shop", Name: "team"}
	for name, tc := range map[string]struct {
		change func(*workv1alpha1.Work)
		is     bool
	}{
		"a share":                           {func(*workv1alpha1.Work) {}, true},
		"a binding's":                       {func(w *workv1alpha1.Work) { w.Labels["resourcebinding.karmada.io/permanent-id"] = "b" }, false},
		"one under another name, by labels": {func(w *workv1alpha1.Work) { w.Name = "web-1" }, false},
		"one without labels":                {func(w *workv1alpha1.Work) { w.Labels = nil }, false},
	} {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Name: plan.ShareName(team), Labels: map[string]string{
			"federatedresourcequota.karmada.io/name": "team", "federatedresourcequota.karmada.io/namespace": "shop",
		}}}
		tc.change(w)
		if _, is := plan.ShareOf(w); is != tc.is {
			t.Errorf("%s: %t", name, is)
		}
	}
	for name, tc := range map[string]struct {
		binding types.NamespacedName
		is      bool
	}{
		"a ResourceQuota's": {plan.ShareBinding(team), true},
		"a Deployment's":    {types.NamespacedName{Namespace: "shop", Name: "team-deployment"}, false},
		"of a nameless one": {types.NamespacedName{Namespace: "shop", Name: "-resourcequota"}, false},
	} {
		if key, is := plan.ShareBeside(tc.binding); is != tc.is || is && key != team {
			t.Errorf("%s: %v, %t", name, key, is)
		}
	}
}
