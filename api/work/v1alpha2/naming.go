package v1alpha2

import (
	"fmt"
	"hash/fnv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/dump"
	"k8s.io/apimachinery/pkg/util/rand"
)

// ExecutionNamespacePrefix is what the name of an execution namespace starts
// with.
const ExecutionNamespacePrefix = "karmada-es-"

// BindingName is the name of the binding of a template: its name and kind, in
// lower case. The API group is no part of it, so templates of one kind and name
// in two groups share a binding's name.
func BindingName(kind, name string) string {
	return strings.ToLower(dnsName(name) + "-" + kind)
}

// WorkName is the name of the Work of a template: its name, and a hash over its
// namespace, name and kind. Namespace is empty for cluster-scoped templates.
func WorkName(kind, name, namespace string) string { return workName(SafeHash, kind, name, namespace) }

// FormerWorkName is the name that the Work of a template had while names were made of
// formerHash.
func FormerWorkName(kind, name, namespace string) string {
	return workName(formerHash, kind, name, namespace)
}

// WorkNamed is the name now of the Work that is said to be a template's: what is said,
// unless that is the name that this Work had formerly.
func WorkNamed(given, kind, name, namespace string) string {
	if given == FormerWorkName(kind, name, namespace) {
		return WorkName(kind, name, namespace)
	}
	return given
}

func workName(hash func(string) string, kind, name, namespace string) string {
	name = strings.ToLower(dnsName(name))
	id := name + "-" + strings.ToLower(kind)
	if namespace != "" {
		id = strings.ToLower(namespace) + "-" + id
	}
	return name + "-" + hash(id)
}

// BindingReferenceKey is the short form of a binding's namespace and name that
// label keys carry.
func BindingReferenceKey(namespace, name string) string {
	return SafeHash(reference(namespace, name))
}

// FormerBindingReferenceKey is what BindingReferenceKey was while it was made of
// formerHash.
func FormerBindingReferenceKey(namespace, name string) string {
	return formerHash(reference(namespace, name))
}

func reference(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// PolicyName is the name that commands give to a policy which they make for one
// object: its name, and a hash over its namespace, version and kind. Namespace is
// empty for cluster-scoped objects.
func PolicyName(gvk schema.GroupVersionKind, namespace, name string) string {
	return policyName(SafeHash, gvk, namespace, name)
}

// FormerPolicyName is the name that such a policy had while names were made of
// formerHash.
func FormerPolicyName(gvk schema.GroupVersionKind, namespace, name string) string {
	return policyName(formerHash, gvk, namespace, name)
}

func policyName(hash func(string) string, gvk schema.GroupVersionKind, namespace, name string) string {
	return strings.ToLower(dnsName(name) + "-" + hash(namespace+gvk.String()))
}

// ExecutionNamespace is the namespace on the hub that holds a cluster's Works.
func ExecutionNamespace(cluster string) string {
	return ExecutionNamespacePrefix + cluster
}

// ClusterOfExecutionNamespace is the cluster whose Works a namespace holds.
// False: it is no execution namespace.
func ClusterOfExecutionNamespace(namespace string) (string, bool) {
	cluster, ok := strings.CutPrefix(namespace, ExecutionNamespacePrefix)
	if !ok || cluster == "" {
		return "", false
	}
	return cluster, true
}

// SafeHash is the FNV-1a hash of a string's bytes, in an alphabet without vowels that
// is fit for names and label keys.
func SafeHash(s string) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(s)) // a hash takes every write
	return rand.SafeEncodeString(fmt.Sprint(hash.Sum32()))
}

// formerHash is what names were made of before SafeHash: the hash of the string as
// Kubernetes dumps objects, with its Go type before it. What stands under such a name is
// taken over.
func formerHash(s string) string { return SafeHash(dump.ForHash(s)) }

// dnsName replaces what names of RBAC objects may have and names of bindings
// and Works may not.
func dnsName(name string) string {
	return strings.ReplaceAll(name, ":", ".")
}
