package health_test

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestWhatTwoSourcesHold: an object of two sources is told of both, of whatever kind it is, and whoever applied it last.
func TestWhatTwoSourcesHold(t *testing.T) {
	kinds := map[string]struct {
		gvk       schema.GroupVersionKind
		namespace string
		make      func(metav1.ObjectMeta) client.Object
	}{
		"Role":               {rbacv1.SchemeGroupVersion.WithKind("Role"), "team", func(m metav1.ObjectMeta) client.Object { return &rbacv1.Role{ObjectMeta: m} }},
		"ClusterRoleBinding": {rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), "", func(m metav1.ObjectMeta) client.Object { return &rbacv1.ClusterRoleBinding{ObjectMeta: m} }},
		"Namespace":          {corev1.SchemeGroupVersion.WithKind("Namespace"), "", func(m metav1.ObjectMeta) client.Object { return &corev1.Namespace{ObjectMeta: m} }},
		"ServiceAccount":     {corev1.SchemeGroupVersion.WithKind("ServiceAccount"), "team", func(m metav1.ObjectMeta) client.Object { return &corev1.ServiceAccount{ObjectMeta: m} }},
		"CustomResourceDefinition": {apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), "", func(m metav1.ObjectMeta) client.Object {
			return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: m}
		}},
		"Kustomization": {kustomizev1.GroupVersion.WithKind("Kustomization"), "team", func(m metav1.ObjectMeta) client.Object { return &kustomizev1.Kustomization{ObjectMeta: m} }},
	}
	near, far := client.ObjectKey{Namespace: "team", Name: "other"}, client.ObjectKey{Namespace: "elsewhere", Name: "other"}
	const named, unnamed = "Kustomization team/other applies it, too", "another Kustomization applies it, too"
	for name, tc := range map[string]struct {
		by     client.ObjectKey // whom the labels name
		other  client.ObjectKey
		change func(other *kustomizev1.Kustomization, obj client.Object)
		want   string // of what is in a namespace
		wide   string // of what is in none
	}{
		"the other one has overwritten it":      {near, near, nil, named, named},
		"it has overwritten the other one's":    {owner, near, nil, named, named},
		"one of another namespace has":          {far, far, nil, unnamed, ""},
		"one of another namespace only says so": {owner, far, nil, "", ""},
		"a third one has":                       {client.ObjectKey{Namespace: "team", Name: "third"}, near, nil, "", ""},
		"nobody's labels are on it":             {client.ObjectKey{}, near, nil, "", ""},
		"the other one is of the same source":   {owner, near, func(ks *kustomizev1.Kustomization, _ client.Object) { ks.Spec.SourceRef.Name = "fleet" }, "", ""},
		"the other one is suspended":            {owner, near, func(ks *kustomizev1.Kustomization, _ client.Object) { ks.Spec.Suspend = true }, "", ""},
		"the other one is being deleted": {owner, near, func(ks *kustomizev1.Kustomization, _ client.Object) {
			ks.DeletionTimestamp, ks.Finalizers = ptr.To(metav1.Unix(1, 0)), []string{"x"}
		}, "", ""},
		"the other one has given it up": {owner, near, func(ks *kustomizev1.Kustomization, _ client.Object) { ks.Status.Inventory = nil }, "", ""},
		"it is meant to be written by several": {near, near, func(_ *kustomizev1.Kustomization, obj client.Object) {
			obj.SetAnnotations(map[string]string{"kustomize.toolkit.fluxcd.io/ssa": "Merge"})
		}, "", ""},
	} {
		for kind, of := range kinds {
			t.Run(name+", of a "+kind, func(t *testing.T) {
				entry := inventory.Entry{ID: inventory.ID{Namespace: of.namespace, Name: "shared", GroupKind: of.gvk.GroupKind()}, Version: of.gvk.Version}
				apply := func(key client.ObjectKey, source string) *kustomizev1.Kustomization {
					ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
					ks.Spec.SourceRef = kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Namespace: "team", Name: source}
					ks.Status.Inventory = inventory.Record([]inventory.Entry{entry})
					return ks
				}
				obj := of.make(metav1.ObjectMeta{Namespace: of.namespace, Name: "shared"})
				if tc.by.Name != "" {
					obj.SetLabels(inventory.OwnerLabels(tc.by))
				}
				other := apply(tc.other, "apps")
				if tc.change != nil {
					tc.change(other, obj)
				}
				hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(apply(owner, "fleet"), other, obj).Build()
				got, err := health.New(health.Deps{Hub: hub, Live: hub, Templates: templates{}}).Parts(t.Context(), owner, []inventory.Entry{entry})
				if err != nil {
					t.Fatal(err)
				}
				var want []rollup.Part
				reason, object := tc.want, kind+" team/shared"
				if of.namespace == "" {
					reason, object = tc.wide, kind+" shared"
				}
				if reason != "" {
					want = []rollup.Part{{Object: object, State: rollup.Progressing, Reason: reason}}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("parts (-want +got):\n%s", diff)
				}
			})
		}
	}
}
