package members_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestWhatIsGoneOnceItIsDeleted: a member says itself whether something stays for a while.
func TestWhatIsGoneOnceItIsDeleted(t *testing.T) {
	env, m, _ := joined(t)
	ns := env.Namespace(t)
	named := func(name string, finalizers ...string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: ns, Name: name, Finalizers: finalizers}
	}
	for name, tc := range map[string]struct {
		obj  client.Object
		kind string
		gone bool
	}{
		"a Status is the answer":           {&corev1.ConfigMap{ObjectMeta: named("free")}, "ConfigMap", true},
		"the object as it was":             {&corev1.ServiceAccount{ObjectMeta: named("free")}, "ServiceAccount", true},
		"one that a finalizer holds":       {&corev1.ConfigMap{ObjectMeta: named("held", "example.com/wait")}, "ConfigMap", false},
		"one that waits for what is in it": {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns + "-in"}}, "Namespace", false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := env.Hub.Create(t.Context(), tc.obj); err != nil {
				t.Fatal(err)
			}
			gone, err := m.Delete(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: tc.kind}, client.ObjectKeyFromObject(tc.obj), tc.obj.GetUID())
			if gone != tc.gone || err != nil {
				t.Errorf("delete = %t, %v, want %t", gone, err, tc.gone)
			}
			if len(tc.obj.GetFinalizers()) > 0 {
				free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
				if err := env.Hub.Patch(t.Context(), tc.obj, free); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
