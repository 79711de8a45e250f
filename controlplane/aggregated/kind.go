package aggregated

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/flotilla-io/flotilla/policies/validate"
)

// object is a pointer to an object of a kind that is served.
type object interface {
	metav1.Object
	runtime.Object
}

// names are the names of a kind, and the finalizer of its objects.
type names struct {
	resource, singular     schema.GroupResource
	shortNames, categories []string
	// finalizer is that of the one loop that cleans up after objects; empty if there is no
	// such loop. The loop may delete an object with no other finalizer in one write.
	finalizer string
}

// A kind describes how one kind is served and how its objects are written. P is the type
// of the stored version, which is also the server's internal version. On creation,
// functions get the zero P as old.
type kind[P object] struct {
	names
	// versions serve the kind.
	versions []schema.GroupVersion
	// namespaced kinds live in namespaces.
	namespaced bool
	newObject  func() P
	newList    func() runtime.Object
	// identity is the permanent id of objects; the zero value means none.
	identity validate.Identity
	// complete fills in an object before it is checked.
	complete func(obj, old P)
	// check returns errors and warnings about an object.
	check func(obj, old P) (field.ErrorList, []string)
	// checkSpec returns errors in a new or changed spec, checkStatus those in a status.
	checkSpec, checkStatus func(obj P) field.ErrorList
	// sameSpec reports whether the specs of two objects are equal.
	sameSpec func(a, b P) bool
	// keepStatus copies the status of old to obj, keepSpec all that a write to the status
	// leaves unchanged. On creation old is empty.
	keepStatus, keepSpec func(obj, old P)
	// custom kinds behave as custom resources: a write must name the version that it is
	// based on. They are nearly always written by loops, so they have no managed fields
	// until a client applies an object on the server side.
	custom bool
	// witness observes writes; it may be nil.
	witness Witness
	// tables has how each version is shown; without an entry, only name and age are.
	tables map[schema.GroupVersion]rest.TableConvertor
}
