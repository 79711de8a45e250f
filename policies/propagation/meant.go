package propagation

import (
	"cmp"
	"fmt"
	"strings"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// mostLike is how many objects of a kind are compared with the name in a selector; among more nothing is suggested.
const mostLike = 5000

// Misnamed returns a text about the selector of a policy that names an object which does not exist, and the object that it
// may mean: "it names Deployment shop/wbe (did you mean Deployment shop/web?)". It is empty where none is near. each calls
// yield for the objects of a selector's kind that the policy may carry, until that returns false.
func Misnamed(selectors []policyv1alpha1.ResourceSelector, each func(of policyv1alpha1.ResourceSelector, yield func(selector.Resource) bool)) string {
	var written, meant string
	least := 0
	for _, of := range selectors {
		if of.Name == "" {
			continue
		}
		name, n := nearest(of, each)
		if n > 0 && (least == 0 || n < least) {
			written, meant, least = titled(of.Kind, of.Namespace, of.Name), name, n
		}
	}
	if least == 0 {
		return ""
	}
	return fmt.Sprintf("it names %s%s", written, DidYouMean(meant))
}

// nearest returns the object that a selector may mean, and by how many mistakes it differs; 0 for none, and where the object that the
// selector names exists.
func nearest(of policyv1alpha1.ResourceSelector, each func(policyv1alpha1.ResourceSelector, func(selector.Resource) bool)) (name string, least int) {
	seen, isThere := 0, false
	each(of, func(r selector.Resource) bool {
		seen++
		isThere = r.Name == of.Name && (of.Namespace == "" || of.Namespace == r.Namespace)
		if n, near := Near(of, r); near {
			title := titled(r.Kind, r.Namespace, r.Name)
			if least == 0 || cmp.Or(cmp.Compare(n, least), strings.Compare(title, name)) < 0 {
				name, least = title, n
			}
		}
		return !isThere && seen <= mostLike
	})
	if isThere || seen > mostLike {
		return "", 0
	}
	return name, least
}

// titled returns "Deployment shop/web".
func titled(kind, namespace, name string) string {
	return kind + " " + strings.TrimPrefix(namespace+"/"+name, "/")
}
