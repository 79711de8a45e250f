package overlays

import (
	"context"
	"fmt"
	"maps"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Values are the ConfigMaps and Secrets in files, for variables. The zero value is empty. It is a client.Reader whose
// lists are empty.
type Values struct {
	configs map[client.ObjectKey]*corev1.ConfigMap
	secrets map[client.ObjectKey]*corev1.Secret
}

// Add adds an object, in the given namespace if it has none. It ignores objects of other kinds, and those that cannot
// be read or are encrypted.
func (v *Values) Add(fields map[string]any, namespace string) {
	_, encrypted := fields["sops"]
	if fields["apiVersion"] != "v1" || encrypted {
		return
	}
	switch fields["kind"] {
	case "ConfigMap":
		config := &corev1.ConfigMap{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, config) == nil {
			put(&v.configs, config, namespace)
		}
	case "Secret":
		secret := &corev1.Secret{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, secret) != nil {
			return
		}
		for name, value := range secret.StringData {
			if secret.Data == nil {
				secret.Data = map[string][]byte{}
			}
			secret.Data[name] = []byte(value)
		}
		put(&v.secrets, secret, namespace)
	}
}

func put[T client.Object](into *map[client.ObjectKey]T, obj T, namespace string) {
	if *into == nil {
		*into = map[client.ObjectKey]T{}
	}
	if obj.GetNamespace() == "" {
		obj.SetNamespace(namespace)
	}
	(*into)[client.ObjectKeyFromObject(obj)] = obj
}

// missing returns the missing objects that a Kustomization needs for its variables.
func (v Values) missing(ks *kustomizev1.Kustomization) []string {
	if ks.Spec.PostBuild == nil {
		return nil
	}
	var out []string
	for _, ref := range ks.Spec.PostBuild.SubstituteFrom {
		key := client.ObjectKey{Namespace: ks.Namespace, Name: ref.Name}
		known := v.secrets[key] != nil
		if ref.Kind == "ConfigMap" {
			known = v.configs[key] != nil
		}
		if !known && !ref.Optional {
			out = append(out, fmt.Sprintf("%s %s", ref.Kind, key))
		}
	}
	return out
}

// Get implements client.Reader.
func (v Values) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	switch out := obj.(type) {
	case *corev1.ConfigMap:
		if known := v.configs[key]; known != nil {
			out.Data = maps.Clone(known.Data)
			return nil
		}
	case *corev1.Secret:
		if known := v.secrets[key]; known != nil {
			out.Data = maps.Clone(known.Data)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// List implements client.Reader.
func (Values) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }
