package plan

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// serverKept are the fields of metadata that belong to the hub's own object.
var serverKept = []string{
	"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields",
	"resourceVersion", "selfLink", "uid", "ownerReferences", "finalizers",
}

// Unsent returns the field, such as metadata.ownerReferences, that a path leads to or into and that no cluster is sent;
// empty where there is none.
func Unsent(path []string) string {
	switch {
	case len(path) > 0 && path[0] == "status":
		return "status"
	case len(path) > 1 && path[0] == "metadata" && slices.Contains(serverKept, path[1]):
		return "metadata." + path[1]
	default:
		return ""
	}
}

// lastApplied is what kubectl keeps about the hub's own object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// pruners remove what the hub added to objects of a kind, by group and kind.
var pruners = map[string]func(obj map[string]any){
	"apps/Deployment":        pruneDeployment,
	"batch/Job":              pruneJob,
	"/Secret":                pruneSecret,
	"/ServiceAccount":        pruneServiceAccount,
	"/Service":               pruneService,
	"/PersistentVolumeClaim": prunePersistentVolumeClaim,
	"/Namespace":             pruneNamespace,
}

// Prune removes from obj what does not belong in a member: its status, what
// the hub's server keeps in its metadata, and what it fills in for the kind.
// Pruning twice is pruning once.
func Prune(obj *unstructured.Unstructured) {
	delete(obj.Object, "status")
	for _, key := range serverKept {
		unstructured.RemoveNestedField(obj.Object, "metadata", key)
	}
	removeKey(obj.Object, lastApplied, "metadata", "annotations")
	removeKey(obj.Object, propagation.WaitsAnnotation, "metadata", "annotations")
	removeKey(obj.Object, workv1alpha2.AppliedByAnnotation, "metadata", "annotations")
	gvk := obj.GroupVersionKind()
	if prune, ok := pruners[gvk.Group+"/"+gvk.Kind]; ok {
		prune(obj.Object)
	}
}

func pruneDeployment(obj map[string]any) {
	removeKey(obj, "deployment.kubernetes.io/revision", "metadata", "annotations")
	removeKey(obj, "deployment.kubernetes.io/revision-history", "metadata", "annotations")
}

// pruneJob removes the selector that the hub generated, unless the user set it, and
// the time to live: the copies of the hub's jobs are removed through the hub.
func pruneJob(obj map[string]any) {
	unstructured.RemoveNestedField(obj, "spec", "ttlSecondsAfterFinished")
	if manual, _, _ := unstructured.NestedBool(obj, "spec", "manualSelector"); manual {
		return
	}
	for _, key := range []string{"controller-uid", "batch.kubernetes.io/controller-uid"} {
		removeKey(obj, key, "spec", "selector", "matchLabels")
		removeKey(obj, key, "spec", "template", "metadata", "labels")
	}
	for _, key := range []string{"job-name", "batch.kubernetes.io/job-name"} {
		removeKey(obj, key, "spec", "template", "metadata", "labels")
	}
	removeEmpty(obj, "spec", "selector")
}

func pruneSecret(obj map[string]any) {
	if obj["type"] != "kubernetes.io/service-account-token" {
		return
	}
	removeKey(obj, "kubernetes.io/service-account.uid", "metadata", "annotations")
	delete(obj, "data")
}

// pruneServiceAccount removes the hub's own token secrets.
func pruneServiceAccount(obj map[string]any) {
	secrets, _ := obj["secrets"].([]any)
	name, _, _ := unstructured.NestedString(obj, "metadata", "name")
	var kept []any
	for _, s := range secrets {
		m, ok := s.(map[string]any)
		if secret, _ := m["name"].(string); !ok || !strings.HasPrefix(secret, name+"-token-") {
			kept = append(kept, s)
		}
	}
	if len(kept) == 0 {
		delete(obj, "secrets")
		return
	}
	obj["secrets"] = kept
}

// pruneService removes addresses of the hub; a headless service stays so.
func pruneService(obj map[string]any) {
	if ip, _, _ := unstructured.NestedString(obj, "spec", "clusterIP"); ip == "None" {
		return
	}
	unstructured.RemoveNestedField(obj, "spec", "clusterIP")
	unstructured.RemoveNestedField(obj, "spec", "clusterIPs")
}

func prunePersistentVolumeClaim(obj map[string]any) {
	removeKey(obj, "volume.kubernetes.io/selected-node", "metadata", "annotations")
}

func pruneNamespace(obj map[string]any) {
	unstructured.RemoveNestedField(obj, "spec", "finalizers")
	removeEmpty(obj, "spec")
}

// removeKey removes an entry of the map at the path, and the map itself once it
// is empty. Keys may hold dots and slashes.
func removeKey(obj map[string]any, key string, path ...string) {
	m, _, err := unstructured.NestedFieldNoCopy(obj, path...)
	entries, ok := m.(map[string]any)
	if err != nil || !ok {
		return
	}
	delete(entries, key)
	removeEmpty(obj, path...)
}

func removeEmpty(obj map[string]any, path ...string) {
	m, _, err := unstructured.NestedFieldNoCopy(obj, path...)
	if entries, ok := m.(map[string]any); err == nil && ok && len(entries) == 0 {
		unstructured.RemoveNestedField(obj, path...)
	}
}
