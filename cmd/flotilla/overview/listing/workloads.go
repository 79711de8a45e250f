package listing

import (
	"cmp"
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations"
)

// Workloads are the kinds that have no effect unless a policy propagates them, and claims.
var Workloads = []schema.GroupVersionKind{
	appsv1.SchemeGroupVersion.WithKind("DaemonSet"), appsv1.SchemeGroupVersion.WithKind("Deployment"), appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
	batchv1.SchemeGroupVersion.WithKind("CronJob"), batchv1.SchemeGroupVersion.WithKind("Job"), corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
}

// rare are kinds of Kubernetes that are seldom committed.
var rare = []schema.GroupVersionKind{
	appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithKind("ReplicationController"),
}

// Metadata calls take with the metadata of all objects of a kind in namespaces.
func Metadata(ctx context.Context, hub client.Reader, gvk schema.GroupVersionKind, namespaces []string, take func(*metav1.PartialObjectMetadata)) error {
	for _, ns := range namespaces {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		err := Each(ctx, hub, list, func(obj *metav1.PartialObjectMetadata) {
			obj.SetGroupVersionKind(gvk)
			take(obj)
		}, client.InNamespace(ns))()
		if err != nil {
			return err
		}
	}
	return nil
}

// OtherWorkloads is Metadata for further kinds: rare ones of Kubernetes, and others whose replicas or components the
// fleet can interpret. It skips kinds that the user may not read.
func OtherWorkloads(ctx context.Context, hub client.Reader, namespaces []string, take func(*metav1.PartialObjectMetadata)) error {
	others, err := others(ctx, hub)
	if err != nil {
		return err
	}
	read := map[schema.GroupKind]bool{} // a kind may be known, and served, in several versions
	for _, gvk := range slices.Concat(rare, others) {
		if read[gvk.GroupKind()] {
			continue
		}
		switch err := Metadata(ctx, hub, gvk, namespaces, take); {
		case err == nil:
			read[gvk.GroupKind()] = true
		case !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err):
			return err
		}
	}
	return nil
}

// others are the kinds of others that the control plane may serve, in order: a definition of their group is there.
func others(ctx context.Context, hub client.Reader) ([]schema.GroupVersionKind, error) {
	groups := map[string]bool{}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"})
	err := Each(ctx, hub, list, func(crd *metav1.PartialObjectMetadata) {
		_, group, _ := strings.Cut(crd.Name, ".")
		groups[group] = true
	})()
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	var out []schema.GroupVersionKind
	for gvk, rules := range customizations.Table() {
		if groups[gvk.Group] && (rules.Replicas != nil || rules.Components != nil) {
			out = append(out, gvk)
		}
	}
	taught := Each(ctx, hub, &configv1alpha1.ResourceInterpreterCustomizationList{}, func(c *configv1alpha1.ResourceInterpreterCustomization) {
		gvk := schema.FromAPIVersionAndKind(c.Spec.Target.APIVersion, c.Spec.Target.Kind)
		if groups[gvk.Group] && (c.Spec.Customizations.ReplicaResource != nil || c.Spec.Customizations.ComponentResource != nil) {
			out = append(out, gvk)
		}
	})()
	if taught != nil && !apierrors.IsForbidden(taught) {
		return nil, taught
	}
	slices.SortFunc(out, func(a, b schema.GroupVersionKind) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Version, b.Version))
	})
	return out, err
}
