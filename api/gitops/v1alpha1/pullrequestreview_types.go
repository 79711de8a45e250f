package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PullRequestReviewKind is the kind of a PullRequestReview.
const PullRequestReviewKind = "PullRequestReview"

// PullRequestReview has each open pull request of a repository told what its
// merge would do to each cluster: by a comment, and by a status of its head.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=pullrequestreviews,singular=pullrequestreview,categories={flotilla},shortName=prr
// +kubebuilder:printcolumn:JSONPath=`.spec.sourceRef.name`,name="SOURCE",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.open`,name="OPEN",type=integer
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Ready")].status`,name="READY",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Ready")].message`,name="STATUS",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="AGE",type=date
type PullRequestReview struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is which pull requests are reviewed, and how.
	// +required
	Spec PullRequestReviewSpec `json:"spec"`

	// Status is what was found.
	// +optional
	Status PullRequestReviewStatus `json:"status,omitempty"`
}

// PullRequestReviewList is a list of PullRequestReviews.
//
// +kubebuilder:object:root=true
type PullRequestReviewList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the reviews.
	Items []PullRequestReview `json:"items"`
}

// PullRequestReviewSpec is which pull requests are reviewed, and how.
//
// +kubebuilder:validation:XValidation:rule="!has(self.enforce) || !self.enforce || (has(self.approvals) && size(self.approvals) > 0)",message="enforce needs approvals: without them, nothing has to be approved"
type PullRequestReviewSpec struct {
	// SourceRef is the GitRepository, in the same namespace, whose pull requests
	// are reviewed. Commits are read with its credentials.
	// +required
	SourceRef ReviewedSource `json:"sourceRef"`

	// ProviderRef is the Provider, in the same namespace, with whose token pull
	// requests are listed, commented on and given a status: of type github, gitlab
	// or gitea, or of the types that comment. Its token should be another one than
	// that of the source.
	// +required
	ProviderRef LocalReference `json:"providerRef"`

	// Interval is how often the forge is asked for open pull requests, unless a
	// Receiver tells of a change. At least 10 seconds.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	Interval metav1.Duration `json:"interval"`

	// Branches are those whose pull requests are reviewed, which are to be merged
	// into them. Empty: the branch that the source follows.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	// +listType=set
	Branches []string `json:"branches,omitempty"`

	// ForkLabel is the label by which somebody who may write to the repository has
	// a pull request of a fork reviewed, at the head that it has then. It is taken
	// off by another head. Empty: pull requests of forks are not reviewed.
	// +optional
	// +kubebuilder:validation:MaxLength=50
	ForkLabel string `json:"forkLabel,omitempty"`

	// Context is the name of the status. Give each control plane its own, where
	// several review the same repository.
	// +optional
	// +kubebuilder:default="flotilla/review"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	Context string `json:"context,omitempty"`

	// Rules are what a change has to keep, so that its status is a success.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=name
	Rules []ReviewRule `json:"rules,omitempty"`

	// Approvals are who has to approve of a change before its status is a success.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=name
	Approvals []ReviewApproval `json:"approvals,omitempty"`

	// Enforce has the Kustomizations of the source apply a commit only once it has
	// the approvals that it needs: those of the pull requests by whose merge the
	// branch got it, or the annotation gitops.flotilla.io/approved-commit of this
	// object. What the source has when it is set needs none.
	// +optional
	Enforce bool `json:"enforce,omitempty"`

	// Commands are those that people who may write to the repository can give in a
	// comment, such as /flotilla plan. Empty: comments are not read.
	// +optional
	// +kubebuilder:validation:MaxItems=3
	// +listType=set
	Commands []ReviewCommand `json:"commands,omitempty"`

	// Suspend leaves pull requests as they are.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// ReviewCommand is a command in a comment.
//
// +kubebuilder:validation:Enum=plan;explain;what-if
type ReviewCommand string

const (
	// CommandPlan has a pull request looked at again.
	CommandPlan ReviewCommand = "plan"
	// CommandExplain answers why something runs where it runs.
	CommandExplain ReviewCommand = "explain"
	// CommandWhatIf answers what the merge does once something happens to clusters besides.
	CommandWhatIf ReviewCommand = "what-if"
)

// ReviewedSource names the source whose pull requests are reviewed.
type ReviewedSource struct {
	// Kind of the source.
	// +optional
	// +kubebuilder:default=GitRepository
	// +kubebuilder:validation:Enum=GitRepository
	Kind string `json:"kind,omitempty"`

	// Name of the source.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ReviewRule is what a change has to keep.
type ReviewRule struct {
	// Name of the rule, for people.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// Expression is CEL, and true where the rule is kept. It sees comparison, as
	// flotilla plan -o json prints it, and clusters, the labels of each cluster by
	// its name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression"`

	// Message says what to do where the rule is broken. Empty: the name of the
	// rule is told alone.
	// +optional
	// +kubebuilder:validation:MaxLength=500
	Message string `json:"message,omitempty"`
}

// ReviewApproval is who has to approve of what reaches certain clusters and
// namespaces.
type ReviewApproval struct {
	// Name of the approval, for people.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// Clusters in which a change needs the approval. Nil: all.
	// +optional
	Clusters *ApprovedClusters `json:"clusters,omitempty"`

	// Namespaces in which a change needs the approval. What has no namespace counts
	// in each of them; a Namespace counts as what it names. Empty: all.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	Namespaces []string `json:"namespaces,omitempty"`

	// By is who can give it.
	// +required
	By ReviewApprovers `json:"by"`

	// Count is how many of them have to approve.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20
	Count int32 `json:"count,omitempty"`
}

// ApprovedClusters selects clusters: those that are named, and those with labels.
//
// +kubebuilder:validation:XValidation:rule="has(self.names) || has(self.labelSelector)",message="names or labelSelector must be set"
type ApprovedClusters struct {
	// Names of clusters.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	Names []string `json:"names,omitempty"`

	// LabelSelector selects clusters by their labels.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// ReviewApprovers are people of the forge who can approve of a change.
//
// +kubebuilder:validation:XValidation:rule="has(self.users) || has(self.teams) || (has(self.codeOwners) && self.codeOwners)",message="one of users, teams and codeOwners must be set"
type ReviewApprovers struct {
	// Users are logins of the forge, without an @.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_][-A-Za-z0-9_.]*$`
	// +kubebuilder:validation:items:MaxLength=255
	// +listType=set
	Users []string `json:"users,omitempty"`

	// Teams of the forge, as organization/team, or the full path of a group of
	// GitLab. All of their members can approve.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_][-A-Za-z0-9_.]*(/[A-Za-z0-9_][-A-Za-z0-9_.]*)*$`
	// +kubebuilder:validation:items:MaxLength=255
	// +listType=set
	Teams []string `json:"teams,omitempty"`

	// CodeOwners has each file of the change approved by those whom the CODEOWNERS
	// file of the branch names for it. Files that it names nobody for are approved
	// by users and teams.
	// +optional
	CodeOwners bool `json:"codeOwners,omitempty"`
}

// ReviewPhase is how far the review of a pull request is.
//
// +kubebuilder:validation:Enum=Pending;AwaitingApproval;Passed;Failed;NotReviewed
type ReviewPhase string

const (
	// ReviewPending means that it was not looked at yet, or that the head, the
	// branch or the fleet have changed since.
	ReviewPending ReviewPhase = "Pending"
	// ReviewAwaiting means that nothing else keeps it from passing than people
	// who have not approved of its head yet.
	ReviewAwaiting ReviewPhase = "AwaitingApproval"
	// ReviewPassed means that its status is a success.
	ReviewPassed ReviewPhase = "Passed"
	// ReviewFailed means that it cannot be merged or built, or breaks a rule.
	ReviewFailed ReviewPhase = "Failed"
	// ReviewNot means that it is not reviewed, such as one from a fork.
	ReviewNot ReviewPhase = "NotReviewed"
)

// PullRequestReviewStatus is what was found.
type PullRequestReviewStatus struct {
	// Open is how many open pull requests are to be reviewed.
	// +optional
	Open int32 `json:"open,omitempty"`

	// PullRequests are those that are open, the oldest first; of very many the
	// first.
	// +optional
	// +kubebuilder:validation:MaxItems=200
	// +listType=map
	// +listMapKey=number
	PullRequests []ReviewedPullRequest `json:"pullRequests,omitempty"`

	// Enforced is how far the source has the approvals that it needs. Nil: they are
	// not enforced.
	// +optional
	Enforced *EnforcedApprovals `json:"enforced,omitempty"`

	// LastHandledReconcileAt is the value of the annotation by which it was last
	// asked to look. Empty: it was not asked yet.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`

	// ObservedGeneration is the metadata.generation that the conditions are about.
	// 0: not seen yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions of the object. Type Ready: True when the forge was asked for open
	// pull requests, and all of them could be told what was found.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ReviewedPullRequest is an open pull request, or merge request.
type ReviewedPullRequest struct {
	// Number of the pull request.
	// +required
	Number int64 `json:"number"`

	// Head is the hash of its latest commit.
	// +required
	Head string `json:"head"`

	// Base is the branch that it is to be merged into.
	// +required
	Base string `json:"base"`

	// Phase is how far its review is.
	// +required
	Phase ReviewPhase `json:"phase"`

	// Message says why, on one line.
	// +optional
	Message string `json:"message,omitempty"`

	// Of is what the review is about. Nil: there is none yet.
	// +optional
	Of *ReviewSubject `json:"of,omitempty"`

	// Summary counts what its merge would do. Nil: that is not known.
	// +optional
	Summary *ReviewSummary `json:"summary,omitempty"`

	// BrokenRules are the names of the rules that it breaks, in the order of the
	// spec.
	// +optional
	// +listType=atomic
	BrokenRules []string `json:"brokenRules,omitempty"`

	// Approvals are those that its head needs, and who gave them.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	Approvals []NeededApproval `json:"approvals,omitempty"`

	// AwaitedHead is the head at which one of a fork was seen without the label:
	// the label counts for no other. Empty: none yet.
	// +optional
	AwaitedHead string `json:"awaitedHead,omitempty"`

	// AllowedHead is the head of one of a fork that is reviewed, by the label.
	// Empty: none.
	// +optional
	AllowedHead string `json:"allowedHead,omitempty"`

	// CommentID is that of the comment on it. 0: there is none.
	// +optional
	CommentID int64 `json:"commentID,omitempty"`

	// CommandID is that of the last comment whose command was carried out or
	// answered. 0: there was none.
	// +optional
	CommandID int64 `json:"commandID,omitempty"`

	// Posted is the status that its head has been given. Nil: none yet.
	// +optional
	Posted *PostedReview `json:"posted,omitempty"`
}

// ReviewSubject is what a review is about: it is outdated once one of them is
// another one.
type ReviewSubject struct {
	// Head is the hash of the pull request's commit.
	// +required
	Head string `json:"head"`

	// Base is the hash of the branch's commit.
	// +required
	Base string `json:"base"`

	// Fleet is a digest of what of the fleet was read.
	// +required
	Fleet string `json:"fleet"`

	// Rules is a digest of the spec.
	// +required
	Rules string `json:"rules"`
}

// ReviewSummary counts what a merge would do, objects in clusters.
type ReviewSummary struct {
	// Deleted objects.
	// +required
	Deleted int32 `json:"deleted"`
	// Created objects.
	// +required
	Created int32 `json:"created"`
	// Updated objects.
	// +required
	Updated int32 `json:"updated"`
	// Clusters that would hold something else.
	// +required
	Clusters int32 `json:"clusters"`
	// Restarts are the pods that would restart.
	// +required
	Restarts int64 `json:"restarts"`
	// Risks are what a reviewer should look at.
	// +required
	Risks int32 `json:"risks"`
}

// NeededApproval is one that a change needs.
type NeededApproval struct {
	// Name is that of the approval in the spec.
	// +required
	Name string `json:"name"`

	// File of the change which it is about, of several with the same owners the
	// first one. Empty: all that changes.
	// +optional
	File string `json:"file,omitempty"`

	// Users who can give it.
	// +optional
	// +listType=atomic
	Users []string `json:"users,omitempty"`

	// Teams whose members can give it.
	// +optional
	// +listType=atomic
	Teams []string `json:"teams,omitempty"`

	// Count is how many of them are needed.
	// +required
	Count int32 `json:"count"`

	// By is who gave it, of the present head.
	// +optional
	// +listType=atomic
	By []string `json:"by,omitempty"`
}

// PostedReview is a status that a forge took.
type PostedReview struct {
	// Commit that it was about.
	// +required
	Commit string `json:"commit"`

	// State that was told.
	// +required
	State CommitState `json:"state"`

	// Description that was told.
	// +optional
	Description string `json:"description,omitempty"`
}
