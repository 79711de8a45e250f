package aggregated

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	storagenames "k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// server is what kinds are served with.
type server struct {
	scheme *runtime.Scheme
	getter generic.RESTOptionsGetter
	newID  func() string
	// witness sees writes of bindings.
	witness Witness
	// stores collects where kinds are kept.
	stores map[schema.GroupResource]*genericregistry.Store
	// storages collects what serves each version.
	storages map[schema.GroupVersion]map[string]rest.Storage
}

// serve adds the stores of a kind, and of its status, to those of its versions.
func serve[P object](s *server, k kind[P]) error {
	main := strategy[P]{ObjectTyper: s.scheme, NameGenerator: storagenames.SimpleNameGenerator, kind: k, newID: s.newID}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return k.newObject() },
		NewListFunc:               k.newList,
		DefaultQualifiedResource:  k.resource,
		SingularQualifiedResource: k.singular,
		CreateStrategy:            main,
		UpdateStrategy:            main,
		DeleteStrategy:            main,
		ResetFieldsStrategy:       main,
		TableConvertor:            rest.NewDefaultTableConvertor(k.resource),
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: s.getter}); err != nil {
		return err
	}
	s.stores[k.resource] = store
	for i, version := range k.versions {
		shown := *store // all versions read and write the same storage
		if t := k.tables[version]; t != nil {
			shown.TableConvertor = t
		}
		status := shown
		status.UpdateStrategy = statusStrategy[P]{main}
		status.ResetFieldsStrategy = statusStrategy[P]{main}
		if s.storages[version] == nil {
			s.storages[version] = map[string]rest.Storage{}
		}
		s.storages[version][k.resource.Resource] = &mainStore{Store: &shown, names: k.names, witness: k.witness, owner: i == 0}
		s.storages[version][k.resource.Resource+"/status"] = &statusStore{store: &status}
	}
	return nil
}

// mainStore serves a kind.
type mainStore struct {
	*genericregistry.Store
	names
	witness Witness // nil if nobody asks
	owner   bool    // of the storage
}

var (
	_ rest.StandardStorage     = (*mainStore)(nil)
	_ rest.ShortNamesProvider  = (*mainStore)(nil)
	_ rest.CategoriesProvider  = (*mainStore)(nil)
	_ rest.ResetFieldsStrategy = (*mainStore)(nil)
)

// ShortNames are what kubectl takes for the resource.
func (s *mainStore) ShortNames() []string { return s.shortNames }

// Categories are the groups of kinds that the kind is in.
func (s *mainStore) Categories() []string { return s.categories }

// errUnfinished is how a write ends that panics: nobody knows what it did.
var errUnfinished = errors.New("the write did not come to its end")

// Create makes an object.
func (s *mainStore) Create(ctx context.Context, obj runtime.Object, createValidation rest.ValidateObjectFunc, options *metav1.CreateOptions) (out runtime.Object, err error) {
	if s.witness == nil {
		return s.Store.Create(ctx, obj, createValidation, options)
	}
	err = errUnfinished
	ctx, end := s.witness(ctx)
	defer func() { end(out, err) }()
	out, err = s.Store.Create(ctx, obj, createValidation, options)
	return out, err
}

// Update changes an object.
func (s *mainStore) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc,
	updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions,
) (out runtime.Object, created bool, err error) {
	if s.witness == nil {
		return s.Store.Update(ctx, name, objInfo, createValidation, updateValidation, forceAllowCreate, options)
	}
	err = errUnfinished
	ctx, end := s.witness(ctx)
	defer func() { end(out, err) }()
	out, created, err = s.Store.Update(ctx, name, objInfo, createValidation, updateValidation, forceAllowCreate, options)
	return out, created, err
}

// Destroy ends the storage once, for all versions.
func (s *mainStore) Destroy() {
	if s.owner {
		s.Store.Destroy()
	}
}

// statusStore serves the status of a kind: to be read, updated and patched.
type statusStore struct{ store *genericregistry.Store }

var (
	_ rest.Patcher             = (*statusStore)(nil)
	_ rest.ResetFieldsStrategy = (*statusStore)(nil)
)

// New returns an empty object.
func (s *statusStore) New() runtime.Object { return s.store.New() }

// Destroy leaves the storage to the store that it is shared with.
func (s *statusStore) Destroy() {}

// Get reads an object.
func (s *statusStore) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return s.store.Get(ctx, name, options)
}

// Update writes the status of an object that exists.
func (s *statusStore) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc,
	updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	const forceAllowCreate = false // a status alone makes no object
	return s.store.Update(ctx, name, objInfo, createValidation, updateValidation, forceAllowCreate, options)
}

// GetResetFields says which fields a write to the status does not touch.
func (s *statusStore) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.store.GetResetFields()
}

// ConvertToTable shows objects as the kind itself does.
func (s *statusStore) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return s.store.ConvertToTable(ctx, object, options)
}
