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
func WorkName(kind, name, namespace string) string {
	name = strings.ToLower(dnsName(name))
	id := name + "-" + strings.ToLower(kind)
	if namespace != "" {
		id = strings.ToLower(namespace) + "-" + id
	}
	return name + "-" + SafeHash(id)
}

// BindingReferenceKey is the short form of a binding's namespace and name that
// label keys carry.
func BindingReferenceKey(namespace, name string) string {
	if namespace == "" {
		return SafeHash(name)
	}
	return SafeHash(namespace + "/" + name)
}

// PolicyName is the name that commands give to a policy which they make for one
// object: its name, and a hash over its namespace, version and kind. Namespace is
// empty for cluster-scoped objects.
func PolicyName(gvk schema.GroupVersionKind, namespace, name string) string {
	return strings.ToLower(dnsName(name) + "-" + SafeHash(namespace+gvk.String()))
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

// SafeHash is the FNV-1a hash of a string, in an alphabet without vowels that
// is fit for names and label keys. What is hashed is the dump by which
// Kubernetes hashes objects: the string with its Go type before it.
func SafeHash(s string) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(dump.ForHash(s))) // a hash takes every write
	return rand.SafeEncodeString(fmt.Sprint(hash.Sum32()))
}

// dnsName replaces what names of RBAC objects may have and names of bindings
// and Works may not.
func dnsName(name string) string {
	return strings.ReplaceAll(name, ":", ".")
}
