package carriers

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/policies/propagation"
)

// name is the name of a policy; the namespace is empty for a cluster-wide one.
type name struct{ namespace, name string }

// Set has the policies that carry something. The zero value is empty.
type Set struct{ of map[name]bool }

// Take adds the policy that has claimed an object, and reports whether there is one.
func (s *Set) Take(obj metav1.Object) bool {
	ref, claimed := propagation.Claimed(obj)
	if !claimed {
		return false
	}
	if s.of == nil {
		s.of = map[name]bool{}
	}
	s.of[name{ref.Namespace, ref.Name}] = true
	return true
}

// Has reports whether a policy is among them.
func (s *Set) Has(namespace, of string) bool { return s.of[name{namespace, of}] }
