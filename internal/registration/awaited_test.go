package registration_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	hubfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/registration"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

func TestAwaitedClusters(t *testing.T) {
	since := time.Date(2026, 3, 5, 9, 0, 0, 0, time.UTC)
	role := func(cluster, name string, owners ...metav1.OwnerReference) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{identity.ClusterLabel: cluster}, OwnerReferences: owners,
			Annotations: map[string]string{identity.NotBeforeAnnotation: since.Format(time.RFC3339)},
		}}
	}
	unmarked := role("south", identity.Role("south"))
	unmarked.Annotations = nil
	hub := hubfake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
		role("north", identity.Role("north")), role("edge", identity.Role("edge")), unmarked, role("north", "something-else"),
		role("there", identity.Role("there"), metav1.OwnerReference{APIVersion: "cluster.karmada.io/v1alpha1", Kind: "Cluster", Name: "there", UID: "u", Controller: ptr.To(true)}),
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "view"}},
	).Build()
	got, err := registration.AwaitedClusters(t.Context(), hub)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i].Since = got[i].Since.UTC()
	}
	if diff := cmp.Diff([]registration.Awaited{{"edge", since}, {"north", since}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
