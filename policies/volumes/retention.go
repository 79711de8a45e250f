package volumes

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// The values of a persistentVolumeClaimRetentionPolicy.
const (
	deletes = "Delete"
	retains = "Retain"
)

// retentionPath is the field in which a StatefulSet has the retention policy of its claims, and in which
// kinds have it whose operator creates StatefulSets.
func retentionPath() []string { return []string{"spec", "persistentVolumeClaimRetentionPolicy"} }

// whens are the field names of a retention policy.
func whens() []string { return []string{"whenDeleted", "whenScaled"} }

// Drops returns the retention fields by which the claims of an object are deleted with it, or with
// its replicas; none where they stay.
func Drops(obj *unstructured.Unstructured) []string {
	policy, _, _ := unstructured.NestedMap(obj.Object, retentionPath()...)
	var out []string
	for _, when := range whens() {
		if policy[when] == deletes {
			out = append(out, when)
		}
	}
	return out
}

// Named reports whether an object's annotation asks that its data is deleted with it.
func Named(obj *unstructured.Unstructured) bool {
	return obj.GetAnnotations()[workv1alpha2.AllowCascadeAnnotation] == "true"
}

// Outlive makes the claims of an object outlive it and its replicas in a cluster: it
// leaves clusters, or is scaled down, for more reasons than that a person deleted it. An object whose annotation
// names its data keeps its policy.
func Outlive(manifest *unstructured.Unstructured) {
	if Named(manifest) {
		return
	}
	for _, when := range Drops(manifest) {
		_ = unstructured.SetNestedField(manifest.Object, retains, append(retentionPath(), when)...) // it was there
	}
}

// MakesClaims reports whether objects of a kind create claims for their replicas, and own them if their
// retention policy says so.
func MakesClaims(of schema.GroupKind) bool {
	return of.Kind == "StatefulSet" && (of.Group == "apps" || of.Group == "apps.kruise.io")
}

// MadeBy returns those of the claims that a StatefulSet created, by their names, or owns, itself or by one of
// its replicas.
func MadeBy(set *unstructured.Unstructured, claims []corev1.PersistentVolumeClaim) []corev1.PersistentVolumeClaim {
	names := madeNames(set)
	var out []corev1.PersistentVolumeClaim
	for i := range claims {
		made := slices.ContainsFunc(names, func(name string) bool { return isReplica(claims[i].Name, name) })
		if made || len(Owners(set, &claims[i])) < len(claims[i].OwnerReferences) {
			out = append(out, claims[i])
		}
	}
	return out
}

// madeNames begin the names of the claims that a StatefulSet makes: "data-db", of which "data-db-0" is one.
func madeNames(set *unstructured.Unstructured) []string {
	var names []string
	templates, _, _ := unstructured.NestedSlice(set.Object, "spec", "volumeClaimTemplates")
	for _, template := range templates {
		if of, isMap := template.(map[string]any); isMap {
			name, _, _ := unstructured.NestedString(of, "metadata", "name")
			names = append(names, name+"-"+set.GetName())
		}
	}
	return names
}

// Owners returns the owner references of a claim without those to a StatefulSet and its replicas, which it would
// go with.
func Owners(set *unstructured.Unstructured, claim *corev1.PersistentVolumeClaim) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(claim.OwnerReferences), func(ref metav1.OwnerReference) bool {
		return ref.UID == set.GetUID() || ref.Kind == "Pod" && isReplica(ref.Name, set.GetName())
	})
}

// isReplica reports whether a name is that of a replica of a set: "db-0" of "db".
func isReplica(name, of string) bool {
	ordinal, begins := strings.CutPrefix(name, of+"-")
	return begins && ordinal != "" && strings.Trim(ordinal, "0123456789") == ""
}
