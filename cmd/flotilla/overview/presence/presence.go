// Package presence reports whether what somebody names is on a server, so that a typo does
// not look like quiet.
//
// In go a server and a name; out comes whether it is there. Who may not know, or is not
// answered, does not read that it is missing.
package presence

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// Namespace reports whether the namespace may be on the server; the empty name stands for all
// of them, and always is.
func Namespace(ctx context.Context, set kubernetes.Interface, name string) bool {
	if name == "" {
		return true
	}
	_, err := set.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	return !apierrors.IsNotFound(err)
}

// Object reports whether an object may be on the server. Word is its kind as people write
// it; one that the server does not serve has no objects there.
func Object(ctx context.Context, server cmdutil.Factory, word, namespace, name string) bool {
	mapper, err := server.ToRESTMapper()
	if err != nil {
		return true
	}
	gvk, err := find(mapper, word)
	if meta.IsNoMatchError(err) {
		return false
	}
	if err != nil {
		return true
	}
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return true
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespace = ""
	}
	objects, err := server.DynamicClient()
	if err != nil {
		return true
	}
	_, err = objects.Resource(mapping.Resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	return !apierrors.IsNotFound(err)
}

// Kind is the kind that a word means on a server; one that it does not know is taken as it
// is, as another may know it.
func Kind(server cmdutil.Factory, word string) string {
	mapper, err := server.ToRESTMapper()
	if err != nil {
		return word
	}
	gvk, err := find(mapper, word)
	if err != nil {
		return word
	}
	return gvk.Kind
}

// Named is an object as a server calls it that people name by a word and a name, without content. It errs for a word that the server
// does not know.
func Named(server cmdutil.Factory, word, namespace, name string) (*unstructured.Unstructured, error) {
	mapper, err := server.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	gvk, err := find(mapper, word)
	if err != nil {
		return nil, err
	}
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(mapping.GroupVersionKind)
	if obj.SetName(name); mapping.Scope.Name() != meta.RESTScopeNameRoot {
		obj.SetNamespace(namespace)
	}
	return obj, nil
}

// find returns the kind that a word means: deployment, deploy, deployments.v1.apps.
func find(mapper meta.RESTMapper, word string) (schema.GroupVersionKind, error) {
	versioned, plain := schema.ParseResourceArg(strings.ToLower(word))
	if versioned != nil {
		if gvk, err := mapper.KindFor(*versioned); err == nil {
			return gvk, nil
		}
	}
	return mapper.KindFor(plain.WithVersion(""))
}
