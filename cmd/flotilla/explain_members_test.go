package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/policies/explain"
	"github.com/flotilla-io/flotilla/policies/symptom"
	"github.com/flotilla-io/flotilla/policies/volumes"
)

// TestExamineDenied: missing rights in a member are reported, and are no error.
func TestExamineDenied(t *testing.T) {
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		code := http.StatusForbidden
		if strings.Contains(req.URL.Path, "/clusters/west/") {
			code = http.StatusServiceUnavailable
		}
		w.WriteHeader(code)
		name := map[bool]string{true: "west", false: "east"}[code == http.StatusServiceUnavailable]
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not ` + name + `","code":` + map[int]string{403: "403", 503: "503"}[code] +
			`,"details":{"group":"cluster.karmada.io","kind":"clusters","name":"` + name + `"}}`))
	}))
	defer hub.Close()
	yes := true
	e := explain.Explanation{Delivery: &explain.Delivery{Clusters: []explain.Delivered{
		{Cluster: "east", Applied: &yes, Health: "Unhealthy"}, {Cluster: "west", Applied: &yes, Health: "Unhealthy"},
		{Cluster: "well", Applied: &yes, Health: "Healthy"}, {Cluster: "silent", Applied: &yes, Health: "Unhealthy", Silent: "unreachable for 3m"},
		{Cluster: "before", Outdated: true, Health: "Unhealthy"},
	}}}
	f := &explainFlags{hub: &fleet.Flags{Kubeconfig: commandtest.Kubeconfig(t, hub.URL, "")}}
	web := &unstructured.Unstructured{Object: map[string]any{"kind": "Deployment", "metadata": map[string]any{"namespace": "shop", "name": "web"}}}
	want := map[string]symptom.Symptom{
		"before": {Unread: "you may not read its Pods there", Denied: true}, "east": {Unread: "you may not read its Pods there", Denied: true},
		"west": {Unread: "the cluster was not asked: not west: flotilla describe cluster west says how it is"},
	}
	if diff := cmp.Diff(want, f.examine(t.Context(), io.Discard, e, web)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestExplainUncarried: what a cluster lacks, and the control plane has, is brought by the policy of the workload.
func TestExplainUncarried(t *testing.T) {
	const lacks = `CreateContainerConfigError: configmap "settings" not found (1 of 1 Pod)`
	binding := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-deployment", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "1"},
		Annotations: map[string]string{policyv1alpha1.PropagationPolicyNamespaceAnnotation: "shop", policyv1alpha1.PropagationPolicyNameAnnotation: "apps"},
	}}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(binding, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}}).Build()
	explanation := func(unhealthy, failed string) explain.Explanation {
		return explain.Explanation{Resource: explain.Resource{Kind: "Deployment", Namespace: "shop", Name: "web"}, Problems: []explain.Problem{
			{Reason: explain.ReasonUnhealthy, Message: lacks, Next: unhealthy}, {Reason: explain.ReasonNotApplied, Message: lacks, Next: failed}, {Reason: explain.ReasonDrifted, Message: lacks, Next: "look"},
		}}
	}
	const want = "set propagateDeps: true in PropagationPolicy shop/apps, or select ConfigMap shop/settings in a policy, too: it is on the control plane, and no policy carries it"
	if diff := cmp.Diff(explanation(want, want), uncarried(t.Context(), hub, explanation("look", "look"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLeftData: a template that is about to leave a cluster without its data is reported beforehand.
func TestLeftData(t *testing.T) {
	set := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": map[string]any{"namespace": "shop", "name": "db"}, "spec": map[string]any{"volumeClaimTemplates": []any{map[string]any{"metadata": map[string]any{"name": "data"}}}}}}
	web := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
	east, west, north := explain.Target{Name: "east"}, explain.Target{Name: "west"}, explain.Target{Name: "north"}
	old := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "north"}}
	old.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionClaimsKept, Status: metav1.ConditionTrue, Message: volumes.Staying([]types.NamespacedName{{Namespace: "shop", Name: "data-db-0"}})}}
	for name, tc := range map[string]struct {
		template *unstructured.Unstructured
		now      *explain.Prospect
		want     []string
	}{
		"it is to move":           {set, &explain.Prospect{Clusters: []explain.Target{west}}, []string{"east, once that is decided; it takes no data along: the PersistentVolumeClaims data-db-* stay in east, and elsewhere it goes on with those that are there, else with empty ones"}},
		"it was there before":     {set, &explain.Prospect{Clusters: []explain.Target{north}}, []string{"east, once that is decided; it takes no data along: the PersistentVolumeClaims data-db-* stay in east; north still has data-db-0, and it goes on with that, without what was written in east since"}},
		"it stays":                {set, &explain.Prospect{Same: true, Clusters: []explain.Target{east}}, nil},
		"it gets another cluster": {set, &explain.Prospect{Clusters: []explain.Target{east, west}}, nil},
		"it has no place":         {set, &explain.Prospect{Error: "no room"}, nil},
		"nothing is known":        {set, nil, nil},
		"it has no data":          {web, &explain.Prospect{Clusters: []explain.Target{west}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := explain.Explanation{Placement: &explain.Placement{Stands: &explain.Standing{Clusters: []explain.Target{east}}, Now: tc.now}}
			if diff := cmp.Diff(tc.want, leftData(tc.template, []*clusterv1alpha1.Cluster{old}, e).Placement.Stands.Leaves); diff != "" {
				t.Errorf("leaves (-want +got):\n%s", diff)
			}
		})
	}
}
