// Package kinds knows the kinds of objects that an agent deals with, on either
// side.
//
// Nothing goes in; out come a scheme and a mapper of these few kinds, newly made on
// each call. Discovery is not asked: an agent starts without its hub. The
// package has no kind that an agent does not need: each registered type costs
// memory.
package kinds

import (
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

// Scheme returns a scheme of the kinds. It panics when two packages register
// different types for one kind, which no input can bring about.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	builder := runtime.NewSchemeBuilder(
		authorizationv1.AddToScheme, certificatesv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme,
		clusterv1alpha1.AddToScheme, configv1alpha1.AddToScheme, workv1alpha1.AddToScheme,
	)
	if err := builder.AddToScheme(s); err != nil {
		panic(fmt.Errorf("register kinds: %w", err))
	}
	return s
}

// Mapper returns how the kinds are served, which is the same everywhere.
func Mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	add := func(gvk schema.GroupVersionKind, scope meta.RESTScope) {
		m.Add(gvk, scope)
		gvk.Kind += "List" // a cache asks for the scope of a list by its kind
		m.Add(gvk, scope)
	}
	core, rbac := corev1.SchemeGroupVersion, rbacv1.SchemeGroupVersion
	for _, gvk := range []schema.GroupVersionKind{
		core.WithKind("Secret"), core.WithKind("ConfigMap"), core.WithKind("ServiceAccount"), core.WithKind("Service"), core.WithKind("Event"),
		coordinationv1.SchemeGroupVersion.WithKind("Lease"),
		workv1alpha1.GroupVersion.WithKind("Work"),
	} {
		add(gvk, meta.RESTScopeNamespace)
	}
	for _, gvk := range []schema.GroupVersionKind{
		core.WithKind("Namespace"),
		rbac.WithKind("ClusterRole"), rbac.WithKind("ClusterRoleBinding"),
		certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"),
		clusterv1alpha1.GroupVersion.WithKind("Cluster"),
		configv1alpha1.GroupVersion.WithKind("ResourceInterpreterCustomization"),
		configv1alpha1.GroupVersion.WithKind("ResourceInterpreterWebhookConfiguration"),
	} {
		add(gvk, meta.RESTScopeRoot)
	}
	return m
}
