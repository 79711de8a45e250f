package v1alpha1

// CommitStatusSynced is the condition type that reports whether the forge knows
// what a CommitStatus says.
const CommitStatusSynced = "Synced"

// Reasons of the condition Synced.
const (
	// CommitStatusReasonPosted goes with True.
	CommitStatusReasonPosted = "Posted"
	// CommitStatusReasonInComment goes with True: the comment of the source tells it.
	CommitStatusReasonInComment = "InComment"
	// CommitStatusReasonNoPullRequest goes with True: there is none to comment on; and
	// with Unknown as long as the forge may yet come to know one.
	CommitStatusReasonNoPullRequest = "NoPullRequest"
	// CommitStatusReasonWaiting goes with Unknown: the forge is left alone for a
	// while, and does not know yet what the spec says.
	CommitStatusReasonWaiting = "WaitingForForge"
	// CommitStatusReasonUnreachable goes with False: the forge does not answer.
	// Retried.
	CommitStatusReasonUnreachable = "Unreachable"
	// CommitStatusReasonRefused goes with False: the forge said no, for example
	// because the token may not write statuses.
	CommitStatusReasonRefused = "Refused"
	// CommitStatusReasonProviderNotReady goes with False: the Provider or its
	// Secret is missing or cannot be used.
	CommitStatusReasonProviderNotReady = "ProviderNotReady"
	// CommitStatusReasonAddressNotAllowed goes with False: the Provider's address
	// leads to where no administrator has said that forges may be.
	CommitStatusReasonAddressNotAllowed = "AddressNotAllowed"
)

// Reasons of the condition Ready of a PullRequestReview; those of a source are the source's.
const (
	// ReviewReasonSucceeded goes with True.
	ReviewReasonSucceeded = "Succeeded"
	// ReviewReasonSuspended goes with False.
	ReviewReasonSuspended = "Suspended"
	// ReviewReasonSourceNotReady goes with False: the source is missing or cannot be reviewed.
	ReviewReasonSourceNotReady = "SourceNotReady"
	// ReviewReasonInvalidRule goes with False: a rule is no CEL.
	ReviewReasonInvalidRule = "InvalidRule"
	// ReviewReasonInvalidApproval goes with False: clusters of an approval cannot be selected.
	ReviewReasonInvalidApproval = "InvalidApproval"
	// ReviewReasonFleet goes with False: what the control plane holds cannot be read.
	ReviewReasonFleet = "FleetNotRead"
	// ReviewReasonNotTold goes with False: something kept a pull request from being reviewed, or told of it.
	ReviewReasonNotTold = "NotTold"
)

// Git notes.
const (
	// ProviderTypeGitNotes is the spec.type of a Provider that writes statuses
	// into the repository itself, as Git notes under GitNotesRef.
	ProviderTypeGitNotes = "git-notes"
	// GitNotesRef is the ref that holds the notes.
	GitNotesRef = "refs/notes/flotilla"
)

// What is recorded of a commit, or an artifact, besides its files: in status.artifact.metadata of
// its source, and in status.history[].metadata of the Kustomizations that
// applied it. Each is one line and may be missing.
const (
	// CommitAuthorKey is who wrote the commit, as "Name <mail>".
	CommitAuthorKey = "gitops.flotilla.io/commit-author"
	// CommitSubjectKey is the first line of the commit's message.
	CommitSubjectKey = "gitops.flotilla.io/commit-subject"
	// CommitDateKey is when the commit was made, as RFC 3339.
	CommitDateKey = "gitops.flotilla.io/commit-date"
	// CommitAllowDeleteKey is what the commit's trailers Flotilla-Allow-Delete name, between
	// commas. It is not recorded in histories.
	CommitAllowDeleteKey = "gitops.flotilla.io/commit-allow-delete"
	// CommitSigningKeyKey is the fingerprint of the key whose signature of the commit was verified.
	CommitSigningKeyKey = "gitops.flotilla.io/commit-signing-key"
	// CommitSignerKey is what that key says of its owner.
	CommitSignerKey = "gitops.flotilla.io/commit-signer"
	// CommitSignedKey is when the commit was signed, by its signature, as RFC 3339.
	CommitSignedKey = "gitops.flotilla.io/commit-signed"
	// TagSigningKeyKey is the fingerprint of the key whose signature of the tag was verified.
	TagSigningKeyKey = "gitops.flotilla.io/tag-signing-key"
	// TagSignerKey is what that key says of its owner.
	TagSignerKey = "gitops.flotilla.io/tag-signer"
	// TagSignedKey is when the tag was signed, by its signature, as RFC 3339.
	TagSignedKey = "gitops.flotilla.io/tag-signed"
	// ArtifactSigningKeyKey is the fingerprint of what vouches for an artifact of a registry: of the public key whose
	// signature was verified, or of the trusted root by which the signer's certificate was.
	ArtifactSigningKeyKey = "gitops.flotilla.io/artifact-signing-key"
	// ArtifactSignerKey is what the Secret calls that key, or the subject of the certificate.
	ArtifactSignerKey = "gitops.flotilla.io/artifact-signer"
	// ArtifactIssuerKey is who told the certificate's authority who the signer is; there is none with a key.
	ArtifactIssuerKey = "gitops.flotilla.io/artifact-signer-issuer"
	// ArtifactSignedKey is when the artifact was signed, as a log or an authority vouches for it, as RFC 3339.
	ArtifactSignedKey = "gitops.flotilla.io/artifact-signed"
)

// ParentAnnotation on a CommitStatus is the Kustomization, as namespace/name, that applied the one that it
// is about, and after a comma each the one that applied that; there is none where nobody did.
const ParentAnnotation = "gitops.flotilla.io/parent"

// FollowsAnnotation on a CommitStatus is the source that the Kustomization that it is about follows, such as "GitRepository shop/app":
// its commits are those of which it tells.
const FollowsAnnotation = "gitops.flotilla.io/follows"

// KeepsAnnotation on a CommitStatus says that the Kustomization that it is about leaves where it is what it applied
// when it is deleted, and why: one of those below. There is none where that is deleted as well.
const KeepsAnnotation = "gitops.flotilla.io/keeps"

// Why a Kustomization that is deleted leaves what it applied.
const (
	// KeepsUnpruned: it does not prune.
	KeepsUnpruned = "true"
	// KeepsSuspended: it is suspended.
	KeepsSuspended = "suspended"
	// KeepsOrphans: its deletionPolicy is Orphan.
	KeepsOrphans = "orphan"
)

// RemovedKey in status.history[0].metadata of a Kustomization are the objects that left its
// revisions and that clusters may still hold, between commas, as they stand in inventories; "+5" in the end are five
// more.
const RemovedKey = "gitops.flotilla.io/removed"

// TerminatingKey in status.history[0].metadata of a Kustomization are the objects that left its revisions and
// that the control plane is deleting still, as JSON.
const TerminatingKey = "gitops.flotilla.io/terminating"

// EditedKey in status.history[0].metadata of a Kustomization that is suspended are its objects that others have changed
// or deleted since, as JSON.
const EditedKey = "gitops.flotilla.io/edited"

// LeavingKey in status.history[0].metadata of a Kustomization are the objects that left its revision
// and have yet to be removed, or taken by another Kustomization, as RemovedKey has them.
const LeavingKey = "gitops.flotilla.io/leaving"

// UndecidedKey in status.history[0].metadata of a Kustomization are those of LeavingKey that nobody has let go of:
// another Kustomization is to take them, or may want them.
const UndecidedKey = "gitops.flotilla.io/undecided"

// PlaceKey in status.history[0].metadata of a Kustomization with spec.kubeConfig is where the objects of its inventory are: the
// address of an API server, and the name of the Secret that leads there. Without it they are on the control plane.
const PlaceKey = "gitops.flotilla.io/place"

// PrunedFromAnnotation on the binding of an object that left the revision of its Kustomization are the clusters
// from which it has been pruned before the others, sorted, between commas: all of the revision that replaces it
// stands there already. It goes once the object is not leaving any more.
const PrunedFromAnnotation = "gitops.flotilla.io/pruned-from"

// HoldsSecretsAnnotation is on objects that a Kustomization put text of a Secret into, by a variable: its value is
// HoldsInName where that is in the object's name, else HoldsInFields. What clusters say of such objects is told
// without what it quotes. On a policy it counts for what the policy changes, and for what is told of it; on a binding
// it says that its policy has it.
const HoldsSecretsAnnotation = "kustomize.flotilla.io/holds-secrets"

// HoldsSecretsInAnnotation is beside it on a Kustomization that another one put such text into: the fields of its spec, between commas,
// by which the text comes into all that it builds. Variables are none of them.
const HoldsSecretsInAnnotation = "kustomize.flotilla.io/holds-secrets-in"

// Values of HoldsSecretsAnnotation.
const (
	HoldsInFields = "fields"
	HoldsInName   = "name"
)

// TaintsAnnotation on a Cluster are the taints that a Kustomization has put on it, each as key:effect, between commas:
// they go once the revision does not hold them any more, whoever has written the list since.
const TaintsAnnotation = "gitops.flotilla.io/taints"

// ChangedKey in status.history[0].metadata of a Kustomization is the revision since which it applies what
// it does; the revisions after it have changed nothing of that. Missing: not known.
const ChangedKey = "gitops.flotilla.io/changed"

// ChangedOriginKey beside ChangedKey is the revision that the artifact of that revision was packed from, as it says itself.
// Missing: it says nothing, or the source is a repository.
const ChangedOriginKey = "gitops.flotilla.io/changed-origin"

// AppliedKey in status.history[0].metadata of a Kustomization is what it applied last, wholly: the digest of the
// objects, that of the artifact that they were built from, its revision, how many bytes the objects are, and the sources
// that they come from, between spaces; each source as GitRepository/shop/app, with commas between them. Missing: not known.
const AppliedKey = "gitops.flotilla.io/applied"

// AppliedCommitKey beside AppliedKey is what the artifact of that revision said of its commit, as JSON: who wrote it, what it
// is about, and who signed it. Missing: it said nothing.
const AppliedCommitKey = "gitops.flotilla.io/applied-commit"

// CommitStatusesAnnotation on an Alert says of which commits each Kustomization has a status of its own:
// "changed", which is the default, of those that change what it applies, or "all".
const CommitStatusesAnnotation = "gitops.flotilla.io/commit-statuses"

// CommitStatusesAll is the value of CommitStatusesAnnotation that asks for every commit.
const CommitStatusesAll = "all"

// LFSAnnotation on a GitRepository, with the value "true", asks for the content of files that Git LFS keeps
// elsewhere. In the metadata of an artifact it says that the artifact was made so.
const LFSAnnotation = "gitops.flotilla.io/lfs"

// ApprovedCommitAnnotation on a PullRequestReview that enforces approvals is the full hash of a commit that somebody approves of, with
// all that leads there, whatever approvals it lacks.
const ApprovedCommitAnnotation = "gitops.flotilla.io/approved-commit"

// RollbackProtectionAnnotation on a GitRepository, with the value RollbackProtectionHold, keeps its artifact where its
// ref moves to a commit that is not known to follow the one of the artifact.
const (
	RollbackProtectionAnnotation = "gitops.flotilla.io/rollback-protection"
	RollbackProtectionHold       = "hold"
)

// HistoryKey in the metadata of an artifact says that its commit is not known to follow the one before, in one line.
// There is none where it does, or nothing was before.
const HistoryKey = "gitops.flotilla.io/history"

// SubmodulesKey in the metadata of an artifact is a JSON list of the submodules whose files are part of it, each with path, url and commit.
const SubmodulesKey = "gitops.flotilla.io/submodules"

// SubmodulesLeftOutKey in the metadata of an artifact is a JSON list of the paths of submodules whose files are not part of it, as
// nobody asks for them.
const SubmodulesLeftOutKey = "gitops.flotilla.io/submodules-left-out"

// FetchedAnnotation on an ExternalArtifact is the digest of the artifact that is in the store, or that of one which is
// not, with ": " and the reason.
const FetchedAnnotation = "gitops.flotilla.io/fetched"

// CommitStatusFinalizer holds a CommitStatus until the forge knows that a status which is pending
// comes to no end.
const CommitStatusFinalizer = "gitops.flotilla.io/close"

// AllowDeleteTrailer ends a commit's message with objects that it may remove, which are precious
// or many: "Flotilla-Allow-Delete: namespace/shop".
const AllowDeleteTrailer = "Flotilla-Allow-Delete"

// NotAllowed begins names in CommitAllowDeleteKey that the message of the commit has elsewhere than where trailers are: they allow
// nothing.
const NotAllowed = "!"
