package fleet_test

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
)

// TestMeant: a mistyped name gets a suggestion from the objects that the user may list.
func TestMeant(t *testing.T) {
	deployment := func(namespace, name string) client.Object {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).
		WithObjects(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}, deployment("shop", "frontend"), deployment("stage", "backend")).
		WithIndex(&appsv1.Deployment{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
		WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			asked := (&client.ListOptions{}).ApplyOptions(opts)
			if asked.Namespace == "secret" {
				return errors.New("forbidden")
			}
			return c.List(ctx, list, opts...)
		}}).Build()
	for name, tc := range map[string]struct{ got, want string }{
		"a cluster":                     {fleet.NoCluster(t.Context(), hub, "wst").Error(), "there is no cluster wst (did you mean west?): flotilla get clusters lists them"},
		"a cluster like no other":       {fleet.NoCluster(t.Context(), hub, "mars").Error(), "there is no cluster mars: flotilla get clusters lists them"},
		"a cluster of a list":           {fleet.NoClusterAmong("wets", []string{"east", "west"}).Error(), "there is no cluster wets (did you mean west?): flotilla get clusters lists them"},
		"a template":                    {fleet.Meant(t.Context(), hub, appsv1.SchemeGroupVersion.WithKind("Deployment"), client.ObjectKey{Namespace: "shop", Name: "frontent"}), " (did you mean frontend?)"},
		"a template elsewhere":          {fleet.Meant(t.Context(), hub, appsv1.SchemeGroupVersion.WithKind("Deployment"), client.ObjectKey{Namespace: "shop", Name: "backend"}), " (did you mean the one in stage?)"},
		"what may not be listed at all": {fleet.Meant(t.Context(), hub, appsv1.SchemeGroupVersion.WithKind("Deployment"), client.ObjectKey{Namespace: "secret", Name: "frontent"}), ""},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: says %q, want %q", name, tc.got, tc.want)
		}
	}
}
