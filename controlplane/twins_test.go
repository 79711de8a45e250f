package controlplane_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// TestOneClusterHasOneName registers one cluster under many names in one moment: the
// control plane takes one of them, and says of it to the others.
func TestOneClusterHasOneName(t *testing.T) {
	hub := shared.Env(t).Hub
	cluster := func(name, id string) *clusterv1alpha1.Cluster {
		return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{ID: id, SyncMode: clusterv1alpha1.Push, APIEndpoint: "https://member.example"}}
	}
	const many = 8
	for i := range many {
		remove(t, hub, cluster(fmt.Sprint("twin-", i), ""))
	}
	for round := range 5 {
		id := fmt.Sprintf("0f3c7a6e-0000-4000-8000-00000000000%d", round)
		errs := make([]error, many)
		begin, ended := make(chan struct{}), sync.WaitGroup{}
		for i := range many {
			ended.Go(func() {
				<-begin
				errs[i] = hub.Create(t.Context(), cluster(fmt.Sprint("twin-", i), id))
			})
		}
		close(begin)
		ended.Wait()
		first := ""
		for i, err := range errs {
			if err == nil && first == "" {
				first = fmt.Sprint("twin-", i)
			} else if err == nil {
				t.Errorf("round %d: twin-%d is registered, and so is %s", round, i, first)
			}
		}
		if first == "" {
			t.Fatalf("round %d: nobody is registered: %v", round, errs)
		}
		for _, err := range errs {
			if err != nil && !strings.Contains(err.Error(), "registered as "+first) {
				t.Errorf("round %d: %s is registered, another one is told: %v", round, first, err)
			}
		}
		for i := range many {
			if err := client.IgnoreNotFound(hub.Delete(t.Context(), cluster(fmt.Sprint("twin-", i), ""))); err != nil {
				t.Fatal(err)
			}
		}
		anew := cluster("twin-anew", id)
		if err := hub.Create(t.Context(), anew); err != nil {
			t.Errorf("round %d: once it has left, it is not registered by another name: %v", round, err)
		} else if err := hub.Delete(t.Context(), anew); err != nil {
			t.Fatal(err)
		}
	}
}
