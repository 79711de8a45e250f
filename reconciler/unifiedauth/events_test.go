package unifiedauth

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
)

// roleOf grants a resource, of these names or of any.
func roleOf(name, group, resource string, names ...string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names, Verbs: []string{"get"}}},
	}
}

func bindingTo(kind, role string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{RoleRef: rbacv1.RoleRef{Kind: kind, Name: role}, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "alice"}}}
}

// TestWhichClustersABindingConcerns counts what an event costs: most bindings are
// about nothing that concerns a cluster.
func TestWhichClustersABindingConcerns(t *testing.T) {
	const clusters = 50
	objects := []client.Object{
		roleOf("view", "", "pods"), roleOf("reach-two", "cluster.karmada.io", "clusters/proxy", "c-07", "c-31"),
		roleOf("reach-all", "cluster.karmada.io", "clusters/proxy"), roleOf("reach-gone", "cluster.karmada.io", "clusters/proxy", "gone"),
		roleOf("reach-at-once", "cluster.karmada.io", "clusters/proxy", "*"),
	}
	for i := range clusters {
		objects = append(objects, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c-%02d", i)}})
	}
	cases := map[string]struct {
		binding *rbacv1.ClusterRoleBinding
		want    []string // nil: see count
		count   int
		lists   int // of clusters
	}{
		"to a role about other things":        {binding: bindingTo("ClusterRole", "view")},
		"to a role that is not there":         {binding: bindingTo("ClusterRole", "none")},
		"to what is no ClusterRole":           {binding: bindingTo("Role", "reach-all")},
		"to a role about two clusters":        {binding: bindingTo("ClusterRole", "reach-two"), want: []string{"c-07", "c-31"}, count: 2, lists: 1},
		"to a role about one that is gone":    {binding: bindingTo("ClusterRole", "reach-gone"), lists: 1},
		"to a role about all clusters":        {binding: bindingTo("ClusterRole", "reach-all"), count: clusters, lists: 1},
		"to a role about all of them at once": {binding: bindingTo("ClusterRole", "reach-at-once"), count: clusters, lists: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			lists := 0
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					lists++
					return c.List(ctx, list, opts...)
				},
			}).Build()
			got := namesOf(New(hub, nil, Options{}).bound(t.Context(), tc.binding))
			if len(got) != tc.count || lists != tc.lists {
				t.Errorf("%d clusters are looked at after %d lists, want %d after %d", len(got), lists, tc.count, tc.lists)
			}
			if diff := cmp.Diff(tc.want, got); tc.want != nil && diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhichClustersARoleConcerns: both versions of a role that changes are asked.
func TestWhichClustersARoleConcerns(t *testing.T) {
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "b"}},
	).Build()
	r := New(hub, nil, Options{})
	for name, tc := range map[string]struct {
		role *rbacv1.ClusterRole
		want []string
	}{
		"about other things": {role: roleOf("x", "", "pods")},
		"about one cluster":  {role: roleOf("x", "cluster.karmada.io", "clusters/proxy", "b"), want: []string{"b"}},
		"about all":          {role: roleOf("x", "*", "*"), want: []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, namesOf(r.granted(t.Context(), tc.role))); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
		})
	}
}

func namesOf(requests []reconcile.Request) []string {
	var out []string
	for _, request := range requests {
		out = append(out, request.Name)
	}
	return out
}
