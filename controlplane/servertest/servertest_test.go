package servertest_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/controlplane/servertest"
)

// TestServersStandApart runs two servers at a time, each with objects of its own.
func TestServersStandApart(t *testing.T) {
	for _, name := range []string{"one", "two"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			env := servertest.New(t)
			t.Logf("ready after %v", time.Since(begin))

			namespace := env.Namespace(t)
			furnished(t, env, namespace)
			before := env.QuietRevision(t)
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
			if err := env.Hub.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			if got := env.QuietRevision(t) - before; got != 1 {
				t.Errorf("one object was written %d times", got)
			}
			want := []string{"/registry/configmaps/" + namespace + "/" + name}
			if diff := cmp.Diff(want, env.Written(t, before)); diff != "" {
				t.Errorf("keys written (-want +got):\n%s", diff)
			}
			list := &corev1.ConfigMapList{}
			if err := env.Hub.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
				t.Fatal(err)
			}
			for _, item := range list.Items {
				if item.Name != name && item.Name != "kube-root-ca.crt" {
					t.Errorf("found %s of the other server", item.Name)
				}
			}
		})
	}
}

// furnished waits until a namespace has what housekeeping puts into it.
func furnished(t *testing.T, env *servertest.Env, namespace string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		for name, obj := range map[string]client.Object{"default": &corev1.ServiceAccount{}, "kube-root-ca.crt": &corev1.ConfigMap{}} {
			if err := env.Hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj); err != nil {
				return false, client.IgnoreNotFound(err)
			}
		}
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestNamespaceGoesWithItsTest(t *testing.T) {
	env := servertest.New(t)
	var name string
	t.Run("a test with a / and CAPITALS, and quite a long name for a namespace", func(t *testing.T) { name = env.Namespace(t) })
	got := &corev1.Namespace{}
	err := env.Hub.Get(t.Context(), client.ObjectKey{Name: name}, got)
	if !apierrors.IsNotFound(err) && got.DeletionTimestamp == nil {
		t.Errorf("namespace %s stays: %v", name, err)
	}
}
