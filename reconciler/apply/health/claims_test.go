package health_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/policies/volumes"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

const claimText = `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"namespace":"shop","name":"data"}}`

// keeper is a cluster that reports which claims of the namespace shop stay in it.
func keeper(name string, claims ...string) *clusterv1alpha1.Cluster {
	var stay []types.NamespacedName
	for _, c := range claims {
		stay = append(stay, types.NamespacedName{Namespace: "shop", Name: c})
	}
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{
		{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue},
		{Type: clusterv1alpha1.ClusterConditionClaimsKept, Status: metav1.ConditionTrue, Message: volumes.Staying(stay)},
	}}}
}

// TestPartsOfClaims: a claim that stays in a cluster is a part of its Kustomization until it is placed there again.
func TestPartsOfClaims(t *testing.T) {
	live := func(by client.ObjectKey) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", Labels: inventory.OwnerLabels(by)}}
	}
	other := client.ObjectKey{Namespace: "team", Name: "other"}
	carried := binding(t, object(t, claimText))
	masked := live(owner)
	masked.Annotations = map[string]string{gitopsv1alpha1.HoldsSecretsAnnotation: gitopsv1alpha1.HoldsInName}
	const applied = "success applied; nothing goes to clusters; "
	for name, tc := range map[string]struct {
		objects []client.Object
		want    string // of the rollup; empty: no part
	}{
		"it stays nowhere":                             {[]client.Object{live(owner), keeper("west", "logs")}, ""},
		"it stays, and nobody carries it any more":     {[]client.Object{live(owner), keeper("west", "data")}, applied + "claim shop/data stays in west: flotilla prune --cluster west removes it"},
		"it stays in two clusters":                     {[]client.Object{live(owner), keeper("west", "data"), keeper("north", "data")}, applied + "claim shop/data stays in north (and 1 more): flotilla prune --cluster north removes it"},
		"it stays in one, and goes to another":         {[]client.Object{live(owner), carried, work(carried), keeper("west", "data")}, "success 1/1 clusters ready; claim shop/data stays in west: flotilla prune --cluster west removes it"},
		"it is asked for again where it stays":         {[]client.Object{live(owner), carried, work(carried), keeper("east", "data")}, "success 1/1 clusters ready"},
		"it is another Kustomization's":                {[]client.Object{live(other), keeper("west", "data")}, ""},
		"it is gone from the control plane":            {[]client.Object{keeper("west", "data")}, ""},
		"text of a Secret is in its name":              {[]client.Object{masked, keeper("west", "data")}, applied + "claim shop/*** stays in west: flotilla prune --cluster west removes it"},
		"its Work goes, and its binding is gone":       {[]client.Object{live(owner), keeper("west"), workWith(t, claimText, owner, deleted)}, "pending 0/1 clusters ready: west waits for PersistentVolumeClaim shop/data: not removed yet"},
		"so, and another Kustomization had applied it": {[]client.Object{live(owner), keeper("west"), workWith(t, claimText, other, deleted)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			hub := hubOf(tc.objects...)
			template := object(t, claimText)
			reader := health.New(health.Deps{Hub: hub, Live: hub, Templates: templates{templatestore.KeyOf(template): template}})
			parts, err := reader.Parts(t.Context(), owner, []inventory.Entry{entryOf(template)})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if len(parts) > 0 {
				all := rollup.Revision(parts)
				got = all.State + " " + all.Description
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
