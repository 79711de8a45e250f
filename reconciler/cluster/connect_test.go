package cluster

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/interpreter"
)

var credentials = client.ObjectKey{Namespace: "karmada-cluster", Name: "eu-1"}

func pushed(uid types.UID, endpoint string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "eu-1", UID: uid, Generation: 1},
		Spec: clusterv1alpha1.ClusterSpec{
			SyncMode: clusterv1alpha1.Push, APIEndpoint: endpoint,
			SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: credentials.Namespace, Name: credentials.Name},
		},
	}
}

// loopOver returns the loop with its Secrets. What happens while one is read is
// up to the test.
func loopOver(t *testing.T, cluster *clusterv1alpha1.Cluster, meanwhile func(*Reconciler, *corev1.Secret)) *Reconciler {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: credentials.Namespace, Name: credentials.Name},
		Data:       map[string][]byte{clusterv1alpha1.SecretTokenKey: []byte("first")},
	}
	var r *Reconciler
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(secret, cluster.DeepCopy()).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, hub client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			err := hub.Get(ctx, key, obj, opts...)
			if secret, ok := obj.(*corev1.Secret); ok {
				meanwhile(r, secret)
			}
			return err
		},
	}).Build()
	r = New(hub, hub, members.New(members.Options{Interpreter: interpreter.Native()}), nil, Options{Clock: clocktesting.NewFakeClock(time.Unix(0, 0))})
	return r
}

func (r *Reconciler) connectTo(t *testing.T, cluster *clusterv1alpha1.Cluster) *memberWatch {
	t.Helper()
	if _, err := r.connect(t.Context(), &state{cluster: cluster}); err != nil {
		t.Fatal(err)
	}
	return r.watches.get(cluster.Name)
}

func TestAClusterOfTheSameNameIsConnectedToAnew(t *testing.T) {
	before, after := pushed("a", "https://127.0.0.1:1"), pushed("b", "https://127.0.0.1:2")
	r := loopOver(t, before, func(*Reconciler, *corev1.Secret) {})
	first := r.connectTo(t, before)
	r.watches.byCluster["eu-1"].seen = &observation{outcome: well}
	if again := r.connectTo(t, before); again.member != first.member || again.seen == nil {
		t.Error("a cluster that is as it was is connected to again")
	}
	second := r.connectTo(t, after)
	if second.member == first.member || second.member.Config().Host != after.Spec.APIEndpoint || second.seen != nil {
		t.Errorf("connected to %s, seen %v", second.member.Config().Host, second.seen)
	}
	after.Spec.SyncMode = clusterv1alpha1.Pull
	if _, err := r.judge(t.Context(), &state{cluster: after}); err != nil || r.watches.get("eu-1") != nil {
		t.Error("a cluster that reports for itself is still connected to")
	}
}

func TestCredentialsThatChangeWhileTheyAreReadAreReadAgain(t *testing.T) {
	for name, connected := range map[string]bool{"a first connection": false, "a connection that stands": true} {
		t.Run(name, func(t *testing.T) {
			cluster := pushed("a", "https://127.0.0.1:1")
			change := !connected
			r := loopOver(t, cluster, func(r *Reconciler, secret *corev1.Secret) {
				if change {
					r.clustersOfSecret(t.Context(), secret)
				}
			})
			if connected {
				r.connectTo(t, cluster)
				change = true
				r.clustersOfSecret(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: credentials.Namespace, Name: credentials.Name}})
			}
			if p := r.connectTo(t, cluster); p.suits(cluster) {
				t.Error("the change was missed")
			}
			change = false
			if p := r.connectTo(t, cluster); !p.suits(cluster) {
				t.Error("what was read again counts as outdated")
			}
		})
	}
}
