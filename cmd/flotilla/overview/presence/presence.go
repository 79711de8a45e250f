// Package presence reports whether an object that a user names is on a server, so that a typo does
// not look like an object without Events.
//
// In go a server and a name; out comes whether the object is there. If the user may not read it, or
// the server does not answer, it is not reported as missing.
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

// Namespace reports whether the namespace may be on the server. The empty name means all namespaces,
// for which it returns true.
func Namespace(ctx context.Context, set kubernetes.Interface, name string) bool {
	if name == "" {
		return true
	}
	_, err := set.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	return !apierrors.IsNotFound(err)
}

// Object reports whether an object may be on the server. word is its kind as people write it. A kind
// that the server does not serve has no objects there.
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

// Kind returns the kind for a word on a server. It returns an unknown word unchanged, because another
// server may know it.
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

// Named returns an object without content, with the server's kind for a word. It returns an error for a word that
// the server does not know.
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

// find returns the kind for a word such as deployment, deploy or deployments.v1.apps.
func find(mapper meta.RESTMapper, word string) (schema.GroupVersionKind, error) {
	versioned, plain := schema.ParseResourceArg(strings.ToLower(word))
	if versioned != nil {
		if gvk, err := mapper.KindFor(*versioned); err == nil {
			return gvk, nil
		}
	}
	return mapper.KindFor(plain.WithVersion(""))
}
