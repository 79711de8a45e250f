package propagation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/api/crds"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// OwnWhy is the reason why a selector without a name does not select what the
// control plane made for itself.
const OwnWhy = "the control plane made it for itself: only a selector with its name carries it"

// specificity returns how closely a policy's selectors describe r. What the
// control plane made for itself is selected by its name only, as clusters have
// such objects of their own.
func specificity(selectors []policyv1alpha1.ResourceSelector, r selector.Resource) selector.Specificity {
	best := selector.Best(selectors, r)
	if best != selector.None && best != selector.Name && Own(r) {
		return selector.None
	}
	return best
}

// OnlyByName reports whether p would select r if the control plane had not made r
// for itself.
func OnlyByName(p policyv1alpha1.Policy, r selector.Resource) bool {
	return (p.GetNamespace() == "" || p.GetNamespace() == r.Namespace) &&
		!slices.Contains([]selector.Specificity{selector.None, selector.Name}, selector.Best(p.PropagationSpec().ResourceSelectors, r)) && Own(r)
}

const (
	// rbacDefaults is the value of the label bootstrapping, which an API server
	// sets on its default RBAC objects.
	rbacDefaults = "rbac-defaults"
	// ofAgent is the label of RBAC objects for a cluster's agent.
	ofAgent = "registration.flotilla.io/cluster"
	// automanaged is the label of the APIServices that an API server registers for
	// its own groups.
	automanaged = "kube-aggregator.kubernetes.io/automanaged"
	// allocated is the label of the IPAddresses that an API server allocates for
	// its Services.
	allocated = "ipaddress.kubernetes.io/managed-by"
)

// Names of objects that Kubernetes creates and that have no label to show it.
var (
	systemClasses = []string{"system-cluster-critical", "system-node-critical"}
	levels        = []string{"exempt", "catch-all", "system", "node-high", "leader-election", "workload-high", "workload-low", "global-default"}
	flows         = []string{
		"exempt", "catch-all", "probes", "system-nodes", "system-node-high", "system-leader-election", "workload-leader-election", "endpoint-controller",
		"kube-controller-manager", "kube-scheduler", "kube-system-service-accounts", "service-accounts", "global-default",
	}
)

// Own reports whether the control plane, or Kubernetes in it, made r for itself.
// Every cluster has such objects of its own.
func Own(r selector.Resource) bool {
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	if err != nil {
		return false
	}
	switch gv.WithKind(r.Kind).GroupKind().String() {
	case "ClusterRole.rbac.authorization.k8s.io", "ClusterRoleBinding.rbac.authorization.k8s.io", "Role.rbac.authorization.k8s.io", "RoleBinding.rbac.authorization.k8s.io":
		return r.Labels["kubernetes.io/bootstrapping"] == rbacDefaults || r.Labels["karmada.io/bootstrapping"] == rbacDefaults || r.Labels[ofAgent] != ""
	case "PriorityClass.scheduling.k8s.io":
		return slices.Contains(systemClasses, r.Name)
	case "PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io":
		return slices.Contains(levels, r.Name)
	case "FlowSchema.flowcontrol.apiserver.k8s.io":
		return slices.Contains(flows, r.Name)
	case "CustomResourceDefinition.apiextensions.k8s.io":
		return crds.Own(r.Name)
	case "APIService.apiregistration.k8s.io":
		return r.Labels[automanaged] != ""
	case "IPAddress.networking.k8s.io":
		return r.Labels[allocated] != ""
	case "ServiceCIDR.networking.k8s.io":
		return r.Name == apiServer
	case "Service", "Endpoints", "EndpointSlice.discovery.k8s.io":
		return r.Namespace == corev1.NamespaceDefault && r.Name == apiServer
	}
	return false
}

// apiServer is the name of an API server's Service, and of its default
// ServiceCIDR.
const apiServer = "kubernetes"
