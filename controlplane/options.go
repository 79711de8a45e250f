package controlplane

import (
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/controlplane/admission"
	"github.com/flotilla-io/flotilla/controlplane/apiserver"
)

// Context is the name of the current context of the administrator's kubeconfig.
const Context = "flotilla"

// KarmadaContext is the name by which Karmada's clients find the control plane in the
// admin's kubeconfig: that of the context, and of the cluster.
const KarmadaContext = "karmada-apiserver"

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
	// SealKeyFile is the file of the key that authorities and keys are sealed with in
	// a store that runs elsewhere: the same for all replicas. It is made by the first;
	// empty means seal.key in DataDir.
	SealKeyFile string
	// Definitions are the kinds that the server must know before it is ready.
	Definitions []*apiextensionsv1.CustomResourceDefinition
	// Claim marks new templates with the policy that carries them; nil leaves
	// that to the loops.
	Claim admission.Claimer
	// Rules say what is refused.
	Rules Rules
	// Certificates say how long those are good that are signed on request.
	Certificates Certificates
	// Version is the version that agents are shown of the control plane; empty shows
	// nothing.
	Version string
	// FeatureGates are Kubernetes' own, for the whole process.
	FeatureGates map[string]bool
	// Clock decides when certificates are due; nil means the machine's.
	Clock clock.WithTicker
	// Log receives what goes wrong in the control plane's own store, when there is no
	// space for it, that certificates are not renewed, and where the key is that seals
	// what replicas have in common; the zero value drops it.
	Log logr.Logger
	// Hooks are called on the way.
	Hooks Hooks
	// UnsafeNoFsync makes the control plane's own store fast and, should the
	// machine crash, forgetful. For tests.
	UnsafeNoFsync bool
}

// Hooks are called on events of a control plane. They must not block; nil is not called.
type Hooks struct {
	// Starting is called once, when the data directory is held and nothing is started yet.
	Starting func()
	// Busy is called when a request begins that may change something but a Lease.
	Busy func()
}

// Certificates say how long those are good that are signed on request.
type Certificates struct {
	// Duration is the most that they are good for, those of agents and of users; zero
	// means a year.
	Duration time.Duration
	// ExpiredGrace is how long after its end the certificate of an agent still gets the
	// next one; zero means 30 days.
	ExpiredGrace time.Duration
}

const (
	// DefaultAgentCertificateDuration is Kubernetes' and Karmada's: agents that do
	// not renew their certificate, as Karmada's do not unless told to, count on it.
	// Flotilla's agents ask for less.
	DefaultAgentCertificateDuration = 365 * 24 * time.Hour
	// DefaultExpiredAgentGrace is how long a site may be cut off beyond the end of
	// its agent's certificate and come back by itself.
	DefaultExpiredAgentGrace = 30 * 24 * time.Hour
)

// complete fills in what was left out.
func (o *Options) complete() {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Certificates.Duration == 0 {
		o.Certificates.Duration = DefaultAgentCertificateDuration
	}
	if o.Certificates.ExpiredGrace == 0 {
		o.Certificates.ExpiredGrace = DefaultExpiredAgentGrace
	}
}

// Rules say what a control plane refuses. The zero value is what production uses.
type Rules struct {
	// AllowNoExecuteTaintPolicy accepts ClusterTaintPolicies whose taints evict
	// workloads.
	AllowNoExecuteTaintPolicy bool
	// AllowKarmadactlRegister has karmadactl register bring clusters into the fleet, and
	// Karmada's agent serve them.
	AllowKarmadactlRegister bool
	// IgnoreQuotas lets bindings use more than FederatedResourceQuotas allow.
	IgnoreQuotas bool
	// RefuseLoopbackClusters lets no request through to a cluster on the control
	// plane's own machine.
	RefuseLoopbackClusters bool
	// MinFreeDisk is how many bytes must be free on the disk of DataDir: with less,
	// the control plane's own store takes nothing new. Half as many are held in
	// reserve. Zero leaves the disk unwatched: the store ends the process when it is
	// full.
	MinFreeDisk int64
}

// templatesAreNotRun are upstream's default admission plugins that would make
// of a template what holds in one cluster only, or judge it by what that cluster
// has: the clusters that run it have plugins of their own.
var templatesAreNotRun = []string{
	"DefaultIngressClass", "DefaultStorageClass", "DefaultTolerationSeconds", "LimitRanger", "PersistentVolumeClaimResize",
	"PodTopologyLabels", "Priority", "ResourceQuota", "RuntimeClass", "ServiceAccount", "StorageObjectInUseProtection",
	"TaintNodesByCondition",
}
