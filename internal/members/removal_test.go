package members_test

import (
	"cmp"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/members"
)

// TestWhatIsGoneOnceItIsDeleted: a member says itself whether something stays for a while.
func TestWhatIsGoneOnceItIsDeleted(t *testing.T) {
	env, m, _ := joined(t)
	ns := env.Namespace(t)
	named := func(name string, finalizers ...string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: ns, Name: name, Finalizers: finalizers}
	}
	for name, tc := range map[string]struct {
		obj   client.Object
		kind  string
		owned metav1.DeletionPropagation
		gone  bool
	}{
		"a Status is the answer":           {obj: &corev1.ConfigMap{ObjectMeta: named("free")}, kind: "ConfigMap", gone: true},
		"the object as it was":             {obj: &corev1.ServiceAccount{ObjectMeta: named("free")}, kind: "ServiceAccount", gone: true},
		"one that a finalizer holds":       {obj: &corev1.ConfigMap{ObjectMeta: named("held", "example.com/wait")}, kind: "ConfigMap", gone: false},
		"one that waits for what it owns":  {obj: &corev1.ConfigMap{ObjectMeta: named("owner")}, kind: "ConfigMap", owned: metav1.DeletePropagationForeground},
		"one that waits for what is in it": {obj: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns + "-in"}}, kind: "Namespace", gone: false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := env.Hub.Create(t.Context(), tc.obj); err != nil {
				t.Fatal(err)
			}
			gone, err := m.Delete(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: tc.kind}, client.ObjectKeyFromObject(tc.obj), tc.obj.GetUID(), cmp.Or(tc.owned, metav1.DeletePropagationBackground))
			if gone != tc.gone || err != nil {
				t.Errorf("delete = %t, %v, want %t", gone, err, tc.gone)
			}
			if len(tc.obj.GetFinalizers()) > 0 || tc.owned != "" {
				free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
				if err := env.Hub.Patch(t.Context(), tc.obj, free); client.IgnoreNotFound(err) != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestServed: a kind is found in a version that is served, whichever was asked for.
func TestServed(t *testing.T) {
	_, m, _ := joined(t)
	for name, tc := range map[string]struct {
		asked, want schema.GroupVersionKind
		missing     bool
	}{
		"the version that was asked for": {
			asked: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, want: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		},
		"another one": {
			asked: schema.GroupVersionKind{Group: "apps", Version: "v1beta1", Kind: "Deployment"}, want: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		},
		"a kind that the group lacks": {asked: schema.GroupVersionKind{Group: "apps", Version: "v1beta1", Kind: "Widget"}, missing: true},
		"a group that is not there":   {asked: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, missing: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := m.Served(t.Context(), tc.asked)
			if errors.Is(err, members.ErrNotServed) != tc.missing || err != nil && !tc.missing || !tc.missing && got != tc.want {
				t.Errorf("it is served as %s, %v", got, err)
			}
		})
	}
}
