package aggregated

import (
	"context"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/validate"
)

// strategy is how Clusters are written, but for their status.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	now func() time.Time
}

func newStrategy(scheme *runtime.Scheme, now func() time.Time) strategy {
	return strategy{ObjectTyper: scheme, NameGenerator: names.SimpleNameGenerator, now: now}
}

// NamespaceScoped is false: Clusters are in no namespace.
func (strategy) NamespaceScoped() bool { return false }

// AllowCreateOnUpdate is false: PUT changes what exists.
func (strategy) AllowCreateOnUpdate() bool { return false }

// AllowUnconditionalUpdate is true: a write without resourceVersion wins.
func (strategy) AllowUnconditionalUpdate() bool { return true }

// GetResetFields says that the status is written elsewhere.
func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields("status")
}

// PrepareForCreate drops the status and sets defaults.
func (s strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	cluster := obj.(*clusterv1alpha1.Cluster)
	cluster.Status = clusterv1alpha1.ClusterStatus{}
	cluster.Generation = 1
	validate.DefaultCluster(cluster, true, s.now())
}

// PrepareForUpdate keeps the status and counts changes of the spec.
func (s strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	cluster, before := obj.(*clusterv1alpha1.Cluster), old.(*clusterv1alpha1.Cluster)
	cluster.Status = before.Status
	validate.DefaultCluster(cluster, false, s.now())
	if !apiequality.Semantic.DeepEqual(cluster.Spec, before.Spec) {
		cluster.Generation = before.Generation + 1
	}
}

// Validate lists what is wrong with a new Cluster.
func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	errs, _ := validate.Cluster(obj.(*clusterv1alpha1.Cluster), nil)
	return errs
}

// WarningsOnCreate lists what is unwise about a new Cluster.
func (strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	_, warnings := validate.Cluster(obj.(*clusterv1alpha1.Cluster), nil)
	return warnings
}

// ValidateUpdate lists what is wrong with a changed Cluster.
func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	errs, _ := validate.Cluster(obj.(*clusterv1alpha1.Cluster), old.(*clusterv1alpha1.Cluster))
	return errs
}

// WarningsOnUpdate lists what is unwise about a changed Cluster.
func (strategy) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	_, warnings := validate.Cluster(obj.(*clusterv1alpha1.Cluster), old.(*clusterv1alpha1.Cluster))
	return warnings
}

// Canonicalize changes nothing: that was done before validation.
func (strategy) Canonicalize(runtime.Object) {}

// statusStrategy is how the status of a Cluster is written: the spec stays, and
// what a loop observed is not judged.
type statusStrategy struct{ strategy }

// GetResetFields says that the spec is written elsewhere.
func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields("spec")
}

// PrepareForUpdate keeps the spec.
func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	obj.(*clusterv1alpha1.Cluster).Spec = old.(*clusterv1alpha1.Cluster).Spec
}

// WarningsOnUpdate is empty.
func (statusStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// ValidateUpdate accepts every status.
func (statusStrategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}

func resetFields(name string) map[fieldpath.APIVersion]*fieldpath.Set {
	version := fieldpath.APIVersion(clusterv1alpha1.GroupVersion.String())
	return map[fieldpath.APIVersion]*fieldpath.Set{version: fieldpath.NewSet(fieldpath.MakePathOrDie(name))}
}
