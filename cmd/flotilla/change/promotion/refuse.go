package promotion

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// refuse returns an error if an object of a member must not become a template.
func refuse(live *unstructured.Unstructured, skip propagation.SkipRules, cluster string) error {
	what := objectOf(live)
	owner := metav1.GetControllerOf(live)
	switch {
	case managed(live):
		work := live.GetAnnotations()[workv1alpha2.WorkNamespaceAnnotation] + "/" + live.GetAnnotations()[workv1alpha2.WorkNameAnnotation]
		return fmt.Errorf("%s is managed by a fleet already (Work %s): flotilla explain says by what", what.in(cluster), strings.Trim(work, "/"))
	case !live.GetDeletionTimestamp().IsZero():
		return fmt.Errorf("%s is being deleted", what.in(cluster))
	case owner != nil:
		return fmt.Errorf("%s belongs to %s %s: promote that", what.in(cluster), owner.Kind, owner.Name)
	case isNamespace(live):
		return fmt.Errorf("a namespace is not promoted: flotilla create namespace %s makes it in the control plane, and what is in the clusters is used as it is", what.Name)
	case !propagation.Propagates(selector.ResourceOf(live), skip):
		return fmt.Errorf("%s never goes from the control plane to clusters: it stays the cluster's own", what)
	case isToken(live):
		return fmt.Errorf("%s holds a token of the cluster's own service account: every cluster makes its own", what.in(cluster))
	}
	return nil
}

func managed(obj *unstructured.Unstructured) bool {
	return obj.GetLabels()[workv1alpha2.ManagedByKarmadaLabel] == workv1alpha2.ManagedByKarmadaLabelValue
}

func isNamespace(obj *unstructured.Unstructured) bool {
	return obj.GetAPIVersion() == "v1" && obj.GetKind() == "Namespace"
}

func isToken(obj *unstructured.Unstructured) bool {
	return obj.GetAPIVersion() == "v1" && obj.GetKind() == "Secret" && obj.Object["type"] == string(corev1.SecretTypeServiceAccountToken)
}

// checkServed returns an error unless the hub has the object's kind and its namespace.
func (p *Promotion) checkServed(ctx context.Context, live *unstructured.Unstructured) error {
	gvk := live.GroupVersionKind()
	_, err := p.o.Hub.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return p.unserved(live)
	}
	if err != nil || live.GetNamespace() == "" {
		return err
	}
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err = p.o.Hub.Get(ctx, client.ObjectKey{Name: live.GetNamespace()}, ns)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("namespace %s is not in the control plane: flotilla create namespace %s makes it, and in the clusters it is used as it is", live.GetNamespace(), live.GetNamespace())
	}
	if err == nil && !ns.DeletionTimestamp.IsZero() {
		return fmt.Errorf("namespace %s is being deleted in the control plane: try again once it is gone", live.GetNamespace())
	}
	return err
}

// unserved returns an error with what the hub needs before it can have objects of a kind.
func (p *Promotion) unserved(live *unstructured.Unstructured) error {
	gvk := live.GroupVersionKind()
	if other, err := p.o.Hub.RESTMapper().RESTMapping(gvk.GroupKind()); err == nil {
		return fmt.Errorf("the control plane serves %s only as %s, not as %s: apply the CustomResourceDefinition of cluster %s, or name the kind with that version",
			gvk.Kind, other.GroupVersionKind.GroupVersion(), gvk.GroupVersion(), p.o.Cluster)
	}
	definition := "of the kind"
	if mapping, err := p.o.Member.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
		name := mapping.Resource.Resource + "." + gvk.Group
		definition = fmt.Sprintf("%s first (flotilla promote crd %s -C %s)", name, name, p.o.Cluster)
	}
	return fmt.Errorf("the control plane does not serve %s: apply the CustomResourceDefinition %s", gvk.GroupKind(), definition)
}

// overwrite annotates a template so that it takes over existing objects in members.
func overwrite(template *unstructured.Unstructured) {
	annotations := template.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[workv1alpha2.ResourceConflictResolutionAnnotation] = workv1alpha2.ResourceConflictResolutionOverwrite
	template.SetAnnotations(annotations)
}

// pruneResident removes what a member's own components have filled in and what would be wrong
// in any other cluster.
func pruneResident(template *unstructured.Unstructured) {
	if template.GetAPIVersion() != "v1" || template.GetKind() != "PersistentVolumeClaim" {
		return
	}
	unstructured.RemoveNestedField(template.Object, "spec", "volumeName")
	annotations := template.GetAnnotations()
	for key := range annotations {
		if strings.HasPrefix(key, "pv.kubernetes.io/") || strings.HasSuffix(key, "kubernetes.io/storage-provisioner") {
			delete(annotations, key)
		}
	}
	template.SetAnnotations(annotations)
}
