package health

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// namespaces is the kind whose objects get Works without a policy and a binding, unless they opt out; see unbound.
var namespaces = schema.GroupKind{Kind: "Namespace"}

// namespace returns a Namespace, nil if there is none. It is the cache's own: do not change it.
func (r Deps) namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	namespace := &corev1.Namespace{}
	err := r.Hub.Get(ctx, client.ObjectKey{Name: name}, namespace, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read namespace %s: %w", name, err)
	}
	return namespace, nil
}

// unbound reports whether an object is a Namespace that is synced to clusters without a policy.
func (r Deps) unbound(ctx context.Context, id inventory.ID) (bool, error) {
	if id.GroupKind != namespaces {
		return false, nil
	}
	namespace, err := r.namespace(ctx, id.Name)
	return namespace == nil || !propagation.OptsOut(namespace.Labels), err
}

// namespacePart returns the health of a Namespace that the owner applied, in the clusters that have a Work of it, and
// whether it is synced to clusters at all.
func (r Deps) namespacePart(ctx context.Context, owner client.ObjectKey, id inventory.ID, clusters []string, silent rollup.Silences) (rollup.Part, bool, error) {
	part := rollup.Part{Object: objectName(id)}
	namespace, err := r.namespace(ctx, id.Name)
	if err != nil || namespace == nil || len(clusters) == 0 {
		return part, false, err
	}
	if by, known := inventory.OwnerOf(namespace); !known || by != owner || !plan.SyncsNamespace(namespace, r.Skip) {
		return part, false, nil
	}
	works, err := r.worksOfNamespace(ctx, id.Name, clusters)
	if err != nil {
		return part, false, err
	}
	for _, w := range works {
		if cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace); ok {
			part.Clusters = append(part.Clusters, rollup.NamespacePart(cluster, w, silent))
		}
	}
	if len(works) == 0 {
		part.State, part.Reason = rollup.Progressing, "not sent to any cluster yet"
	}
	return part, true, nil
}

// worksOfNamespace returns the Works of a Namespace in the clusters that have one, by the name of today or
// the former one. They are the cache's own: do not change them.
func (r Deps) worksOfNamespace(ctx context.Context, name string, clusters []string) ([]*workv1alpha1.Work, error) {
	var works []*workv1alpha1.Work
	for _, cluster := range clusters {
		for _, called := range []string{workv1alpha2.WorkName(namespaces.Kind, name, ""), workv1alpha2.FormerWorkName(namespaces.Kind, name, "")} {
			work := &workv1alpha1.Work{}
			err := r.Hub.Get(ctx, client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: called}, work, client.UnsafeDisableDeepCopy)
			if client.IgnoreNotFound(err) != nil {
				return nil, fmt.Errorf("read the work of namespace %s for cluster %s: %w", name, cluster, err)
			}
			if err == nil {
				works = append(works, work)
				break
			}
		}
	}
	return works, nil
}
