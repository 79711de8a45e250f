package apiserver

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
)

// groupPriorities order Kubernetes' groups of workloads in discovery, as stock
// servers do; upstream's table holds the other groups.
var groupPriorities = map[string]int32{
	"apps":              17800,
	"autoscaling":       17500,
	"batch":             17400,
	"networking.k8s.io": 17200,
	"policy":            17100,
	"storage.k8s.io":    16800,
	"scheduling.k8s.io": 16600,
	"node.k8s.io":       16300,
	"resource.k8s.io":   16200,
}

// priorities give every group and version that the chain serves its place. The
// aggregator serves those alone that have one.
func priorities(extension *Extension) map[schema.GroupVersion]controlplaneapiserver.APIServicePriority {
	all := controlplaneapiserver.DefaultGenericAPIServicePriorities()
	for group, place := range groupPriorities {
		versions := legacyscheme.Scheme.PrioritizedVersionsForGroup(group)
		for i, gv := range versions {
			all[gv] = controlplaneapiserver.APIServicePriority{Group: place, Version: int32(10 * (len(versions) - i))}
		}
	}
	if extension != nil {
		for gv, place := range extension.Priorities {
			all[gv] = controlplaneapiserver.APIServicePriority{Group: place.Group, Version: place.Version}
		}
	}
	return all
}
