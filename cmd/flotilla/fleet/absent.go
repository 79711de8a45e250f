package fleet

import (
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Absent returns the kind of an object that a server says it does not have, as `flotilla
// get` takes it; empty where err is about something else.
func Absent(err error) string {
	details := statusOf(err).Details
	if !apierrors.IsNotFound(err) || details == nil || details.Name == "" || details.Kind == "" {
		return ""
	}
	if details.Group == "" {
		return details.Kind
	}
	return details.Kind + "." + details.Group
}

// Listing is the command that lists objects of kinds, as Absent names them, for an object
// that the control plane does not have, and what it lists. in is the flag of the namespace,
// after a space; empty for that of the context. Everywhere says that it asks clusters, too:
// what a person knows by its name may run there alone.
func Listing(kinds []string, in string) (text string, everywhere bool) {
	for _, kind := range kinds {
		everywhere = everywhere || !hubAlone.MatchString(kind)
	}
	all := strings.Join(kinds, ",")
	if !everywhere {
		return fmt.Sprintf("flotilla get %s%s lists what there is", all, in), false
	}
	return fmt.Sprintf("flotilla get %s%s -s %s lists what there is, on the control plane and in the clusters", all, in, ScopeAll), true
}

// hubAlone are kinds that no cluster of a fleet is asked for.
var hubAlone = regexp.MustCompile(`\.(karmada\.io|flotilla\.io|toolkit\.fluxcd\.io)$`)
