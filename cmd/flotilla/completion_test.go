package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
)

// TestClustersOfACommand: a command that takes clusters of one sort offers these alone.
func TestClustersOfACommand(t *testing.T) {
	cluster := func(name string, mode clusterv1alpha1.ClusterSyncMode, taints ...corev1.Taint) clusterv1alpha1.Cluster {
		c := clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Spec.SyncMode, c.Spec.Taints = mode, taints
		return c
	}
	cordoned := corev1.Taint{Key: clusterv1alpha1.TaintClusterUnscheduler, Effect: corev1.TaintEffectNoSchedule}
	clusters := clusterv1alpha1.ClusterList{
		TypeMeta: metav1.TypeMeta{APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: "ClusterList"},
		Items: []clusterv1alpha1.Cluster{
			cluster("east", clusterv1alpha1.Push, cordoned), cluster("edge", clusterv1alpha1.Pull, cordoned, corev1.Taint{Key: "a", Effect: corev1.TaintEffectNoSchedule}),
			cluster("north", clusterv1alpha1.Pull), cluster("west", clusterv1alpha1.Push, corev1.Taint{Key: "a", Effect: corev1.TaintEffectNoSchedule}),
		},
	}
	root := "/apis/" + clusterv1alpha1.GroupVersion.String()
	group := metav1.APIGroup{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"}, Name: clusterv1alpha1.GroupVersion.Group,
		Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: clusterv1alpha1.GroupVersion.String(), Version: clusterv1alpha1.GroupVersion.Version}},
	}
	answers := map[string]any{
		"/api":                metav1.APIVersions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIVersions"}},
		"/apis":               metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}, Groups: []metav1.APIGroup{group}},
		"/apis/" + group.Name: group,
		root: metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: clusterv1alpha1.GroupVersion.String(),
			APIResources: []metav1.APIResource{{Name: "clusters", SingularName: "cluster", Kind: "Cluster", Verbs: metav1.Verbs{"list"}}},
		},
		root + "/clusters": clusters,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := answers[r.URL.Path]
		if !known {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	at := commandtest.Kubeconfig(t, server.URL, "")
	for words, want := range map[string]string{
		"unjoin":        "east west",
		"unjoin east":   "", // it takes one
		"unregister":    "edge north",
		"uncordon":      "east edge",
		"uncordon edge": "east",
		"uncordon -l":   "",
		"cordon":        "east edge north west",
		"drain":         "east edge north west",
	} {
		result := commandtest.Run(t.Context(), newCommand("flotilla"), "", append(append([]string{"__complete", "--kubeconfig", at}, strings.Fields(words)...), "")...)
		offers := strings.Fields(result.Out)
		if got := strings.Join(offers[:max(len(offers)-1, 0)], " "); got != want {
			t.Errorf("%q is completed to %q, want %q (%s)", words, got, want, result.Err)
		}
	}
}
