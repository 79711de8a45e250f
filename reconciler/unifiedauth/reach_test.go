package unifiedauth

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/access"
)

// by is a Work of an author, made for a binding of a namespace.
func by(cluster, namespace string) *workv1alpha1.Work {
	return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-" + cluster, Name: "web-" + namespace, Annotations: map[string]string{
		workv1alpha2.AppliedByAnnotation: `[{"user":"alice"}]`, workv1alpha2.ResourceBindingNamespaceAnnotationKey: namespace,
	}}}
}

func TestReach(t *testing.T) {
	hand := by("eu", "")
	for _, manifest := range []string{`{"metadata":{"namespace":"shop"}}`, `{"metadata":{"namespace":"crown"}}`, `{"metadata":{"name":"x"}}`, `{`} {
		hand.Spec.Workload.Manifests = append(hand.Spec.Workload.Manifests, workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}})
	}
	admins, elsewhere := by("eu", "shop"), by("eu", "shop")
	admins.Annotations[workv1alpha2.AppliedByAnnotation], elsewhere.Namespace = "", "shop"
	r := newReach()
	for _, step := range []struct {
		name    string
		was, is *workv1alpha1.Work
		want    []string
	}{
		{"the first of a namespace, and of the cluster", nil, by("eu", "shop"), []string{"", "shop"}},
		{"a second one", nil, by("eu", "shop"), nil},
		{"one of another namespace", nil, by("eu", "crown"), []string{"crown"}},
		{"one by hand, about both", nil, hand, nil},
		{"a status", by("eu", "shop"), by("eu", "shop"), nil},
		{"an administrator's", nil, admins, nil},
		{"one that is no cluster's", nil, elsewhere, nil},
		{"one that becomes an administrator's", by("eu", "shop"), admins, nil},
		{"one that goes", by("eu", "crown"), nil, nil},
		{"the last of both", hand, nil, []string{"crown"}},
		{"the last of all", by("eu", "shop"), nil, []string{"", "shop"}},
	} {
		if _, got := r.changed(step.was, step.is); !slices.Equal(got, step.want) {
			t.Errorf("%s: %q, want %q", step.name, got, step.want)
		}
	}
	if len(r.counts) > 0 {
		t.Errorf("it remembers %v", r.counts)
	}
}

// world is a hub with many namespaces and clusters, whose writes are counted.
type world struct {
	client.WithWatch
	*rights
	clock *clocktesting.FakePassiveClock
	wrote []string
}

const spaces, clusters = 30, 10

// newWorld gives a team of each namespace the right to edit. Each cluster is reached
// from three of the namespaces.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}
	objects := []client.Object{&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "edit"}}, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "view"}}}
	for i := range spaces {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("ns-%02d", i)}}, w.team(i, "edit", "alice"))
	}
	for i := range clusters {
		name := fmt.Sprintf("c-%d", i)
		objects = append(objects,
			&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{clusterv1alpha1.ApplyAsAnnotation: clusterv1alpha1.ApplyAsAuthor}}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-" + name}})
	}
	count := func(verb string, obj client.Object) {
		w.wrote = append(w.wrote, fmt.Sprintf("%s %s %s", verb, obj.GetNamespace(), obj.GetAnnotations()[access.RightsAnnotation]))
	}
	w.WithWatch = fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).
		WithIndex(&workv1alpha1.Work{}, rightsBySource, sourceOf).WithIndex(&rbacv1.RoleBinding{}, bindingsByRole, boundRole).WithIndex(&rbacv1.ClusterRoleBinding{}, bindingsByRole, boundRole).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				count("make", obj)
				return c.Create(ctx, obj, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				count("change", obj)
				return c.Patch(ctx, obj, patch, opts...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
				count("delete", obj)
				return c.Delete(ctx, obj, opts...)
			},
		}).Build()
	w.rights = newRights(New(w.WithWatch, record.NewFakeRecorder(10), Options{Clock: w.clock}))
	for i := range clusters {
		for j := range spaces / clusters {
			w.reach.changed(nil, by(fmt.Sprintf("c-%d", i), fmt.Sprintf("ns-%02d", i+clusters*j)))
		}
	}
	for i := range spaces {
		w.reconcile(t, request("", access.In(fmt.Sprintf("ns-%02d", i))))
	}
	w.reconcile(t, request("", access.OfClusterRole("edit")), request("", access.OfClusterRole("view")))
	return w
}

func (w *world) team(i int, role string, users ...string) *rbacv1.RoleBinding {
	out := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("ns-%02d", i), Name: "team"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role}}
	for _, name := range users {
		out.Subjects = append(out.Subjects, rbacv1.Subject{Kind: rbacv1.UserKind, Name: name})
	}
	return out
}

// look has sources looked at, and returns when one is to be looked at again.
func (w *world) reconcile(t *testing.T, requests ...reconcile.Request) (again time.Duration) {
	t.Helper()
	for _, req := range requests {
		result, err := w.Reconcile(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		again = max(again, result.RequeueAfter)
	}
	return again
}

// wants fails unless this was written since the last time.
func (w *world) wants(t *testing.T, what string, want ...string) {
	t.Helper()
	got := w.wrote
	w.wrote = nil
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s writes (-want +got):\n%s", what, diff)
	}
}

// TestWhatAChangeOfRightsCosts counts what is looked at and written: no more than what
// the change is about, in the clusters that it is about.
func TestWhatAChangeOfRightsCosts(t *testing.T) {
	w := newWorld(t)
	if got, want := len(w.wrote), spaces+clusters; got != want {
		t.Errorf("%d Works are made, want %d: one for each namespace where it goes, and the role in each cluster", got, want)
	}
	w.wrote = nil
	for i := range spaces {
		w.reconcile(t, request("", access.In(fmt.Sprintf("ns-%02d", i))))
	}
	w.reconcile(t, request("", access.OfClusterRole("edit")))
	w.wants(t, "a second look")

	team := w.team(7, "edit", "alice", "bob")
	if err := w.Update(t.Context(), team); err != nil {
		t.Fatal(err)
	}
	w.wrote = nil
	requests := inNamespace(t.Context(), team)
	if diff := cmp.Diff([]reconcile.Request{request("", "ns-07"), request("", "ClusterRole/edit")}, requests); diff != "" {
		t.Errorf("a binding has looked at (-want +got):\n%s", diff)
	}
	w.reconcile(t, requests...)
	w.wants(t, "a subject more", "change karmada-es-c-7 ns-07")

	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "edit"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}}
	if err := w.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	w.reconcile(t, everywhere(t.Context(), role)...)
	var all []string
	for i := range clusters {
		all = append(all, fmt.Sprintf("change karmada-es-c-%d ClusterRole/edit", i))
	}
	w.wants(t, "a role's rule", all...)

	if err := w.Delete(t.Context(), w.team(7, "edit")); err != nil {
		t.Fatal(err)
	}
	w.wrote = nil
	w.reconcile(t, inNamespace(t.Context(), team)...)
	w.wants(t, "a binding that goes", "delete karmada-es-c-7 ns-07")
}

// TestRightsStayAWhile: those of a namespace are in the clusters where Works of its
// authors go, and ten minutes longer; what is taken away meanwhile is gone at once.
func TestRightsStayAWhile(t *testing.T) {
	w := newWorld(t)
	w.wrote = nil
	const cluster = "c-3"
	w.reach.changed(nil, by(cluster, "ns-00"))
	w.reconcile(t, request(cluster, access.In("ns-00")))
	w.wants(t, "a cluster that is reached", "make karmada-es-c-3 ns-00")
	w.reach.changed(by(cluster, "ns-00"), nil)
	if again := w.reconcile(t, request(cluster, access.In("ns-00"))); again != linger {
		t.Errorf("looked at again after %s", again)
	}
	w.reach.changed(nil, by(cluster, "ns-00"))
	w.reconcile(t, request(cluster, access.In("ns-00")))
	w.wants(t, "what is made again")
	w.reach.changed(by(cluster, "ns-00"), nil)
	w.reconcile(t, request(cluster, access.In("ns-00")))
	w.clock.SetTime(w.clock.Now().Add(linger - time.Second))
	if again := w.reconcile(t, request("", access.In("ns-00"))); again != time.Second {
		t.Errorf("looked at again after %s", again)
	}
	w.wants(t, "what is gone for less than ten minutes")
	if err := w.Update(t.Context(), w.team(0, "edit", "bob")); err != nil {
		t.Fatal(err)
	}
	w.reconcile(t, request("", access.In("ns-00")))
	w.wants(t, "a right that is taken away meanwhile", "change karmada-es-c-0 ns-00", "change karmada-es-c-3 ns-00")
	w.clock.SetTime(w.clock.Now().Add(time.Second))
	w.reconcile(t, request("", access.In("ns-00")))
	w.wants(t, "what is gone for ten minutes", "delete karmada-es-c-3 ns-00")
}
