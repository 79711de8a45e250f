// Package cascade says what would be missed if something were deleted that others
// have put their objects into: a namespace, or the definition of a kind.
//
// In goes an object that lies within, or one that is being deleted; out comes
// whether it counts, or what keeps that. It decides nothing by itself and asks nobody.
package cascade

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Within says where objects lie.
type Within struct {
	// Namespaced reports whether objects of a kind live in namespaces; false for kinds
	// that are not served.
	Namespaced func(apiVersion, kind string) bool
	// Leaves reports whether an object goes anyway: it belongs to what is being deleted.
	Leaves func(metav1.Object) bool
	// Kind says that they are all objects of one kind, wherever they are, and not
	// those of one namespace: their owners are not looked at then.
	Kind bool
}

// transient are kinds whose objects say what goes on, or follow from others, and
// that the cluster makes anew.
var transient = []schema.GroupKind{
	{Kind: "Event"}, {Group: "events.k8s.io", Kind: "Event"},
	{Kind: "Endpoints"}, {Group: "discovery.k8s.io", Kind: "EndpointSlice"},
	{Group: "coordination.k8s.io", Kind: "Lease"},
}

// Transient reports whether the objects of a kind are missed by nobody.
func Transient(kind schema.GroupKind) bool { return slices.Contains(transient, kind) }

// furniture reports whether an object is one that every namespace has.
func furniture(kind schema.GroupKind, obj metav1.Object) bool {
	switch kind {
	case schema.GroupKind{Kind: "ServiceAccount"}:
		return obj.GetName() == "default"
	case schema.GroupKind{Kind: "ConfigMap"}:
		return obj.GetName() == "kube-root-ca.crt"
	case schema.GroupKind{Kind: "Secret"}:
		_, token := obj.GetAnnotations()[corev1.ServiceAccountNameKey]
		return token
	}
	return false
}

// Counts reports whether an object would be missed: it is not on its way out, not what
// every namespace has, and nobody else's who is looked at, too.
func Counts(kind schema.GroupKind, obj metav1.Object, w Within) bool {
	if obj.GetDeletionTimestamp() != nil || Transient(kind) || furniture(kind, obj) || w.Leaves(obj) {
		return false
	}
	if w.Kind {
		return true
	}
	// What owns it is in the same namespace, and looked at; or it is gone, and the
	// object goes with it.
	return !slices.ContainsFunc(obj.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return w.Namespaced(o.APIVersion, o.Kind) })
}

// Most is how many objects are named.
const Most = 5

// Describe names objects, of which there may be more than Most.
func Describe(titles []string) string {
	if len(titles) > Most {
		return strings.Join(titles[:Most], ", ") + " and more"
	}
	if len(titles) < 2 {
		return strings.Join(titles, "")
	}
	last := len(titles) - 1
	return strings.Join(titles[:last], ", ") + " and " + titles[last]
}

// Title is what an object is named by; its namespace where that is not clear.
func Title(kind string, obj metav1.Object, w Within) string {
	if w.Kind && obj.GetNamespace() != "" {
		return fmt.Sprintf("%s %s/%s", kind, obj.GetNamespace(), obj.GetName())
	}
	return kind + " " + obj.GetName()
}
