package aggregated

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// newStorage returns the stores behind `clusters` and `clusters/status`.
func newStorage(scheme *runtime.Scheme, getter generic.RESTOptionsGetter, now func() time.Time) (*genericregistry.Store, *statusStore, error) {
	main := newStrategy(scheme, now)
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &clusterv1alpha1.Cluster{} },
		NewListFunc:               func() runtime.Object { return &clusterv1alpha1.ClusterList{} },
		DefaultQualifiedResource:  clusterv1alpha1.Resource("clusters"),
		SingularQualifiedResource: clusterv1alpha1.Resource("cluster"),
		CreateStrategy:            main,
		UpdateStrategy:            main,
		DeleteStrategy:            main,
		ResetFieldsStrategy:       main,
		TableConvertor:            table{},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: getter}); err != nil {
		return nil, nil, err
	}
	status := *store // writes through the same storage, by other rules
	status.UpdateStrategy = statusStrategy{main}
	status.ResetFieldsStrategy = statusStrategy{main}
	return store, &statusStore{store: &status}, nil
}

// statusStore serves `clusters/status`: to be read, updated and patched.
type statusStore struct{ store *genericregistry.Store }

var (
	_ rest.Patcher             = (*statusStore)(nil)
	_ rest.ResetFieldsStrategy = (*statusStore)(nil)
)

// New returns an empty Cluster.
func (s *statusStore) New() runtime.Object { return s.store.New() }

// Destroy leaves the storage to the store that it is shared with.
func (s *statusStore) Destroy() {}

// Get reads a Cluster.
func (s *statusStore) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return s.store.Get(ctx, name, options)
}

// Update writes the status of a Cluster that exists.
func (s *statusStore) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc,
	updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	const forceAllowCreate = false // a status alone makes no Cluster
	return s.store.Update(ctx, name, objInfo, createValidation, updateValidation, forceAllowCreate, options)
}

// GetResetFields says which fields a write to the status does not touch.
func (s *statusStore) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.store.GetResetFields()
}

// ConvertToTable shows Clusters as `clusters` does.
func (s *statusStore) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return s.store.ConvertToTable(ctx, object, options)
}
