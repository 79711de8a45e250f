package servertest_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// TestNamespacesOfEarlierTestsAreEmptied: a namespace is emptied seconds after it was
// deleted, and a later test that counts writes does not count those.
func TestNamespacesOfEarlierTestsAreEmptied(t *testing.T) {
	env := servertest.New(t)
	var name string
	t.Run("an earlier test", func(t *testing.T) { name = env.Namespace(t) })
	env.Emptied(t)
	env.QuietRevision(t)
	if err := env.Hub.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace of an earlier test is still to be emptied: %v", err)
	}
}

// TestNamespacesThatSomebodyHoldsAreNotWaitedFor: nobody may be there who lets go of what is
// in a namespace.
func TestNamespacesThatSomebodyHoldsAreNotWaitedFor(t *testing.T) {
	env := servertest.New(t)
	t.Run("an earlier test", func(t *testing.T) {
		blocked := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "held", Finalizers: []string{"example.com/held"}}}
		if err := env.Hub.Create(t.Context(), blocked); err != nil {
			t.Fatal(err)
		}
	})
	env.Emptied(t)
}
