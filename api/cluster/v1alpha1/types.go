package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cluster is one member cluster: where its API server is, with which
// credentials it is spoken to, what it is like, and what was last seen of it.
//
// The name is an RFC 1123 label of at most 48 characters, because it becomes
// part of the name of the cluster's execution namespace.
//
// +kubebuilder:object:root=true
type Cluster struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says how the cluster is reached and how it is to be used.
	Spec ClusterSpec `json:"spec"`

	// Status is what was last observed of the cluster. Written by the loop that
	// watches it.
	// +optional
	Status ClusterStatus `json:"status,omitempty"`
}

// ClusterSpec says how a member is reached and how it is to be used.
type ClusterSpec struct {
	// ID identifies the member whatever its name here: the UID of its
	// kube-system namespace, collected when it joins. A second registration
	// with an ID that is taken is refused. Empty: unknown. At most 128000
	// characters.
	// +optional
	// +kubebuilder:validation:MaxLength=128000
	ID string `json:"id,omitempty"`

	// SyncMode is Push when the control plane writes to the member, and Pull
	// when an agent in the member fetches its work.
	// +kubebuilder:validation:Enum=Push;Pull
	// +required
	SyncMode ClusterSyncMode `json:"syncMode"`

	// APIEndpoint is the URL of the member's API server. It names a host and has
	// no user info, query or fragment. Empty in pull mode where nothing reaches
	// the member.
	// +optional
	APIEndpoint string `json:"apiEndpoint,omitempty"`

	// SecretRef names the Secret with the credentials for the member: its keys
	// are token (bearer token) and caBundle (PEM). Nil: the member cannot be
	// reached from the control plane.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`

	// ImpersonatorSecretRef names the Secret with the token (key token) of the
	// account that may do nothing but impersonate. Requests that users send
	// through the proxy sub-resource use it. Nil: no proxying.
	// +optional
	ImpersonatorSecretRef *LocalSecretReference `json:"impersonatorSecretRef,omitempty"`

	// InsecureSkipTLSVerification turns off the check of the member's serving
	// certificate. False, the default, checks it.
	// +optional
	InsecureSkipTLSVerification bool `json:"insecureSkipTLSVerification,omitempty"`

	// ProxyURL is the proxy through which the member is reached. Schemes: http,
	// https, socks5. Empty: none.
	// +optional
	ProxyURL string `json:"proxyURL,omitempty"`

	// ProxyHeader is sent to the proxy when a connection is opened. Several
	// values of one header are separated by commas.
	// +optional
	ProxyHeader map[string]string `json:"proxyHeader,omitempty"`

	// Provider is who runs the cluster, for field selectors and spread
	// constraints. A valid label value.
	// +optional
	Provider string `json:"provider,omitempty"`

	// Region is where the cluster is, for field selectors and spread
	// constraints. A valid label value.
	// +optional
	Region string `json:"region,omitempty"`

	// Zone is deprecated in favour of Zones, into which the server moves it.
	// It must not be given together with Zones.
	// +optional
	Zone string `json:"zone,omitempty"`

	// Zones are the failure zones of the region that the cluster covers. Valid
	// label values.
	// +optional
	Zones []string `json:"zones,omitempty"`

	// Taints keep away every workload whose policy does not tolerate them.
	// Effects: NoSchedule and NoExecute. Key and effect are unique together; the
	// server stamps timeAdded on NoExecute taints that have none.
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty"`

	// ResourceModels are the size classes into which the member's nodes are
	// counted. The grades are distinct and their ranges contiguous, from 0 to
	// the largest integer. Empty: nine default grades are set on creation.
	// +optional
	ResourceModels []ResourceModel `json:"resourceModels,omitempty"`
}

// ResourceModel is one size class of nodes.
type ResourceModel struct {
	// Grade orders the classes, smallest nodes first. Counted from 0.
	// +required
	Grade uint `json:"grade"`

	// Ranges bound each resource of a node of this class.
	// +required
	Ranges []ResourceModelRange `json:"ranges"`
}

// ResourceModelRange bounds one resource: min <= amount < max.
type ResourceModelRange struct {
	// Name of the resource, such as cpu or memory.
	// +required
	Name corev1.ResourceName `json:"name"`

	// Min is the smallest amount that belongs to the class.
	// +required
	Min resource.Quantity `json:"min"`

	// Max is the smallest amount that is too much for the class.
	// +required
	Max resource.Quantity `json:"max"`
}

// ClusterSyncMode says who carries work to a member.
type ClusterSyncMode string

const (
	// Push means that the control plane writes to the member's API server.
	Push ClusterSyncMode = "Push"
	// Pull means that an agent in the member reads its work from the control plane.
	Pull ClusterSyncMode = "Pull"
)

// LocalSecretReference names a Secret on the hub.
type LocalSecretReference struct {
	// Namespace of the Secret.
	// +required
	Namespace string `json:"namespace"`

	// Name of the Secret.
	// +required
	Name string `json:"name"`
}

// ClusterStatus is what was last observed of a member.
type ClusterStatus struct {
	// KubernetesVersion is the git version that the member's API server reports,
	// such as v1.36.4. Empty: never seen.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// APIEnablements lists what the member serves, sorted by group and version,
	// without sub-resources.
	// +optional
	APIEnablements []APIEnablement `json:"apiEnablements,omitempty"`

	// Conditions of the cluster: Ready and CompleteAPIEnablements are ours, other
	// parties add theirs.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// NodeSummary counts the member's nodes. Nil: not known.
	// +optional
	NodeSummary *NodeSummary `json:"nodeSummary,omitempty"`

	// ResourceSummary adds up what the member's nodes offer and what is taken.
	// Nil: not known.
	// +optional
	ResourceSummary *ResourceSummary `json:"resourceSummary,omitempty"`

	// RemedyActions are the actions that Remedy objects ask for right now.
	// +optional
	RemedyActions []string `json:"remedyActions,omitempty"`
}

// APIEnablement lists the resources of one group and version.
type APIEnablement struct {
	// GroupVersion in the form group/version, or version alone for the core group.
	// +required
	GroupVersion string `json:"groupVersion"`

	// Resources served under it, sorted by kind.
	// +optional
	Resources []APIResource `json:"resources,omitempty"`
}

// APIResource is one resource that a member serves.
type APIResource struct {
	// Name in plural, as in the URL.
	// +required
	Name string `json:"name"`

	// Kind of the objects.
	// +required
	Kind string `json:"kind"`
}

// NodeSummary counts the nodes of a member.
type NodeSummary struct {
	// TotalNum is how many nodes there are.
	// +optional
	TotalNum int32 `json:"totalNum,omitempty"`

	// ReadyNum is how many of them are ready.
	// +optional
	ReadyNum int32 `json:"readyNum,omitempty"`
}

// ResourceSummary adds up the resources of a member.
type ResourceSummary struct {
	// Allocatable is what the nodes offer to pods.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`

	// Allocating is what pods that have no node yet ask for.
	// +optional
	Allocating corev1.ResourceList `json:"allocating,omitempty"`

	// Allocated is what pods that have a node ask for.
	// +optional
	Allocated corev1.ResourceList `json:"allocated,omitempty"`

	// AllocatableModelings counts the nodes in each class of spec.resourceModels.
	// +optional
	AllocatableModelings []AllocatableModeling `json:"allocatableModelings,omitempty"`
}

// AllocatableModeling counts the nodes of one size class.
type AllocatableModeling struct {
	// Grade of the class in spec.resourceModels.
	// +required
	Grade uint `json:"grade"`

	// Count of nodes whose free resources fall into the class.
	// +required
	Count int `json:"count"`
}

// ClusterList is a list of Clusters.
//
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the clusters.
	Items []Cluster `json:"items"`
}

// ClusterProxyOptions are the query parameters of the sub-resource proxy.
//
// +kubebuilder:object:root=true
type ClusterProxyOptions struct {
	metav1.TypeMeta `json:",inline"`

	// Path is what follows the sub-resource in the URL: the request's path on
	// the member's API server. Empty: its root.
	// +optional
	Path string `json:"path,omitempty"`
}
