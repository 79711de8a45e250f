package bindings

import (
	corev1 "k8s.io/api/core/v1"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// TemplateRef refers to the template of b, so that Events show up there.
func TemplateRef(b workv1alpha2.Binding) *corev1.ObjectReference {
	ref := b.BindingSpec().Resource
	return &corev1.ObjectReference{
		APIVersion: ref.APIVersion,
		Kind:       ref.Kind,
		Namespace:  ref.Namespace,
		Name:       ref.Name,
		UID:        ref.UID,
	}
}
