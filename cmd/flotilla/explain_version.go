package main

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// namesVersion reports whether a word for a kind contains its version.
func namesVersion(word string, found schema.GroupVersionKind) bool {
	versioned, _ := schema.ParseResourceArg(strings.ToLower(word))
	return versioned != nil && versioned.Version == found.Version && versioned.Group == found.Group
}

// asCarried returns a template in the version that its binding refers to. Policies and decisions
// apply to that version, and the control plane may prefer another one. It returns the template
// unchanged if there is no binding or if the user may not read it.
func asCarried(ctx context.Context, r *explainReader, template *unstructured.Unstructured) *unstructured.Unstructured {
	b, err := r.bound.of(ctx, r.hub, template)
	if err != nil {
		return template
	}
	ref := b.BindingSpec().Resource
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	if gvk == template.GroupVersionKind() || gvk.GroupKind() != template.GroupVersionKind().GroupKind() || ref.Name != template.GetName() {
		return template
	}
	mapping, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return template
	}
	carried, err := r.get(ctx, mapping, ref.Namespace, ref.Name)
	if err != nil {
		return template
	}
	return carried
}

// boundTo caches the binding of a template. The zero value has not read it yet.
type boundTo struct {
	key client.ObjectKey
	b   workv1alpha2.Binding
	err error
}

// of reads the binding of a template, once.
func (t *boundTo) of(ctx context.Context, hub client.Reader, template *unstructured.Unstructured) (workv1alpha2.Binding, error) {
	key := client.ObjectKey{Namespace: template.GetNamespace(), Name: workv1alpha2.BindingName(template.GetKind(), template.GetName())}
	if t.b != nil && t.key == key {
		return t.b, t.err
	}
	t.key, t.b = key, &workv1alpha2.ResourceBinding{}
	if key.Namespace == "" {
		t.b = &workv1alpha2.ClusterResourceBinding{}
	}
	t.err = hub.Get(ctx, key, t.b)
	return t.b, t.err
}
