package health_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestAPolicyForNobody: a policy without templates, for clusters that do not exist, is a part of its Kustomization.
func TestAPolicyForNobody(t *testing.T) {
	entry := func(kind, namespace string) inventory.Entry {
		return inventory.Entry{ID: inventory.ID{Namespace: namespace, Name: "web", GroupKind: schema.GroupKind{Group: policyv1alpha1.GroupName, Kind: kind}}, Version: "v1alpha1"}
	}
	placed := func(by client.ObjectKey, names ...string) *policyv1alpha1.PropagationPolicy {
		p := policy(policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment"})
		p.Labels = inventory.OwnerLabels(by)
		p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: names}
		return p
	}
	everywhere := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: placed(owner).ObjectMeta, Spec: placed(owner, "mars").Spec}
	everywhere.Namespace = ""
	namespaced := entry("PropagationPolicy", "shop")
	part := func(object string, absent ...propagation.Stranger) []rollup.Part {
		return []rollup.Part{{Object: object, Absent: absent}}
	}
	cases := map[string]struct {
		policy client.Object
		entry  inventory.Entry
		want   []rollup.Part
	}{
		"its clusters are there":        {placed(owner, "east"), namespaced, nil},
		"its cluster is mistyped":       {placed(owner, "east", "wst"), namespaced, part("PropagationPolicy shop/web", propagation.Stranger{Name: "wst", Meant: "west"})},
		"none of its clusters is there": {everywhere, entry("ClusterPropagationPolicy", ""), part("ClusterPropagationPolicy web", propagation.Stranger{Name: "mars"})},
		"it is applied by somebody else": {placed(client.ObjectKey{Namespace: "team", Name: "other"}, "wst"), namespaced, []rollup.Part{
			{Object: "PropagationPolicy shop/web", State: rollup.Progressing, Reason: "Kustomization team/other applies it, too"},
		}},
		"it is not of the Kustomization's now": {placed(owner, "wst"), entry("PropagationPolicy", "bar"), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			hub := hubOf(tc.policy, cluster("east"), cluster("west"))
			parts, err := health.New(health.Deps{Hub: hub, Live: hub, Templates: templates{}}).Parts(t.Context(), owner, []inventory.Entry{tc.entry})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, parts); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
