package v1alpha1

// EnforcedApprovals is how far a source has the approvals that it needs.
type EnforcedApprovals struct {
	// ApprovedCommit is the hash of the latest commit that has them, as have those
	// before it. It is applied; no other one of the source is.
	// +required
	ApprovedCommit string `json:"approvedCommit"`

	// Held is what the source has, and is not applied. Nil: nothing.
	// +optional
	Held *HeldCommit `json:"held,omitempty"`
}

// HeldCommit is a commit of a source that lacks approvals.
type HeldCommit struct {
	// Commit is the hash of what the source has.
	// +required
	Commit string `json:"commit"`

	// Lacking is the hash of the first commit on the way there that lacks
	// approvals. Empty: that is not known.
	// +optional
	Lacking string `json:"lacking,omitempty"`

	// PullRequest is the number of that by whose merge the branch got it. 0: it was
	// pushed, or holds something else than the merge.
	// +optional
	PullRequest int64 `json:"pullRequest,omitempty"`

	// Message says what is awaited, on one line.
	// +required
	Message string `json:"message"`

	// Approvals are those that it needs, and who gave them.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	Approvals []NeededApproval `json:"approvals,omitempty"`
}
