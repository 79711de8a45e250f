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

// server collects the stores of all kinds, and has what they need.
type server struct {
	scheme *runtime.Scheme
	getter generic.RESTOptionsGetter
	newID  func() string
	// witness observes writes of ResourceBindings; it may be nil.
	witness Witness
	// stores has the store of each kind.
	stores map[schema.GroupResource]*genericregistry.Store
	// storages has the REST storages of each version.
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
		s.storages[version][k.resource.Resource+"/status"] = &statusStore{store: &status, without: k.lighten()}
	}
	return nil
}

// mainStore serves a kind.
type mainStore struct {
	*genericregistry.Store
	names
	witness Witness // may be nil
	owner   bool    // true if Destroy ends the storage
}

var (
	_ rest.StandardStorage     = (*mainStore)(nil)
	_ rest.ShortNamesProvider  = (*mainStore)(nil)
	_ rest.CategoriesProvider  = (*mainStore)(nil)
	_ rest.ResetFieldsStrategy = (*mainStore)(nil)
)

// ShortNames are the short names of the resource for kubectl.
func (s *mainStore) ShortNames() []string { return s.shortNames }

// Categories are the groups of kinds that the kind is in.
func (s *mainStore) Categories() []string { return s.categories }

// errUnfinished is the outcome of a write that panics: its effect is not known.
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

// Destroy ends the storage, which all versions share, once.
func (s *mainStore) Destroy() {
	if s.owner {
		s.Store.Destroy()
	}
}

// statusStore serves the status of a kind: to be read, updated and patched.
type statusStore struct {
	store *genericregistry.Store
	// without returns an object without its spec, or the object itself.
	without func(runtime.Object) runtime.Object
}

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
	if byOwn(ctx) {
		objInfo = statusInfo{objInfo, s.without}
	}
	return s.store.Update(ctx, name, objInfo, createValidation, updateValidation, forceAllowCreate, options)
}

// statusInfo builds the new object of a loop's write to the status from the old object
// without its spec. The spec is most of the object and does not change, so a patch need not
// convert it to JSON and back.
type statusInfo struct {
	rest.UpdatedObjectInfo
	without func(runtime.Object) runtime.Object
}

// UpdatedObject returns the new object. The strategy restores the spec of old.
func (i statusInfo) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	return i.UpdatedObjectInfo.UpdatedObject(ctx, i.without(old))
}

// lighten returns a function that copies an object without its spec, or returns it unchanged
// if it has managed fields. The copy shares parts with the object.
func (k kind[P]) lighten() func(runtime.Object) runtime.Object {
	return func(old runtime.Object) runtime.Object {
		obj, ok := old.(P)
		if !ok || !k.custom || len(obj.GetManagedFields()) > 0 {
			return old
		}
		out := k.newObject()
		to, into := metaOf(out)
		from, found := metaOf(obj)
		if !into || !found {
			return old
		}
		*to = *from
		k.keepStatus(out, obj)
		return out
	}
}

// metaOf returns the metadata of an object, and false if it is not an ObjectMeta.
func metaOf(obj metav1.Object) (*metav1.ObjectMeta, bool) {
	accessor, ok := obj.(metav1.ObjectMetaAccessor)
	if !ok {
		return nil, false
	}
	out, ok := accessor.GetObjectMeta().(*metav1.ObjectMeta)
	return out, ok
}

// GetResetFields returns the fields that a write to the status does not change.
func (s *statusStore) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.store.GetResetFields()
}

// ConvertToTable shows objects as the kind itself does.
func (s *statusStore) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return s.store.ConvertToTable(ctx, object, options)
}
