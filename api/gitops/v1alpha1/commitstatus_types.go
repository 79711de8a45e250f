package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CommitStatus is what a forge is to be told about a commit, and what it was
// told last. It outlives a restart, so nothing is told twice.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=commitstatuses,singular=commitstatus,categories={flotilla},shortName=cst
// +kubebuilder:printcolumn:JSONPath=`.spec.context`,name="CONTEXT",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.commit`,name="COMMIT",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.state`,name="STATE",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.posted.state`,name="POSTED",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Synced")].status`,name="SYNCED",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="AGE",type=date
// +kubebuilder:printcolumn:JSONPath=`.spec.description`,name="DESCRIPTION",type=string,priority=1
type CommitStatus struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the forge is to be told.
	// +required
	Spec CommitStatusSpec `json:"spec"`

	// Status is what it was told.
	// +optional
	Status CommitStatusStatus `json:"status,omitempty"`
}

// CommitStatusList is a list of CommitStatuses.
//
// +kubebuilder:object:root=true
type CommitStatusList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the statuses.
	Items []CommitStatus `json:"items"`
}

// CommitStatusSpec is what a forge is to be told about a commit.
//
// +kubebuilder:validation:XValidation:rule="has(self.sourceRef) != has(self.kustomizationRef)",message="exactly one of sourceRef and kustomizationRef must be set"
type CommitStatusSpec struct {
	// ProviderRef is the Provider, in the same namespace, that says how the forge
	// is reached.
	// +required
	ProviderRef LocalReference `json:"providerRef"`

	// SourceRef is the source that the status is about, with all Kustomizations of
	// this namespace that apply it. Nil when it is about a Kustomization.
	// +optional
	SourceRef *SourceReference `json:"sourceRef,omitempty"`

	// KustomizationRef is the Kustomization, in the same namespace, that the
	// status is about. Nil when it is about a source.
	// +optional
	KustomizationRef *LocalReference `json:"kustomizationRef,omitempty"`

	// Repository is the address of the repository, without credentials.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="!self.matches('^https?://[^/]*@') && !self.matches('://[^/]*:[^/]*@')",message="must not carry credentials"
	Repository string `json:"repository"`

	// Context tells this status from others on the same commit.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Context string `json:"context"`

	// Commit is its full hash: 40 or 64 hexadecimal digits.
	// +required
	// +kubebuilder:validation:Pattern=`^([0-9a-f]{40}|[0-9a-f]{64})$`
	Commit string `json:"commit"`

	// State of the commit: pending while it rolls out, success when every cluster
	// runs it healthily, failure when one does not, error when it could not be
	// tried.
	// +required
	State CommitState `json:"state"`

	// Description for people. At most 140 characters, which is what forges show, or 1,000 for a Provider of type git-notes.
	// +optional
	// +kubebuilder:validation:MaxLength=1000
	Description string `json:"description,omitempty"`

	// Clusters counts those that the commit is for. Nil: none is known.
	// +optional
	Clusters *ClusterCount `json:"clusters,omitempty"`

	// ClusterStates say what has become of it in each cluster, the worst first. They
	// are kept where the Provider comments, for the comment of the source, which
	// tells them. Empty: none is known, or nobody asks.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +listType=map
	// +listMapKey=name
	ClusterStates []ClusterState `json:"clusterStates,omitempty"`

	// Comment is what the pull request is told that brought the commit, in Markdown.
	// Empty: the Provider takes statuses, and does not comment.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Comment string `json:"comment,omitempty"`

	// TargetURL is where the forge links to for more. Empty: nowhere.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^(https?://.+)?$`
	TargetURL string `json:"targetURL,omitempty"`
}

// LocalReference names an object in the same namespace.
type LocalReference struct {
	// Name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ClusterCount counts clusters.
type ClusterCount struct {
	// Ready are those that run all of it healthily.
	// +required
	// +kubebuilder:validation:Minimum=0
	Ready int32 `json:"ready"`

	// Total are all that are to.
	// +required
	// +kubebuilder:validation:Minimum=0
	Total int32 `json:"total"`
}

// ClusterState says what has become of a commit in a cluster.
type ClusterState struct {
	// Name of the cluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// State of the worst object there: Healthy, Progressing, Unknown when nothing is
	// heard of the cluster, or Failed.
	// +required
	// +kubebuilder:validation:Enum=Healthy;Progressing;Unknown;Failed
	State string `json:"state"`

	// Message names that object, and says what is wrong. Empty: all is healthy.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// SourceReference names a source.
type SourceReference struct {
	// Kind of the source, such as GitRepository.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// Name of the source.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Namespace of the source. Empty: the same.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// CommitState is the state of a commit.
//
// +kubebuilder:validation:Enum=pending;success;failure;error
type CommitState string

const (
	// CommitPending means that the commit rolls out.
	CommitPending CommitState = "pending"
	// CommitSuccess means that every cluster runs it healthily.
	CommitSuccess CommitState = "success"
	// CommitFailure means that a cluster does not.
	CommitFailure CommitState = "failure"
	// CommitError means that it could not be tried.
	CommitError CommitState = "error"
)

// CommitStatusStatus is what a forge was told.
type CommitStatusStatus struct {
	// Posted is what the forge took last. Nil: nothing yet.
	// +optional
	Posted *PostedStatus `json:"posted,omitempty"`

	// ObservedGeneration is the metadata.generation that the conditions are about.
	// 0: not seen yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions of the object. Type Synced: True when the forge knows what spec
	// says.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PostedStatus is what a forge took.
type PostedStatus struct {
	// Commit that it was about.
	// +required
	Commit string `json:"commit"`

	// State that was told.
	// +required
	State CommitState `json:"state"`

	// Description that was told.
	// +optional
	Description string `json:"description,omitempty"`

	// Succeeded says that the commit was told of as a success before, or is now.
	// +optional
	Succeeded bool `json:"succeeded,omitempty"`

	// Comment is where it stands, if it is one. Nil: it is a status.
	// +optional
	Comment *CommentReference `json:"comment,omitempty"`

	// At is when the forge took it.
	// +required
	At metav1.Time `json:"at"`
}

// CommentReference says where a comment stands.
type CommentReference struct {
	// PullRequest is its number, or that of the merge request.
	// +required
	PullRequest int64 `json:"pullRequest"`

	// ID of the comment.
	// +required
	ID int64 `json:"id"`
}
