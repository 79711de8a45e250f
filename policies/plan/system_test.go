package plan_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// systemWork is a Work of the control plane's own, without its manifests.
func systemWork(name, id string) *workv1alpha1.Work {
	return &workv1alpha1.Work{
		TypeMeta: metav1.TypeMeta{APIVersion: "work.karmada.io/v1alpha1", Kind: "Work"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "karmada-es-a", Name: name, Labels: map[string]string{"work.karmada.io/permanent-id": plan.WorkID("c-1/"+id, "a")},
			Finalizers: []string{"karmada.io/execution-controller"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "cluster.karmada.io/v1alpha1", Kind: "Cluster", Name: "a", UID: "c-1", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
	}
}

// systemManifest is what such a Work carries of an object that has a label, or none.
func systemManifest(t *testing.T, work *workv1alpha1.Work, text, label string) map[string]any {
	t.Helper()
	obj := object(t, text)
	id, labels := work.Labels["work.karmada.io/permanent-id"], "karmada.io/managed,karmada.io/system,work.karmada.io/permanent-id"
	obj.SetLabels(map[string]string{"karmada.io/managed": "true", "karmada.io/system": "true", "work.karmada.io/permanent-id": id})
	if label != "" {
		labels = label + "," + labels
		obj.SetLabels(map[string]string{label: "x", "karmada.io/managed": "true", "karmada.io/system": "true", "work.karmada.io/permanent-id": id})
	}
	obj.SetAnnotations(map[string]string{
		"resourcetemplate.karmada.io/managed-annotations": "resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels," +
			"resourcetemplate.karmada.io/uid,work.karmada.io/conflict-resolution,work.karmada.io/name,work.karmada.io/namespace",
		"resourcetemplate.karmada.io/managed-labels": labels, "resourcetemplate.karmada.io/uid": "",
		"work.karmada.io/conflict-resolution": "overwrite", "work.karmada.io/name": work.Name, "work.karmada.io/namespace": work.Namespace,
	})
	return obj.Object
}

// TestSystem: an object of the control plane's own goes to a cluster in a Work that
// belongs to the Cluster, and takes the place of what is there.
func TestSystem(t *testing.T) {
	const role, binding = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, rules: []}`, `{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: x, name: sa}}`
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "c-1"}}
	labelled := object(t, role)
	labelled.SetLabels(map[string]string{"app": "x"})
	one := systemWork(workv1alpha2.WorkName("ClusterRole", "r", ""), workv1alpha2.FormerWorkName("ClusterRole", "r", ""))
	several, none := systemWork("agent", "agent"), systemWork("agent", "agent")
	cases := map[string]struct {
		make      func() (*workv1alpha1.Work, error)
		want      *workv1alpha1.Work
		manifests []map[string]any
	}{
		"one object, by whose name the Work is called": {
			func() (*workv1alpha1.Work, error) { return plan.System(object(t, role), cluster) }, one, []map[string]any{systemManifest(t, one, role, "")},
		},
		"labels of its own stay": {
			func() (*workv1alpha1.Work, error) { return plan.System(labelled, cluster) }, one, []map[string]any{systemManifest(t, one, role, "app")},
		},
		"several objects, in their order, in a Work of a name": {
			func() (*workv1alpha1.Work, error) {
				return plan.SystemOf("agent", cluster, object(t, role), object(t, binding))
			}, several, []map[string]any{systemManifest(t, several, role, ""), systemManifest(t, several, binding, "")},
		},
		"no object": {func() (*workv1alpha1.Work, error) { return plan.SystemOf("agent", cluster) }, none, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tc.make()
			if err != nil {
				t.Fatal(err)
			}
			var manifests []map[string]any
			for _, m := range got.Spec.Workload.Manifests {
				manifests = append(manifests, object(t, string(m.Raw)).Object)
			}
			got.Spec.Workload.Manifests = nil
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Work (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.manifests, manifests); diff != "" {
				t.Errorf("manifests (-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff(map[string]string{"app": "x"}, labelled.GetLabels()); diff != "" {
		t.Errorf("the object that came in was changed (-want +got):\n%s", diff)
	}
}

// TestNotEncoded: what cannot be written as JSON is reported, and makes no Work.
func TestNotEncoded(t *testing.T) {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	endless := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c"}, "data": math.Inf(1),
	}}
	const fault = "json: unsupported value: +Inf"
	work, err := plan.System(endless, cluster)
	if want := "encode ConfigMap c: " + fault; work != nil || err == nil || err.Error() != want {
		t.Errorf("Work of the control plane's own = %v, error %v, want %s", work, err, want)
	}
	namespace := plan.Namespace(endless, cluster, nil)
	if want := "encode namespace: " + fault; namespace.Work != nil || namespace.Err == nil || namespace.Err.Error() != want {
		t.Errorf("Work of a namespace = %v, error %v, want %s", namespace.Work, namespace.Err, want)
	}
	in := input(t)
	in.Template = endless
	in.Binding.BindingSpec().Replicas = 0
	plans, err := plan.Works(in)
	if want := "digest of the template: " + fault; plans != nil || err == nil || err.Error() != want {
		t.Errorf("Works = %v, error %v, want %s", plans, err, want)
	}
}
