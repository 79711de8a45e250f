package controlplane

import (
	"go.uber.org/zap"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/controlplane/admission"
	"github.com/flotilla-io/flotilla/controlplane/apiserver"
)

// Context is the name of the only context in the administrator's kubeconfig.
const Context = "flotilla"

// Options say what a control plane is made of. DataDir and Definitions are
// required.
type Options struct {
	// DataDir keeps all that must outlive a restart.
	DataDir string
	// BindAddress is the IP address to listen on; empty means 127.0.0.1.
	BindAddress string
	// SecurePort is the port to listen on; 0 means a free one.
	SecurePort int
	// Hosts are further names and addresses that clients know the server by.
	Hosts []string
	// Etcd is a store that runs elsewhere; without servers the control plane
	// runs its own in DataDir.
	Etcd apiserver.Etcd
	// Definitions are the kinds that the server must know before it is ready.
	Definitions []*apiextensionsv1.CustomResourceDefinition
	// Claim marks new templates with the policy that carries them; nil leaves
	// that to the loops.
	Claim admission.Claimer
	// AllowNoExecuteTaintPolicy accepts ClusterTaintPolicies whose taints evict
	// workloads.
	AllowNoExecuteTaintPolicy bool
	// IgnoreQuotas lets bindings use more than FederatedResourceQuotas allow.
	IgnoreQuotas bool
	// FeatureGates are Kubernetes' own, for the whole process.
	FeatureGates map[string]bool
	// Clock tells when certificates are due; nil means the machine's.
	Clock clock.WithTicker
	// StoreLog receives what goes wrong in the control plane's own store; nil
	// drops it.
	StoreLog *zap.Logger
	// UnsafeNoFsync makes the control plane's own store fast and, should the
	// machine crash, forgetful. For tests.
	UnsafeNoFsync bool
}

// templatesAreNotRun are upstream's default admission plugins that would make
// of a template what holds in one cluster only, or judge it by what that cluster
// has: the clusters that run it have plugins of their own.
var templatesAreNotRun = []string{
	"DefaultIngressClass", "DefaultStorageClass", "DefaultTolerationSeconds", "LimitRanger", "PersistentVolumeClaimResize",
	"PodTopologyLabels", "Priority", "ResourceQuota", "RuntimeClass", "ServiceAccount", "StorageObjectInUseProtection",
	"TaintNodesByCondition",
}
