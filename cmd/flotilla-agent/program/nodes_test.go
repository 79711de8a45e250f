package program

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
	"github.com/flotilla-io/flotilla/policies/estimate/profile"
)

// testNodes has the only node of the member be cordoned and taken up again, and a quota come,
// and looks at what the hub knows of it.
func (s *stage) testNodes(t *testing.T) {
	all := &corev1.NodeList{}
	if err := s.edge.List(t.Context(), all); err != nil || len(all.Items) != 1 {
		t.Fatalf("%d nodes: %v", len(all.Items), err)
	}
	cordon := func(on bool) {
		eventually(t, "the node is changed", func(ctx context.Context) error {
			node := &all.Items[0]
			if err := s.edge.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
				return err
			}
			node.Spec.Unschedulable = on
			return s.edge.Update(ctx, node)
		})
	}
	known := func(what string, want func(fits int32) bool) {
		eventually(t, what, func(ctx context.Context) error {
			published := &corev1.ConfigMap{}
			if err := s.env.Hub.Get(ctx, client.ObjectKey{Namespace: "karmada-es-" + site1, Name: "node-profile"}, published); err != nil {
				return err
			}
			p, err := profile.Decode([]byte(published.Data["profile"]))
			if err != nil {
				return err
			}
			ask, err := nodes.AskForReplicas(&workv1alpha2.ReplicaRequirements{Namespace: "default", ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}}, nil)
			if err != nil {
				return err
			}
			if n := nodes.Most(p.Index(), ask, nodes.Resources{}, nodes.Quotas{}); !want(n) {
				return fmt.Errorf("%d fit by %s", n, published.Data["profile"])
			}
			return nil
		})
	}
	known("the node is known", func(fits int32) bool { return fits > 1 })
	cordon(true)
	known("it takes nothing", func(fits int32) bool { return fits == 0 })
	cordon(false)
	known("it takes something again", func(fits int32) bool { return fits > 1 })
	quota := &corev1.ResourceQuota{}
	quota.Namespace, quota.Name = "default", "half"
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("700m")}
	if err := s.edge.Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	known("the quota leaves one", func(fits int32) bool { return fits == 1 })
	if err := s.edge.Delete(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
}
