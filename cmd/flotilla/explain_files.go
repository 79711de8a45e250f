package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/policies/explain"
	"github.com/flotilla-io/flotilla/policies/validate"
)

// manifests are the objects in the files: templates, and the policies and overrides with which
// to explain them.
type manifests struct {
	templates, policies []*unstructured.Unstructured
}

// readManifests reads YAML or JSON from files, from folders and their subfolders, and, for a dash, from
// standard input.
func readManifests(paths []string, stdin io.Reader) (manifests, error) {
	var out manifests
	files, err := readFiles(paths, stdin)
	if err != nil {
		return manifests{}, err
	}
	for _, file := range files {
		if err := out.decode(file.Content); err != nil {
			return manifests{}, fmt.Errorf("%s: %w", file.Name, err)
		}
	}
	return out, nil
}

func (m *manifests) decode(data []byte) error {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), len(data)+1)
	for {
		var raw runtime.RawExtension
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if doc := bytes.TrimSpace(raw.Raw); len(doc) == 0 || bytes.Equal(doc, []byte("null")) {
			continue
		}
		obj, _, err := unstructured.UnstructuredJSONScheme.Decode(raw.Raw, nil, nil)
		if err != nil {
			return err
		}
		if list, ok := obj.(*unstructured.UnstructuredList); ok {
			for i := range list.Items {
				m.add(&list.Items[i])
			}
			continue
		}
		m.add(obj.(*unstructured.Unstructured))
	}
}

func (m *manifests) add(obj *unstructured.Unstructured) {
	if obj.GroupVersionKind().Group == policyv1alpha1.GroupVersion.Group {
		m.policies = append(m.policies, obj)
		return
	}
	m.templates = append(m.templates, obj)
}

// only returns the single template, or an error if there is not exactly one.
func (m *manifests) only() (*unstructured.Unstructured, error) {
	switch len(m.templates) {
	case 0:
		return nil, command.Usage(errors.New("the files have policies alone: name what is to be explained, KIND/NAME"))
	case 1:
		return m.templates[0], nil
	}
	names := make([]string, len(m.templates))
	for i, t := range m.templates {
		names[i] = strings.ToLower(t.GetKind()) + "/" + t.GetName()
	}
	return nil, command.Usage(fmt.Errorf("the files have several objects: say which of %s", strings.Join(names, ", ")))
}

// find returns the template of a kind and name; nil if there is none.
func (m *manifests) find(kind schema.GroupKind, name string) *unstructured.Unstructured {
	for _, t := range m.templates {
		if t.GroupVersionKind().GroupKind() == kind && t.GetName() == name {
			return t
		}
	}
	return nil
}

// lay adds the policies and overrides of the files, with the control plane's defaults. They
// replace those of the same name.
func (m *manifests) lay(in *explain.Input, namespace string) error {
	for _, obj := range m.policies {
		var err error
		switch obj.GetKind() {
		case policyv1alpha1.ResourceKindPropagationPolicy:
			err = layPolicy(in, obj, &policyv1alpha1.PropagationPolicy{}, namespace)
		case policyv1alpha1.ResourceKindClusterPropagationPolicy:
			err = layPolicy(in, obj, &policyv1alpha1.ClusterPropagationPolicy{}, "")
		case policyv1alpha1.ResourceKindOverridePolicy:
			err = layOverride(in, obj, &policyv1alpha1.OverridePolicy{}, namespace)
		case policyv1alpha1.ResourceKindClusterOverridePolicy:
			err = layOverride(in, obj, &policyv1alpha1.ClusterOverridePolicy{}, "")
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return nil
}

func layPolicy(in *explain.Input, obj *unstructured.Unstructured, p policyv1alpha1.Policy, namespace string) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, p); err != nil {
		return err
	}
	p.SetNamespace(orElse(p.GetNamespace(), namespace))
	validate.DefaultPolicy(p, true, uuid.NewString)
	i := slices.IndexFunc(in.Policies, func(other policyv1alpha1.Policy) bool {
		return other.GetNamespace() == p.GetNamespace() && other.GetName() == p.GetName()
	})
	if i < 0 {
		in.Policies = append(in.Policies, p)
		return nil
	}
	p.SetLabels(in.Policies[i].GetLabels()) // keeps the permanent id
	p.SetDeletionTimestamp(in.Policies[i].GetDeletionTimestamp())
	in.Policies[i] = p
	return nil
}

func layOverride(in *explain.Input, obj *unstructured.Unstructured, o policyv1alpha1.Override, namespace string) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, o); err != nil {
		return err
	}
	o.SetNamespace(orElse(o.GetNamespace(), namespace))
	validate.DefaultOverride(o)
	in.Overrides = slices.DeleteFunc(in.Overrides, func(other policyv1alpha1.Override) bool {
		return other.GetNamespace() == o.GetNamespace() && other.GetName() == o.GetName()
	})
	in.Overrides = append(in.Overrides, o)
	return nil
}

// orElse returns the namespace that a manifest names; cluster-wide kinds have none.
func orElse(namespace, otherwise string) string {
	if namespace == "" || otherwise == "" {
		return otherwise
	}
	return namespace
}
