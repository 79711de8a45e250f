package health

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/override"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// mostIndexes is how many indexes are kept: one of the policies in the cache, and one of those that were read live.
// The two may differ for a moment.
const mostIndexes = 2

// indexes keeps the latest indexes of all policies and overrides. An index is used again as long as the objects and
// their resource versions are the same. It is safe for use by several goroutines.
type indexes struct {
	mu   sync.Mutex
	kept []*indexed // the latest first
}

// indexed finds policies and overrides by what they select.
type indexed struct {
	directory *propagation.Directory
	overrides *override.Index
	// policiesAt and overridesAt are the versions of the objects in the index.
	policiesAt, overridesAt versions
}

// versions are the resource versions of objects of both scopes.
type versions map[identity]string

type identity struct {
	namespace, name string
	uid             types.UID
}

func identityOf(obj metav1.Object) identity {
	return identity{obj.GetNamespace(), obj.GetName(), obj.GetUID()}
}

func versionsOf[T metav1.Object](list []T) versions {
	out := make(versions, len(list))
	for _, obj := range list {
		out[identityOf(obj)] = obj.GetResourceVersion()
	}
	return out
}

// areOf reports whether the versions are those of exactly these objects. The order does not matter, as a cache lists
// objects in any order.
func areOf[T metav1.Object](at versions, list []T) bool {
	if len(at) != len(list) {
		return false
	}
	for _, obj := range list {
		if is, known := at[identityOf(obj)]; !known || is != obj.GetResourceVersion() {
			return false
		}
	}
	return true
}

// of returns an index of these policies and overrides, which must not be changed afterwards.
func (x *indexes) of(policies []policyv1alpha1.Policy, overrides []policyv1alpha1.Override, skip propagation.SkipRules) *indexed {
	x.mu.Lock()
	defer x.mu.Unlock() // held while an index is made, as concurrent callers need the same one
	same := func(i *indexed) bool { return areOf(i.policiesAt, policies) && areOf(i.overridesAt, overrides) }
	if n := slices.IndexFunc(x.kept, same); n >= 0 {
		found := x.kept[n]
		x.kept = slices.Insert(slices.Delete(x.kept, n, n+1), 0, found)
		return found
	}
	made := &indexed{
		directory: propagation.NewDirectory(policies, overrides, skip), overrides: &override.Index{},
		policiesAt: versionsOf(policies), overridesAt: versionsOf(overrides),
	}
	for _, o := range overrides {
		made.overrides.Set(o)
	}
	x.kept = slices.Insert(x.kept, 0, made)
	x.kept = x.kept[:min(len(x.kept), mostIndexes)]
	return made
}
