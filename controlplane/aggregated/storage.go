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
		s.storages[version][k.resource.Resource+"/status"] = &statusStore{store: &status, without: k.lighten()}
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
type statusStore struct {
	store *genericregistry.Store
	// without returns an object without its spec, or as it is.
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

// statusInfo makes the new object of an own loop's write to the status out of an old one without its spec: that is most of
// it, stays, and is spared the way to JSON and back that a patch takes.
type statusInfo struct {
	rest.UpdatedObjectInfo
	without func(runtime.Object) runtime.Object
}

// UpdatedObject returns the new object, which the strategy gives the spec of old.
func (i statusInfo) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	return i.UpdatedObjectInfo.UpdatedObject(ctx, i.without(old))
}

// lighten returns what leaves the spec of an object out, where nobody is on record for fields of it. What it returns
// shares parts with the object.
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

// metaOf returns an object's metadata; false where it has it in another way than all do.
func metaOf(obj metav1.Object) (*metav1.ObjectMeta, bool) {
	accessor, ok := obj.(metav1.ObjectMetaAccessor)
	if !ok {
		return nil, false
	}
	out, ok := accessor.GetObjectMeta().(*metav1.ObjectMeta)
	return out, ok
}

// GetResetFields says which fields a write to the status does not touch.
func (s *statusStore) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.store.GetResetFields()
}

// ConvertToTable shows objects as the kind itself does.
func (s *statusStore) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return s.store.ConvertToTable(ctx, object, options)
}
