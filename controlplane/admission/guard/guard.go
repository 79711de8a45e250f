package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/dynamic"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/author"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// Guard refuses deletions that would stop workloads in clusters although nobody asked for
// that: of the namespace that holds a cluster's Works, of Works that are still needed, of
// a cluster while the control plane waits after a restore, and of the definitions of the
// control plane's own kinds. A refusal holds for every user, administrators too.
type Guard struct {
	*admission.Handler
	hub dynamic.Interface
	own map[string]bool
}

var (
	_ admission.ValidationInterface     = (*Guard)(nil)
	_ admission.InitializationValidator = (*Guard)(nil)
)

// New returns the plugin. kinds are the names of the control plane's own
// CustomResourceDefinitions.
func New(kinds []string) *Guard {
	g := &Guard{Handler: admission.NewHandler(admission.Delete), own: map[string]bool{}}
	for _, name := range kinds {
		g.own[name] = true
	}
	return g
}

// SetDynamicClient sets the client. The server calls it with a client of its own.
func (g *Guard) SetDynamicClient(hub dynamic.Interface) { g.hub = hub }

// ValidateInitialization is called when the server is built.
func (g *Guard) ValidateInitialization() error {
	if g.hub == nil {
		return errors.New("no client")
	}
	return nil
}

// Validate refuses a deletion that would do harm. It reads from the store, not from a
// cache, because a wrong decision is not corrected later.
func (g *Guard) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" {
		return nil
	}
	var why, err error
	switch a.GetResource().GroupResource() {
	case schema.GroupResource{Resource: "namespaces"}:
		why, err = g.namespace(ctx, a.GetName())
	case schema.GroupResource{Group: workv1alpha1.GroupName, Resource: "works"}:
		why, err = g.work(ctx, a)
	case schema.GroupResource{Group: clusterv1alpha1.GroupName, Resource: "clusters"}:
		why, err = g.cluster(ctx, a)
	case schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}:
		why = g.definition(a)
	}
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if why != nil {
		return admission.NewForbidden(a, why)
	}
	return nil
}

// namespace returns why a namespace must not be deleted; nil if it may be.
func (g *Guard) namespace(ctx context.Context, name string) (why, err error) {
	if name == workv1alpha2.NamespaceKarmadaSystem || name == workv1alpha2.NamespaceKarmadaCluster {
		return errors.New("the control plane keeps there what it needs to reach its clusters"), nil
	}
	cluster, lives, err := g.clusterOf(ctx, name)
	if err != nil || !lives {
		return nil, err
	}
	return fmt.Errorf("it holds all that the fleet runs in cluster %s, which would be removed there; to take the cluster out of the fleet: flotilla unjoin %s", cluster, cluster), nil
}

// cluster returns why a cluster must not be deleted; nil if it may be. Deleting it removes
// what the fleet runs there, and while the control plane waits after a restore from an
// older backup it does not know all of that. A cluster that is not ready loses nothing.
func (g *Guard) cluster(ctx context.Context, a admission.Attributes) (why, err error) {
	object, ok := a.GetOldObject().(metav1.Object)
	if !ok {
		return nil, nil
	}
	found, err := g.find(ctx, clusterv1alpha1.GroupVersion.WithResource("clusters"), "", object.GetName())
	if err != nil || found == nil {
		return nil, err
	}
	cluster := &clusterv1alpha1.Cluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, cluster); err != nil {
		return nil, fmt.Errorf("read cluster %s: %w", object.GetName(), err)
	}
	if !meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady) {
		return nil, nil
	}
	system, err := g.find(ctx, corev1.SchemeGroupVersion.WithResource("namespaces"), "", metav1.NamespaceSystem)
	if err != nil || system == nil {
		return nil, err
	}
	history := hubclaim.ParseHistory(system.GetAnnotations()[clusterv1alpha1.HistoryAnnotation])
	if history.Hold.Of(cluster.Name) == nil {
		return nil, nil
	}
	return errors.New("the control plane was set back to an older backup, and removes nothing from the cluster before somebody has said flotilla resume hub; with --dry-run that says what would be done"), nil
}

// clusterOf returns the cluster of an execution namespace, and whether that cluster exists
// and is not being deleted.
func (g *Guard) clusterOf(ctx context.Context, namespace string) (name string, lives bool, err error) {
	name, ok := workv1alpha2.ClusterOfExecutionNamespace(namespace)
	if !ok {
		return "", false, nil
	}
	cluster, err := g.find(ctx, clusterv1alpha1.GroupVersion.WithResource("clusters"), "", name)
	return name, cluster != nil && cluster.GetDeletionTimestamp() == nil, err
}

// work returns why a Work must not be deleted; nil if it may be. The control plane itself
// may delete any Work.
func (g *Guard) work(ctx context.Context, a admission.Attributes) (why, err error) {
	work, ok := a.GetOldObject().(metav1.Object)
	if !ok || a.GetUserInfo() == nil || author.Own(a.GetUserInfo().GetName()) {
		return nil, nil
	}
	user, err := g.userOf(ctx, work)
	if err != nil || user == "" {
		return nil, err
	}
	cluster, lives, err := g.clusterOf(ctx, work.GetNamespace())
	if err != nil || !lives {
		return nil, err
	}
	return fmt.Errorf("it is made for %s: what it holds would be taken down in cluster %s and made again; change that, or what places it, instead", user, cluster), nil
}

// userOf names the template or namespace that a Work was made for and that still needs it;
// empty if there is none.
func (g *Guard) userOf(ctx context.Context, work metav1.Object) (string, error) {
	if owner := metav1.GetControllerOfNoCopy(work); owner != nil && owner.APIVersion == "v1" && owner.Kind == "Namespace" {
		ns, err := g.find(ctx, corev1.SchemeGroupVersion.WithResource("namespaces"), "", owner.Name)
		if err != nil || ns == nil || ns.GetUID() != owner.UID || ns.GetDeletionTimestamp() != nil {
			return "", err
		}
		return "the Namespace " + owner.Name, nil
	}
	labels, notes := work.GetLabels(), work.GetAnnotations()
	if id := labels[workv1alpha2.ResourceBindingPermanentIDLabel]; id != "" {
		binding, err := g.find(ctx, workv1alpha2.GroupVersion.WithResource("resourcebindings"),
			notes[workv1alpha2.ResourceBindingNamespaceAnnotationKey], notes[workv1alpha2.ResourceBindingNameAnnotationKey])
		if err != nil || binding == nil || binding.GetLabels()[workv1alpha2.ResourceBindingPermanentIDLabel] != id {
			return "", err
		}
		return placedBy(binding, &workv1alpha2.ResourceBinding{}, work.GetNamespace())
	}
	if id := labels[workv1alpha2.ClusterResourceBindingPermanentIDLabel]; id != "" {
		binding, err := g.find(ctx, workv1alpha2.GroupVersion.WithResource("clusterresourcebindings"), "", notes[workv1alpha2.ClusterResourceBindingAnnotationKey])
		if err != nil || binding == nil || binding.GetLabels()[workv1alpha2.ClusterResourceBindingPermanentIDLabel] != id {
			return "", err
		}
		return placedBy(binding, &workv1alpha2.ClusterResourceBinding{}, work.GetNamespace())
	}
	return "", nil
}

// placedBy names the template of a binding that is placed in the cluster of an execution
// namespace; empty if it is not.
func placedBy(found *unstructured.Unstructured, b workv1alpha2.Binding, namespace string) (string, error) {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, b); err != nil {
		return "", fmt.Errorf("read %s %s: %w", found.GetKind(), found.GetName(), err)
	}
	if found.GetDeletionTimestamp() != nil {
		return "", nil
	}
	spec := b.BindingSpec()
	named := slices.Clone(spec.Clusters)
	for _, other := range spec.RequiredBy {
		named = append(named, other.Clusters...)
	}
	for _, target := range named {
		if workv1alpha2.ExecutionNamespace(target.Name) == namespace {
			ref := spec.Resource
			if ref.Namespace == "" {
				return ref.Kind + " " + ref.Name, nil
			}
			return ref.Kind + " " + ref.Namespace + "/" + ref.Name, nil
		}
	}
	return "", nil
}

// definition returns why a CustomResourceDefinition must not be deleted; nil if it may be.
func (g *Guard) definition(a admission.Attributes) error {
	name := a.GetName()
	if object, ok := a.GetOldObject().(metav1.Object); ok { // the deletion of a collection has no name
		name = object.GetName()
	}
	if !g.own[name] {
		return nil
	}
	return errors.New("the control plane is made of it: all objects of the kind would go, and what they brought to clusters")
}

// find reads an object; nil if it is not there.
func (g *Guard) find(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	if name == "" {
		return nil, nil
	}
	obj, err := g.hub.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", resource.Resource, name, err)
	}
	return obj, nil
}
