package unifiedauth_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/policies/access"
	"github.com/flotilla-io/flotilla/reconciler/unifiedauth"
)

var shared servertest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// recorder collects Events.
type events struct {
	mu      sync.Mutex
	reasons map[string]int
}

func (r *events) Event(_ runtime.Object, _, reason, _ string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reasons == nil {
		r.reasons = map[string]int{}
	}
	r.reasons[reason]++
}

func (r *events) seen() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]int{}
	for reason, n := range r.reasons {
		out[reason] = n
	}
	return out
}

// run runs the loop until stop is called.
func run(t *testing.T, env *servertest.Env) (reported *events, stop func()) {
	t.Helper()
	mgr, err := hub.NewManager(env.Config, scheme.New(), hub.Options{SeveralPerProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	reported = &events{}
	if err := unifiedauth.New(mgr.GetClient(), reported, unifiedauth.Options{}).Register(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("manager: %v", err)
		}
	})
	t.Cleanup(stop)
	return reported, stop
}

func create(t *testing.T, env *servertest.Env, obj client.Object) {
	t.Helper()
	if err := env.Hub.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

// users waits until the cluster's Work names these users and no others.
func users(t *testing.T, env *servertest.Env, cluster string, want ...string) {
	t.Helper()
	var got []string
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		work := &workv1alpha1.Work{}
		if err := env.Hub.Get(ctx, client.ObjectKey{Namespace: "karmada-es-" + cluster, Name: access.RoleWorkName()}, work); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		var role rbacv1.ClusterRole
		if err := json.Unmarshal(work.Spec.Workload.Manifests[0].Raw, &role); err != nil {
			return false, err
		}
		got = role.Rules[0].ResourceNames
		return cmp.Equal(want, got), nil
	})
	if err != nil {
		t.Fatalf("%s: users %v, want %v: %v", cluster, got, want, err)
	}
}

// works waits until the cluster has so many Works.
func works(t *testing.T, env *servertest.Env, cluster string, want int) {
	t.Helper()
	var list workv1alpha1.WorkList
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		err := env.Hub.List(ctx, &list, client.InNamespace("karmada-es-"+cluster))
		return len(list.Items) == want, err
	})
	if err != nil {
		t.Fatalf("%s: %d works, want %d: %v", cluster, len(list.Items), want, err)
	}
}

// TestUsersComeAndGo follows who may reach two clusters.
func TestUsersComeAndGo(t *testing.T) {
	env := shared.Env(t)
	events, stop := run(t, env)
	for _, name := range []string{"a", "b"} {
		create(t, env, &clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{clusterv1alpha1.ApplyAsAnnotation: clusterv1alpha1.ApplyAsHub}},
			Spec: clusterv1alpha1.ClusterSpec{
				SyncMode: clusterv1alpha1.Push, APIEndpoint: "https://127.0.0.1:1",
				ImpersonatorSecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: name + "-impersonator"},
			},
		})
		create(t, env, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-" + name}})
		works(t, env, name, 3)
		users(t, env, name, "system:admin")
	}

	reach := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reach-a"}, Rules: []rbacv1.PolicyRule{{
		Verbs: []string{"get"}, APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters/proxy"}, ResourceNames: []string{"a"},
	}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reach-a"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reach-a"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "alice"}},
	}
	create(t, env, binding) // before its role
	create(t, env, reach)
	users(t, env, "a", "alice", "system:admin")
	users(t, env, "b", "system:admin")

	reach.Rules[0].ResourceNames = []string{"b"}
	if err := env.Hub.Update(t.Context(), reach); err != nil {
		t.Fatal(err)
	}
	users(t, env, "b", "alice", "system:admin")
	users(t, env, "a", "system:admin")

	work := &workv1alpha1.Work{}
	if err := env.Hub.Get(t.Context(), client.ObjectKey{Namespace: "karmada-es-b", Name: access.RoleWorkName()}, work); err != nil {
		t.Fatal(err)
	}
	edited := work.DeepCopy()
	edited.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"karmada-impersonator"},"rules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"resourceNames":["x"]}]}`)
	if err := env.Hub.Patch(t.Context(), edited, client.MergeFrom(work)); err != nil {
		t.Fatal(err)
	}
	users(t, env, "b", "alice", "system:admin")

	if err := env.Hub.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	users(t, env, "b", "system:admin")
	env.QuietRevision(t) // the rights of the binding leave where another test has an author's Work
	stop()
	if seen := events.seen(); seen[clusterv1alpha1.EventReasonSyncImpersonationConfigFailed] != 0 || seen[clusterv1alpha1.EventReasonSyncImpersonationConfigSucceed] < 2 {
		t.Errorf("events: %v", seen)
	}

	env.Emptied(t)
	before := env.QuietRevision(t)
	_, stop = run(t, env)
	if after := env.QuietRevision(t); after != before {
		t.Errorf("a restart wrote %d times: %v", after-before, env.Written(t, before))
	}
	cluster := &clusterv1alpha1.Cluster{}
	if err := env.Hub.Get(t.Context(), client.ObjectKey{Name: "b"}, cluster); err != nil {
		t.Fatal(err)
	}
	cluster.Spec.ImpersonatorSecretRef = nil
	if err := env.Hub.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	leaving(t, env, "b")
	works(t, env, "a", 3)
	stop()
}

// leaving waits until all Works of a cluster are being deleted: nobody runs who
// would let them go.
func leaving(t *testing.T, env *servertest.Env, cluster string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		var list workv1alpha1.WorkList
		if err := env.Hub.List(ctx, &list, client.InNamespace("karmada-es-"+cluster)); err != nil {
			return false, err
		}
		for i := range list.Items {
			if list.Items[i].DeletionTimestamp.IsZero() {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		t.Fatalf("works of %s stay: %v", cluster, err)
	}
}

// rightsIn waits until the cluster's Works with the rights in a namespace hold these
// objects and no others.
func rightsIn(t *testing.T, env *servertest.Env, cluster, namespace string, want ...string) {
	t.Helper()
	var got []string
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		works, err := rightsOf(ctx, env, cluster, namespace)
		if err != nil {
			return false, err
		}
		got = nil
		for i := range works {
			if !works[i].DeletionTimestamp.IsZero() { // nobody runs who would let it go
				works[i].Finalizers = nil
				return false, client.IgnoreNotFound(env.Hub.Update(ctx, &works[i]))
			}
			for _, m := range works[i].Spec.Workload.Manifests {
				var obj metav1.PartialObjectMetadata
				if err := json.Unmarshal(m.Raw, &obj); err != nil {
					return false, err
				}
				got = append(got, obj.Kind+" "+obj.Name)
			}
		}
		slices.Sort(got)
		return slices.Equal(want, got), nil
	})
	if err != nil {
		t.Fatalf("%s, %s: %v, want %v: %v", cluster, namespace, got, want, err)
	}
}

func rightsOf(ctx context.Context, env *servertest.Env, cluster, namespace string) ([]workv1alpha1.Work, error) {
	var works workv1alpha1.WorkList
	err := env.Hub.List(ctx, &works, client.InNamespace("karmada-es-"+cluster), client.MatchingLabels{access.RightsLabel: namespace})
	return works.Items, err
}

// TestRightsComeAndGo follows what tenants may do from the hub to the members that
// apply as the author, and to no others.
func TestRightsComeAndGo(t *testing.T) {
	env := shared.Env(t)
	_, stop := run(t, env)
	namespace := env.Namespace(t)
	clusters := map[string]*clusterv1alpha1.Cluster{}
	for name, as := range map[string]string{"author": "Author", "other": "ControlPlane"} {
		clusters[name] = &clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"cluster.flotilla.io/apply-as": as}},
			Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push, APIEndpoint: "https://127.0.0.1:1"},
		}
		create(t, env, clusters[name])
		create(t, env, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-" + name}})
		create(t, env, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-" + name, Name: "web", Annotations: map[string]string{
			"propagation.flotilla.io/applied-by": `[{"user":"alice"}]`, "resourcebinding.karmada.io/namespace": namespace,
		}}})
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "team"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "default"}},
	}
	create(t, env, binding)
	const team = "RoleBinding flotilla:team:29f624cb"
	rightsIn(t, env, "author", namespace, team)
	rightsIn(t, env, "author", "", "ClusterRole flotilla:edit")
	create(t, env, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "looker"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}})
	view := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "look"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "looker"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "alice"}},
	}
	create(t, env, view)
	rightsIn(t, env, "author", namespace, "Role flotilla:looker", "RoleBinding flotilla:look:59089bda", team)
	rightsIn(t, env, "other", namespace)

	for _, b := range []client.Object{view, binding} {
		if err := env.Hub.Delete(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	rightsIn(t, env, "author", namespace)
	rightsIn(t, env, "author", "")
	binding.ResourceVersion, binding.UID = "", ""
	create(t, env, binding)
	rightsIn(t, env, "author", namespace, team)
	for name, as := range map[string]string{"other": "Author", "author": "ControlPlane"} {
		before := clusters[name].DeepCopy()
		clusters[name].Annotations["cluster.flotilla.io/apply-as"] = as
		if err := env.Hub.Patch(t.Context(), clusters[name], client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	rightsIn(t, env, "other", namespace, team)
	rightsIn(t, env, "author", namespace)

	works, err := rightsOf(t.Context(), env, "other", namespace)
	if err != nil || len(works) != 1 {
		t.Fatal(works, err)
	}
	works[0].Spec.Workload.Manifests, works[0].Labels, works[0].Annotations = nil, nil, nil
	if err := env.Hub.Update(t.Context(), &works[0]); err != nil {
		t.Fatal(err)
	}
	rightsIn(t, env, "other", namespace, team) // what somebody edits is put back

	env.Emptied(t)
	before := env.QuietRevision(t)
	stop()
	_, stop = run(t, env)
	if after := env.QuietRevision(t); after != before {
		t.Errorf("a restart writes %v", env.Written(t, before))
	}
	stop()
	if err := env.Hub.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	_, stop = run(t, env)
	defer stop()
	rightsIn(t, env, "other", namespace) // what was taken away while nobody looked is gone
	rightsIn(t, env, "other", "")
}
