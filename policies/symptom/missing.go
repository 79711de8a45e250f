package symptom

import (
	"cmp"
	"regexp"
	"strings"
)

// Missing is an object of the namespace of a workload, and of version v1, that a cluster does not have. The zero value is none.
type Missing struct{ Kind, Name string }

// notFound are the words of clusters for what Pods need and is not there.
var notFound = regexp.MustCompile(`\b(serviceaccount|configmap|secret|persistentvolumeclaim)s? "([^"\s]+)" not found|error looking up service account [^/\s]+/([^:\s]+):`)

var missingKinds = map[string]string{"": "ServiceAccount", "serviceaccount": "ServiceAccount", "configmap": "ConfigMap", "secret": "Secret", "persistentvolumeclaim": "PersistentVolumeClaim"}

// Lacks returns what a cluster says that Pods need and it does not have.
func Lacks(text string) (Missing, bool) {
	m := notFound.FindStringSubmatch(strings.ReplaceAll(text, `\"`, `"`))
	if m == nil {
		return Missing{}, false
	}
	return Missing{Kind: missingKinds[m[1]], Name: cmp.Or(m[2], m[3])}, true
}
