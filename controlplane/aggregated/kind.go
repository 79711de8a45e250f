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

// names are what a kind is called, and who holds its objects.
type names struct {
	resource, singular     schema.GroupResource
	shortNames, categories []string
	// finalizer is that of the one loop that ends objects; empty if there is no
	// such loop. It may delete in one write what nobody else holds.
	finalizer string
}

// A kind is what is served of one kind, and how its objects are written. P is
// the type of the version that is stored; it is also what the server works with.
// Functions get old as the zero P on creation.
type kind[P object] struct {
	names
	// versions serve the kind.
	versions []schema.GroupVersion
	// namespaced kinds live in namespaces.
	namespaced bool
	newObject  func() P
	newList    func() runtime.Object
	// identity is the id that objects have; the zero value is none.
	identity validate.Identity
	// complete fills in an object before it is checked.
	complete func(obj, old P)
	// check lists what is wrong with an object, and what is unwise.
	check func(obj, old P) (field.ErrorList, []string)
	// checkSpec lists what is wrong with a spec that is new, checkStatus what is
	// wrong with a status.
	checkSpec, checkStatus func(obj P) field.ErrorList
	// sameSpec reports whether the specs of two objects are equal.
	sameSpec func(a, b P) bool
	// keepStatus gives obj the status of old, keepSpec all that a write to the
	// status leaves alone. On creation old is empty.
	keepStatus, keepSpec func(obj, old P)
	// custom kinds pass as custom resources: a write must name the version that it
	// is based on. They are written by loops nearly always, so there is no record
	// of who wrote which field until somebody applies an object.
	custom bool
	// witness sees writes begin and end; nil if nobody asks.
	witness Witness
	// tables are how each version is shown; nil shows name and age.
	tables map[schema.GroupVersion]rest.TableConvertor
}
