package resourcequota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
)

// olderNames are what numbers of objects were called before `count/`.
var olderNames = map[string]corev1.ResourceName{
	"configmaps":             corev1.ResourceConfigMaps,
	"persistentvolumeclaims": corev1.ResourcePersistentVolumeClaims,
	"replicationcontrollers": corev1.ResourceReplicationControllers,
	"resourcequotas":         corev1.ResourceQuotas,
	"secrets":                corev1.ResourceSecrets,
	"services":               corev1.ResourceServices,
}

// uncounted names the limits of a quota that limit nothing on the hub; none for one that
// a policy carries to members.
func uncounted(q *corev1.ResourceQuota) []string {
	if carried(q) {
		return nil
	}
	known := slices.Collect(maps.Values(olderNames))
	var out []string
	for _, name := range slices.Sorted(maps.Keys(q.Spec.Hard)) {
		if strings.HasPrefix(string(name), countPrefix) || slices.Contains(known, name) {
			continue
		}
		out = append(out, fmt.Sprintf("spec.hard[%s]: limits nothing here: the control plane counts objects alone, as count/deployments.apps. "+
			"What clusters run is limited by a quota that a policy carries there, or by a FederatedResourceQuota", name))
	}
	return out
}

// countPrefix begins the names of numbers of objects.
const countPrefix = "count/"

// Counts are how objects are counted: of every kind, by number alone. With no lister
// they are good for admission, which counts what is new.
func Counts(list quota.ListerForResourceFunc) quota.Configuration {
	var evaluators []quota.Evaluator
	for resource, alias := range olderNames {
		of := corev1.SchemeGroupVersion.WithResource(resource)
		evaluators = append(evaluators, generic.NewObjectCountEvaluator(of.GroupResource(), generic.ListResourceUsingListerFunc(list, of), alias))
	}
	return generic.NewConfiguration(evaluators, ignored())
}

// ignored are the resources that count nowhere, as in any cluster: Events go by
// themselves, and Bindings are not stored.
func ignored() map[schema.GroupResource]struct{} {
	return map[schema.GroupResource]struct{}{
		corev1.Resource("bindings"): {},
		corev1.Resource("events"):   {},
		eventsv1.Resource("events"): {},
	}
}
