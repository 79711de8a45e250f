package volumes_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-io/flotilla/policies/volumes"
)

// setWith is a StatefulSet "db" with a volume "data" and what it says of its claims.
func setWith(policy any, annotations map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "StatefulSet",
		"metadata": map[string]any{"namespace": "shop", "name": "db", "uid": "set-1", "annotations": annotations},
		"spec": map[string]any{
			"persistentVolumeClaimRetentionPolicy": policy,
			"volumeClaimTemplates":                 []any{map[string]any{"metadata": map[string]any{"name": "data"}}},
		},
	}}
}

// TestOutlive: what is made for replicas stays in a cluster unless somebody named it.
func TestOutlive(t *testing.T) {
	type policy = map[string]any
	for name, tc := range map[string]struct {
		says        any
		annotations map[string]any
		want        any
	}{
		"claims would go with the set":         {says: policy{"whenDeleted": "Delete"}, want: policy{"whenDeleted": "Retain"}},
		"claims would go with replicas":        {says: policy{"whenDeleted": "Retain", "whenScaled": "Delete"}, want: policy{"whenDeleted": "Retain", "whenScaled": "Retain"}},
		"claims would go with both":            {says: policy{"whenDeleted": "Delete", "whenScaled": "Delete"}, want: policy{"whenDeleted": "Retain", "whenScaled": "Retain"}},
		"claims stay anyway":                   {says: policy{"whenDeleted": "Retain"}, want: policy{"whenDeleted": "Retain"}},
		"nothing is said of claims":            {},
		"somebody's kind says something else":  {says: "Delete", want: "Delete"},
		"a value that is not known":            {says: policy{"whenDeleted": "Archive"}, want: policy{"whenDeleted": "Archive"}},
		"the set says that its data goes":      {says: policy{"whenDeleted": "Delete"}, annotations: map[string]any{"propagation.flotilla.io/allow-cascade": "true"}, want: policy{"whenDeleted": "Delete"}},
		"the set says that its data stays":     {says: policy{"whenDeleted": "Delete"}, annotations: map[string]any{"propagation.flotilla.io/allow-cascade": "false"}, want: policy{"whenDeleted": "Retain"}},
		"an annotation that is somebody's own": {says: policy{"whenDeleted": "Delete"}, annotations: map[string]any{"sea.example/allow": "true"}, want: policy{"whenDeleted": "Retain"}},
	} {
		t.Run(name, func(t *testing.T) {
			set := setWith(tc.says, tc.annotations)
			volumes.Outlive(set)
			if diff := cmp.Diff(setWith(tc.want, tc.annotations), set); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestMadeBy: the claims of a set are those of its names, and those that would go with it or its replicas.
func TestMadeBy(t *testing.T) {
	claim := func(name string, owners ...metav1.OwnerReference) corev1.PersistentVolumeClaim {
		return corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners}}
	}
	ref := func(kind, name, uid string) metav1.OwnerReference {
		return metav1.OwnerReference{Kind: kind, Name: name, UID: types.UID(uid)}
	}
	set := ref("StatefulSet", "db", "set-1")
	want := map[string][]metav1.OwnerReference{
		"data-db-0": nil, "data-db-12": nil, "data-db-1": {}, "data-db-2": {ref("Backup", "b", "b-1")}, "left": {},
	}
	got := map[string][]metav1.OwnerReference{}
	for _, c := range volumes.MadeBy(setWith(nil, nil), []corev1.PersistentVolumeClaim{
		claim("data-db-0"), claim("data-db-12"), claim("data-db-1", set), claim("data-db-2", ref("Backup", "b", "b-1"), ref("Pod", "db-2", "p-2")),
		claim("left", set), claim("data-db-x"), claim("data-db-"), claim("data-db"), claim("logs-db-0"), claim("data-db2-0"),
		claim("other", ref("StatefulSet", "db", "set-0"), ref("Pod", "dbs-0", "p")),
	}) {
		got[c.Name] = volumes.Owners(setWith(nil, nil), &c)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
