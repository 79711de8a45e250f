package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/members/informer"
)

func TestEnablements(t *testing.T) {
	got := enablements([]*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "pods", Kind: "Pod"}, {Name: "pods/log", Kind: "Pod"}, {Name: "configmaps", Kind: "ConfigMap"},
		}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment"}, {Name: "deployments/scale", Kind: "Scale"}}},
	})
	want := []clusterv1alpha1.APIEnablement{
		{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
		{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "configmaps", Kind: "ConfigMap"}, {Name: "pods", Kind: "Pod"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("enablements (-want +got):\n%s", diff)
	}
}

// TestWhatCannotBeRead: kinds that the member does not let be read are reported, a few by
// name, and no longer once they can, nor of a member that does not answer at all.
func TestWhatCannotBeRead(t *testing.T) {
	var kinds []informer.Blind
	for _, kind := range []string{"A", "B", "C", "D", "E", "F", "G"} {
		kinds = append(kinds, informer.Blind{Kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}, Why: "no"})
	}
	text := unreadText(kinds)
	const want = "some of its objects cannot be read, so that what is shown of them may be out of date: A.apps: no; B.apps: no; C.apps: no; D.apps: no; E.apps: no; and 2 more kinds"
	if text != want || unreadText(nil) != "" {
		t.Errorf("it says %q, want %q", text, want)
	}
	r := New(nil, nil, nil, nil, Options{})
	s := &state{cluster: &clusterv1alpha1.Cluster{}, seen: &observation{outcome: outcome{ready: true}, unread: text}}
	for _, tc := range []struct {
		unread string
		ready  bool
		want   string
	}{{text, true, text}, {text, false, ""}, {text, true, text}, {"", true, ""}} {
		s.seen.unread, s.seen.outcome.ready = tc.unread, tc.ready
		want := tc.want
		if _, err := r.describe(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		got := ""
		if c := meta.FindStatusCondition(s.status.Conditions, clusterv1alpha1.ClusterConditionObjectsUnread); c != nil && c.Status == metav1.ConditionTrue {
			got = c.Message
		}
		if got != want {
			t.Errorf("the condition says %q, want %q", got, want)
		}
		s.cluster.Status = *s.status
	}
}

// TestATaintedClusterIsDescribedAsBefore: what is seen of a member is the same whatever its Cluster says, and so is the status.
func TestATaintedClusterIsDescribedAsBefore(t *testing.T) {
	r := New(nil, nil, nil, nil, Options{})
	s := &state{cluster: &clusterv1alpha1.Cluster{}, seen: &observation{outcome: well, version: "v1.36.0", kinds: []clusterv1alpha1.APIEnablement{{GroupVersion: "v1"}}}}
	s.cluster.Generation = 1
	if _, err := r.describe(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	s.cluster.Status = *s.status
	s.cluster.Generation = 2
	if _, err := r.describe(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&s.cluster.Status, s.status); diff != "" {
		t.Errorf("the status (-before +after):\n%s", diff)
	}
}
