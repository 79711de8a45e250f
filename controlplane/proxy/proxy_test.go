package proxy_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/member"
	"github.com/flotilla-io/flotilla/controlplane/member/membertest"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/join"
	"github.com/flotilla-io/flotilla/policies/access"
)

var shared servertest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

const (
	timeout = 2 * time.Minute
	often   = 20 * time.Millisecond
)

// eventually waits until done says so.
func eventually(t *testing.T, what string, done func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), often, timeout, true, done); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// fleet is a hub and one real member that it reaches.
type fleet struct {
	hub    *servertest.Env
	member *membertest.Member
	name   string
}

// newFleet joins a member to the shared hub. alice and the service account
// tenant/robot may reach it, and see the namespace shop of it.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{hub: shared.Env(t), name: "real-" + utilrand.String(5)}
	f.member = membertest.Start(t, member.Options{Name: f.name})
	own, err := client.New(f.member.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	if err := join.Join(t.Context(), join.Options{Name: f.name, Hub: f.hub.Hub, Member: own, MemberConfig: f.member.Config}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), timeout)
		defer cancel()
		if err := f.hub.Hub.Delete(ctx, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: f.name}}); err != nil {
			t.Error(err)
		}
	})
	f.grant(t, own)
	f.accept(t, own)
	return f
}

// grant gives alice and a service account their rights, on both sides.
func (f *fleet) grant(t *testing.T, own client.Client) {
	t.Helper()
	subjects := []rbacv1.Subject{
		{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "alice"},
		{Kind: rbacv1.ServiceAccountKind, Namespace: "tenant", Name: "robot"},
	}
	reach := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "reach-" + f.name},
		Rules: []rbacv1.PolicyRule{{
			Verbs: []string{"get", "create"}, APIGroups: []string{clusterv1alpha1.GroupName}, Resources: []string{"clusters/proxy"}, ResourceNames: []string{f.name},
		}},
	}
	read := reach.DeepCopy()
	read.Name, read.Rules[0].Verbs = "read-"+f.name, []string{"get"}
	bound := func(to *rbacv1.ClusterRole, subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: to.Name}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: to.Name},
		}
	}
	reader := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "reader"}
	for _, obj := range []client.Object{reach, read, bound(reach, subjects...), bound(read, reader)} {
		create(t, f.hub.Hub, obj)
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), timeout)
			defer cancel()
			if err := f.hub.Hub.Delete(ctx, obj); err != nil {
				t.Error(err)
			}
		})
	}
	create(t, own, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	create(t, own, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "tenants"}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	})
}

// accept makes in the member what lets the hub act as its users, as the loops
// would.
func (f *fleet) accept(t *testing.T, own client.Client) {
	t.Helper()
	cluster := &clusterv1alpha1.Cluster{}
	var roles rbacv1.ClusterRoleList
	var bindings rbacv1.ClusterRoleBindingList
	if err := f.hub.Hub.Get(t.Context(), client.ObjectKey{Name: f.name}, cluster); err != nil {
		t.Fatal(err)
	}
	for _, list := range []client.ObjectList{&roles, &bindings} {
		if err := f.hub.Hub.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	works, err := access.Works(cluster, access.Of(f.name, pointers(roles.Items), pointers(bindings.Items)))
	if err != nil {
		t.Fatal(err)
	}
	create(t, f.hub.Hub, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: workv1alpha2.ExecutionNamespace(f.name)}})
	for _, work := range works {
		work.Finalizers = nil // no loop runs
		create(t, f.hub.Hub, work)
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(work.Spec.Workload.Manifests[0].Raw); err != nil {
			t.Fatal(err)
		}
		create(t, own, obj)
	}
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

func create(t *testing.T, in client.Client, obj client.Object) {
	t.Helper()
	if err := in.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

// as returns how a user speaks to the member through the hub.
func (f *fleet) as(t *testing.T, user string, groups ...string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", f.hub.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups} // the hub's own
	return through(config, f.name)
}

// through leads a client of the hub to a cluster.
func through(config *rest.Config, cluster string) *rest.Config {
	config.Host += "/apis/cluster.karmada.io/v1alpha1/clusters/" + cluster + "/proxy"
	return config
}

func clientOf(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

// pod runs a pod in the member, until it is ready.
func (f *fleet) pod(t *testing.T, name string) {
	t.Helper()
	pods := f.member.Client.CoreV1().Pods("shop")
	eventually(t, "make a pod", func(ctx context.Context) (bool, error) { // once its service account is there
		_, err := pods.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.org/web"}}},
		}, metav1.CreateOptions{})
		return err == nil, nil
	})
	eventually(t, "start a pod", func(ctx context.Context) (bool, error) {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodRunning, err
	})
}

// TestMember is about one real member, reached through the hub.
func TestMember(t *testing.T) {
	f := newFleet(t)
	f.pod(t, "web")
	t.Run("users", f.users)
	t.Run("streams", f.streams)
}

// users may do in a member what its RBAC lets them.
func (f *fleet) users(t *testing.T) {
	admin := f.as(t, "")
	t.Run("the administrator may do all", func(t *testing.T) { f.administrator(t, clientOf(t, admin)) })
	t.Run("a user sees the namespace that he has rights in", func(t *testing.T) { tenant(t, clientOf(t, f.as(t, "alice", "dev"))) })
	t.Run("so does a service account", func(t *testing.T) {
		tenant(t, clientOf(t, f.as(t, "system:serviceaccount:tenant:robot")))
	})
	t.Run("who may not reach the cluster is refused by the hub", func(t *testing.T) {
		_, err := clientOf(t, f.as(t, "mallory")).CoreV1().Pods("shop").List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `clusters.cluster.karmada.io "`+f.name+`" is forbidden`) {
			t.Errorf("mallory = %v", err)
		}
	})
	t.Run("verbs count", func(t *testing.T) {
		err := clientOf(t, f.as(t, "alice")).CoreV1().Pods("shop").Delete(t.Context(), "web", metav1.DeleteOptions{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "clusters/proxy") {
			t.Errorf("delete = %v", err)
		}
	})
	t.Run("watches deliver at once", func(t *testing.T) { f.watch(t, clientOf(t, admin)) })
	t.Run("what is read costs the hub no write", func(t *testing.T) { f.quiet(t, clientOf(t, admin)) })
}

// administrator does all verbs.
func (f *fleet) administrator(t *testing.T, admin kubernetes.Interface) {
	maps := admin.CoreV1().ConfigMaps("shop")
	made, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"of": "test"}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Data = map[string]string{"k": "1"}
	if made, err = maps.Update(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err = maps.Patch(t.Context(), made.Name, "application/merge-patch+json", []byte(`{"data":{"k":"2"}}`), metav1.PatchOptions{DryRun: []string{"All"}}); err != nil {
		t.Fatalf("dry run: %v", err)
	}
	direct, err := f.member.Client.CoreV1().ConfigMaps("shop").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || direct.Data["k"] != "1" {
		t.Errorf("in the member: %v, %v", direct.Data, err)
	}
	if err := maps.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "of=test"}); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after deletion: %v", err)
	}
	if _, err := admin.Discovery().ServerVersion(); err != nil {
		t.Error(err)
	}
	for method, want := range map[string]string{"HEAD": "", "OPTIONS": ""} {
		code := 0
		admin.CoreV1().RESTClient().Verb(method).AbsPath("/api/v1/namespaces/shop/pods").Do(t.Context()).StatusCode(&code)
		if code == 0 || code >= 500 {
			t.Errorf("%s = %d %s", method, code, want)
		}
	}
}

// tenant sees pods of shop, and nothing else.
func tenant(t *testing.T, of kubernetes.Interface) {
	eventually(t, "see the pod", func(ctx context.Context) (bool, error) { // once the rights are known
		pods, err := of.CoreV1().Pods("shop").List(ctx, metav1.ListOptions{})
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return err == nil && len(pods.Items) == 1, err
	})
	if _, err := of.CoreV1().Pods("kube-system").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("pods of another namespace = %v", err)
	}
	if _, err := of.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("namespaces = %v", err)
	}
	if _, err := of.CoreV1().ConfigMaps("shop").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("create = %v", err)
	}
}

// watch hears of what is made while it watches.
func (f *fleet) watch(t *testing.T, admin kubernetes.Interface) {
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	w, err := admin.CoreV1().ConfigMaps("shop").Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=seen"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if _, err := f.member.Client.CoreV1().ConfigMaps("shop").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "seen"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case event := <-w.ResultChan():
		if made, ok := event.Object.(*corev1.ConfigMap); !ok || made.Name != "seen" {
			t.Errorf("event %v", event)
		}
	case <-ctx.Done():
		t.Error("no event")
	}
}

// quiet reads side by side and writes nothing to the hub.
func (f *fleet) quiet(t *testing.T, admin kubernetes.Interface) {
	before := f.hub.QuietRevision(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 25 {
				if _, err := admin.CoreV1().Pods("shop").Get(t.Context(), "web", metav1.GetOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if after := f.hub.Revision(t); after != before {
		t.Errorf("200 reads wrote %d times: %v", after-before, f.hub.Written(t, before))
	}
}
