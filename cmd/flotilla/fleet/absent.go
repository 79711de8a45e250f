package fleet

import (
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Absent returns the kind of the object that a server does not have, as `flotilla get` takes it;
// empty if err is about something else.
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

// Listing returns advice with the command that lists objects of the kinds, as Absent names them,
// after an object was not found on the control plane. in is the flag for the namespace, after a
// space; empty for that of the context. everywhere is true if the command also lists what is in
// clusters, because an object may exist only there.
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

// hubAlone matches kinds that exist on the control plane only.
var hubAlone = regexp.MustCompile(`\.(karmada\.io|flotilla\.io|toolkit\.fluxcd\.io)$`)
