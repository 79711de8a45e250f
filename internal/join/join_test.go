package join_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/join"
)

var shared servertest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// steps collects the reported steps.
type steps []string

func (s *steps) add(step join.Step) { *s = append(*s, step.String()) }

// TestJoinAndUnjoin registers another control plane as a member: it issues tokens
// and has RBAC as any cluster does.
func TestJoinAndUnjoin(t *testing.T) {
	env, member := shared.Env(t), servertest.New(t)
	options := func(name string, reported *steps) join.Options {
		return join.Options{Name: name, Hub: env.Hub, Member: member.Hub, MemberConfig: member.Config, Region: "eu", Progress: reported.add}
	}
	itself := options("self", &steps{})
	itself.Member, itself.MemberConfig = env.Hub, env.Config
	if err := join.Join(t.Context(), itself); !errors.Is(err, join.ErrItself) {
		t.Errorf("the control plane as a member of itself: %v", err)
	}

	var planned steps
	dry := options("self", &planned)
	dry.DryRun = true
	if err := join.Join(t.Context(), dry); err != nil {
		t.Fatal(err)
	}
	want := steps{
		"would put this control plane's claim on the cluster (member)",
		"would create Namespace karmada-cluster (member)",
		"would create ServiceAccount karmada-cluster/karmada-impersonator (member)",
		"would create Secret karmada-cluster/karmada-impersonator (member)",
		"would create ServiceAccount karmada-cluster/karmada-self (member)",
		"would create Secret karmada-cluster/karmada-self (member)",
		"would create ClusterRole karmada-controller-manager:karmada-self (member)",
		"would create ClusterRoleBinding karmada-controller-manager:karmada-self (member)",
		"would create Namespace karmada-cluster (hub)",
		"would create Secret karmada-cluster/self (hub)",
		"would create Secret karmada-cluster/self-impersonator (hub)",
		"would create Cluster self (hub)",
	}
	if diff := cmp.Diff(want, planned); diff != "" {
		t.Errorf("dry run (-want +got):\n%s", diff)
	}
	if err := env.Hub.Get(t.Context(), client.ObjectKey{Name: "self"}, &clusterv1alpha1.Cluster{}); !apierrors.IsNotFound(err) {
		t.Fatalf("a dry run made the Cluster: %v", err)
	}

	var reported steps
	if err := join.Join(t.Context(), options("self", &reported)); err != nil {
		t.Fatal(err)
	}
	system, cluster, secret := &corev1.Namespace{}, &clusterv1alpha1.Cluster{}, &corev1.Secret{}
	if err := member.Hub.Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		t.Fatal(err)
	}
	for key, obj := range map[client.ObjectKey]client.Object{
		{Name: "self"}: cluster,
		{Namespace: "karmada-cluster", Name: "self"}: secret,
	} {
		if err := env.Hub.Get(t.Context(), key, obj); err != nil {
			t.Fatal(err)
		}
	}
	spec := clusterv1alpha1.ClusterSpec{
		ID: string(system.UID), SyncMode: clusterv1alpha1.Push, APIEndpoint: member.Config.Host, Region: "eu",
		SecretRef:             &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "self"},
		ImpersonatorSecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "self-impersonator"},
	}
	cluster.Spec.ResourceModels = nil // set by the server
	if diff := cmp.Diff(spec, cluster.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if len(secret.Data["token"]) == 0 || len(secret.Data["caBundle"]) == 0 || len(secret.OwnerReferences) != 1 || secret.OwnerReferences[0].UID != cluster.UID {
		t.Errorf("secret with keys %d, owners %v", len(secret.Data), secret.OwnerReferences)
	}
	for _, line := range reported {
		if strings.Contains(line, string(secret.Data["token"])) {
			t.Error("a step tells the token")
		}
	}

	var again steps
	if err := join.Join(t.Context(), options("self", &again)); err != nil {
		t.Errorf("join again: %v", err)
	}
	for _, line := range again {
		if !strings.HasPrefix(line, "kept ") {
			t.Errorf("joining again has %s", line)
		}
	}
	says := "this cluster is already registered as self: unjoin that first to give it another name"
	if err := join.Join(t.Context(), options("other", &steps{})); !errors.Is(err, join.ErrTaken) || err.Error() != says {
		t.Errorf("join under another name = %v, want %q", err, says)
	}
	foreign := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}, Spec: clusterv1alpha1.ClusterSpec{ID: "x", SyncMode: clusterv1alpha1.Pull}}
	if err := env.Hub.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Hub.Delete(context.WithoutCancel(t.Context()), foreign); err != nil {
			t.Error(err)
		}
	})
	if err := join.Join(t.Context(), options("foreign", &steps{})); !errors.Is(err, join.ErrTaken) || !strings.Contains(err.Error(), "for another cluster") {
		t.Errorf("join under a name that is taken = %v", err)
	}
	if err := join.Unjoin(t.Context(), join.UnjoinOptions{Name: "foreign", Hub: env.Hub}); !errors.Is(err, join.ErrPull) {
		t.Errorf("unjoin of a cluster in pull mode = %v, want %v", err, join.ErrPull)
	}

	var leaving steps
	if err := join.Unjoin(t.Context(), join.UnjoinOptions{Name: "self", Hub: env.Hub, Member: member.Hub, DryRun: true, Progress: leaving.add}); err != nil {
		t.Fatal(err)
	}
	if last := "would take this control plane's claim off the cluster (member)"; !slices.Contains(leaving, last) {
		t.Errorf("a dry run of unjoin does not tell of the claim: %v", leaving)
	}
	if err := join.Unjoin(t.Context(), join.UnjoinOptions{Name: "self", Hub: env.Hub, Member: member.Hub}); err != nil {
		t.Fatal(err)
	}
	for obj, in := range map[client.Object]client.Client{
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "self"}}:                                      env.Hub,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "karmada-controller-manager:karmada-self"}}:        member.Hub,
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "karmada-controller-manager:karmada-self"}}: member.Hub,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "self"}}:                  env.Hub,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "karmada-self"}}:  member.Hub,
	} {
		if err := in.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s is left: %v", obj, obj.GetName(), err)
		}
	}
	if err := join.Unjoin(t.Context(), join.UnjoinOptions{Name: "self", Hub: env.Hub}); !apierrors.IsNotFound(err) {
		t.Errorf("unjoin of what is not there = %v", err)
	}
}

// TestForce removes a cluster whose workloads cannot be removed, as no loop runs
// here that would.
func TestForce(t *testing.T) {
	env := shared.Env(t)
	cluster := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "stuck", Finalizers: []string{clusterv1alpha1.ClusterControllerFinalizer}},
		Spec:       clusterv1alpha1.ClusterSpec{ID: "stuck", SyncMode: clusterv1alpha1.Push, APIEndpoint: "https://127.0.0.1:1"},
	}
	if err := env.Hub.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	o := join.UnjoinOptions{Name: "stuck", Hub: env.Hub, Wait: 1}
	if err := join.Unjoin(t.Context(), o); !errors.Is(err, join.ErrStays) {
		t.Errorf("unjoin = %v, want %v", err, join.ErrStays)
	}
	o.Force, o.Wait = true, 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.Wait = 5e9 // it waits as long before it removes finalizers, and at most as long again afterwards
	if err := join.Unjoin(ctx, o); err != nil {
		t.Errorf("unjoin by force = %v", err)
	}
}

func TestNames(t *testing.T) {
	for _, name := range []string{"", "EU", "a.b", "-a", strings.Repeat("a", 49)} {
		if err := join.Join(t.Context(), join.Options{Name: name}); !errors.Is(err, join.ErrName) {
			t.Errorf("join as %q = %v, want %v", name, err, join.ErrName)
		}
	}
}
