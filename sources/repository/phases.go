package repository

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/places"
	"github.com/flotilla-io/flotilla/policies/annotation"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/inclusion"
	"github.com/flotilla-io/flotilla/policies/provenance"
	"github.com/flotilla-io/flotilla/policies/trailer"
	"github.com/flotilla-io/flotilla/policies/unserved"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/cloudlogin"
	"github.com/flotilla-io/flotilla/sources/fetching"
	"github.com/flotilla-io/flotilla/sources/git"
	"github.com/flotilla-io/flotilla/sources/githubapp"
	"github.com/flotilla-io/flotilla/sources/lfs"
	"github.com/flotilla-io/flotilla/sources/signature"
	"github.com/flotilla-io/flotilla/sources/submodule"
)

// ReasonHostKey means that the SSH server could not be trusted; Flux has no such reason.
const ReasonHostKey = "HostKeyNotTrusted"

// state is what the phases of a reconcile have found out about one repository.
type state struct {
	object   *sourcev1.GitRepository
	interval time.Duration
	remote   *git.Remote
	forget   func() // drops the token that the remote has; nil for none
	commit   git.Commit
	// current means that the commit's artifact is stored already; inUse are older
	// artifacts in use.
	current bool
	inUse   []artifact.Used
	// keys are those whose signatures count, if the spec asks for signatures, and signed who signed the commit and
	// its tag. doubted means that the artifact of the status was not verified by such keys.
	keys    *signature.Keys
	signed  struct{ commit, tag *provenance.Signature }
	doubted bool
	// artifact is the new artifact; nil until it is stored.
	artifact *meta.Artifact
	// subject is the first line of the new artifact's commit message.
	subject string
	// fails is the condition that tells of the fault; empty for FetchFailed.
	fails string
	// included are the artifacts that belong into this one; nil until all were found.
	included []included
	// history is what is to be said if the commit is not known to follow the one before.
	history finding
	// from is where the remote is, and how it is read.
	from submodule.Source
}

// refuse returns an error for fields that are not supported, and for annotations
// that mean nothing, rather than ignoring them.
func (r *Reconciler) refuse(_ context.Context, s *state) (loop.Next, error) {
	if err := annotation.FaultOf(s.object); err != nil {
		return loop.Next{}, loop.Stalled(annotation.ReasonInvalid, err)
	}
	if field, why := unserved.GitRepository(s.object.Spec, r.opts.Clouds); field != "" {
		return loop.Next{}, loop.Stalled(fetching.ReasonUnsupported, errors.New(why))
	}
	if field, why := unserved.Reference(s.object.Spec.Reference); field != "" {
		return loop.Next{}, loop.Stalled(sourcev1.GitOperationFailedReason, errors.New(why))
	}
	return loop.Next{}, nil
}

// limit refuses a repository beyond its namespace's limit of sources.
func (r *Reconciler) limit(ctx context.Context, s *state) (loop.Next, error) {
	return loop.Next{}, r.limits.Sources(ctx, s.object, s.interval)
}

// outcome returns the metric's reason for a reconcile without an error.
func (s *state) outcome() string {
	if s.artifact != nil {
		return fetching.ReasonNewArtifact
	}
	return "UpToDate"
}

// connect finds out the credentials and creates the Remote. It opens no connection, but for a token of a GitHub App or of a cloud.
func (r *Reconciler) connect(ctx context.Context, s *state) (loop.Next, error) {
	opts := r.opts.Git
	opts.Timeout, opts.Since = defaultTimeout, r.wishes.since(s.object, s.interval)
	if s.object.Spec.Timeout != nil {
		opts.Timeout = s.object.Spec.Timeout.Duration
	}
	var err error
	if opts.Proxy, err = r.access.proxy(ctx, s); err != nil {
		return loop.Next{}, err
	}
	cred, err := r.access.credentials(ctx, s, opts)
	if err != nil {
		return loop.Next{}, err
	}
	s.from = submodule.Source{URL: s.object.Spec.URL, Credentials: cred, Options: opts}
	if s.remote, err = git.NewRemote(s.object.Spec.URL, cred, opts); err != nil {
		return loop.Next{}, s.classify(err)
	}
	return loop.Next{}, nil
}

// resolve asks the remote for the ref's commit, and checks whether its artifact
// is stored.
func (r *Reconciler) resolve(ctx context.Context, s *state) (loop.Next, error) {
	var err error
	if s.commit, err = s.remote.Resolve(ctx, refOf(s.object.Spec.Reference)); err != nil {
		return loop.Next{}, s.classify(err)
	}
	have := s.object.Status.Artifact
	s.current = !s.doubted && have.HasRevision(s.commit.Revision().String()) && r.sameSelection(s) &&
		r.store.Owns(ownerOf(client.ObjectKeyFromObject(s.object)), have.Digest) && r.store.Has(have.Digest)
	return loop.Next{}, nil
}

func refOf(ref *sourcev1.GitRepositoryRef) git.Ref {
	if ref == nil {
		return git.Ref{}
	}
	return git.Ref{Branch: ref.Branch, Tag: ref.Tag, SemVer: ref.SemVer, Name: ref.Name, Commit: ref.Commit}
}

// sameSelection reports whether the artifact was made with the present rules of
// which files belong to it.
func (r *Reconciler) sameSelection(s *state) bool {
	spec, status := s.object.Spec, s.object.Status
	return ptr.Equal(spec.Ignore, status.ObservedIgnore) && slices.Equal(spec.SparseCheckout, status.ObservedSparseCheckout) &&
		spec.RecurseSubmodules == status.ObservedRecurseSubmodules && fromLFS(s.object) == (status.Artifact.Metadata[gitopsv1alpha1.LFSAnnotation] == "true") &&
		inclusion.Same(s.object, artifactsOf(s.included))
}

// fetch transfers the commit and stores its files, unless they are stored
// already.
func (r *Reconciler) fetch(ctx context.Context, s *state) (loop.Next, error) {
	if s.current {
		return loop.Next{}, nil
	}
	// Where not even one byte fits into the limit, nothing is transferred.
	fits := func(size int64) error {
		return r.limits.Artifact(s.object, sourcev1.GitRepositoryKind, s.inUse, s.interval, size)
	}
	if err := fits(1); err != nil {
		return loop.Next{}, err
	}
	tree, err := s.take(ctx, s.commit)
	if err != nil {
		return loop.Next{}, s.classify(err)
	}
	defer tree.Close()
	if err := r.verifier.verify(s, tree); err != nil {
		return loop.Next{}, err
	}
	files, modules, err := r.collector.files(ctx, s, tree, s.commit)
	if err != nil {
		return loop.Next{}, s.classify(err)
	}
	ctx, leave, err := places.Compute(ctx)
	if err != nil {
		return loop.Next{}, err
	}
	defer leave()
	stored, err := r.store.PutWithin(ctx, ownerOf(client.ObjectKeyFromObject(s.object)), files, fits, fetching.Digests(s.inUse)...)
	if fetching.IsLimit(err) {
		return loop.Next{}, err
	}
	if err != nil {
		s.fails = sourcev1.StorageOperationFailedCondition
		return loop.Next{}, loop.Retry(sourcev1.ArchiveOperationFailedReason, err)
	}
	s.subject, _, _ = strings.Cut(strings.TrimSpace(tree.Message), "\n")
	s.artifact = &meta.Artifact{
		Digest: stored.Digest, Path: stored.Path, URL: stored.URL, Size: ptr.To(stored.Size),
		Revision: s.commit.Revision().String(), LastUpdateTime: metav1.NewTime(r.opts.Clock.Now()),
		Metadata: about(tree, s.subject),
	}
	if fromLFS(s.object) {
		s.artifact.Metadata[gitopsv1alpha1.LFSAnnotation] = "true"
	}
	if s.history.text != "" {
		s.artifact.Metadata[gitopsv1alpha1.HistoryKey] = s.history.text
	}
	inclusion.RecordSubmodules(s.artifact.Metadata, recorded(modules))
	if spec := s.object.Spec; !spec.RecurseSubmodules {
		if left, err := submodule.LeftOut(ctx, tree, spec.SparseCheckout); err == nil { // it only helps to explain
			inclusion.RecordLeftOut(s.artifact.Metadata, left)
		}
	}
	provenance.Record(s.artifact.Metadata, s.signed.commit, s.signed.tag)
	return loop.Next{}, nil
}

// recorded returns submodules as they are recorded with an artifact.
func recorded(modules []submodule.Module) []inclusion.Submodule {
	var out []inclusion.Submodule
	for _, m := range modules {
		out = append(out, inclusion.Submodule{Path: excerpt.Line(m.Path), URL: m.URL, Commit: m.Commit})
	}
	return out
}

// take transfers a commit, without files that belong to no artifact where the server can leave them out.
func (s *state) take(ctx context.Context, commit git.Commit) (*git.Tree, error) {
	if len(s.object.Spec.SparseCheckout) == 0 {
		return s.remote.Fetch(ctx, commit)
	}
	reads := s.selection().Reads
	return s.remote.FetchSome(ctx, commit, func(file string) bool { return file == submodule.File || reads(file) })
}

func (s *state) selection() artifact.Selection {
	return artifact.Selection{Ignore: s.object.Spec.Ignore, Directories: s.object.Spec.SparseCheckout}
}

// about returns the artifact's metadata about the commit.
func about(tree *git.Tree, subject string) map[string]string {
	out := map[string]string{}
	for key, value := range map[string]string{
		gitopsv1alpha1.CommitAuthorKey:  tree.Author,
		gitopsv1alpha1.CommitSubjectKey: subject,
	} {
		if value = line(value); value != "" {
			out[key] = value
		}
	}
	if names := trailer.Allowed(tree.Message); names != "" {
		out[gitopsv1alpha1.CommitAllowDeleteKey] = names
	}
	if !tree.Committed.IsZero() {
		out[gitopsv1alpha1.CommitDateKey] = tree.Committed.UTC().Format(time.RFC3339)
	}
	return out
}

// maxLine is how much of a line of a commit is recorded, in runes; anybody may
// have written it.
const maxLine = 200

// line returns foreign text as one line of bounded length without control
// characters.
func line(text string) string { return excerpt.Runes(excerpt.Line(text), maxLine) }

// classify returns the error with what is to be done about it: what only a change
// of the object can fix stalls; what a change elsewhere fixes is tried again
// after the interval; what may be transient is tried again soon.
func (s *state) classify(err error) error {
	if ref := s.object.Spec.ProxySecretRef; ref != nil {
		err = egress.Naming(err, s.object.Namespace+"/"+ref.Name)
	}
	waits := func(reason string) error { return loop.Waiting(reason, s.interval, err) }
	var known *loop.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, submodule.ErrUnusable), errors.Is(err, lfs.ErrUnusable):
		return waits(sourcev1.GitOperationFailedReason)
	case errors.Is(err, egress.ErrNotAllowed):
		return loop.Stalled(fetching.ReasonAddress, err)
	case errors.Is(err, git.ErrURL), errors.Is(err, cloudlogin.ErrHost):
		return loop.Stalled(sourcev1.URLInvalidReason, err)
	case errors.Is(err, git.ErrRef):
		return loop.Stalled(sourcev1.GitOperationFailedReason, err)
	case errors.Is(err, git.ErrHostKey):
		return waits(ReasonHostKey)
	case errors.Is(err, git.ErrCredentials), errors.Is(err, git.ErrUnauthorized), errors.Is(err, egress.ErrProxyUnauthorized),
		errors.Is(err, githubapp.ErrRefused), errors.Is(err, githubapp.ErrAnswer),
		errors.Is(err, cloudlogin.ErrCredentials), errors.Is(err, cloudlogin.ErrRefused):
		return waits(sourcev1.AuthenticationFailedReason)
	case errors.Is(err, artifact.ErrPath):
		return waits(sourcev1.InvalidPathReason)
	case errors.Is(err, git.ErrRefNotFound), errors.Is(err, git.ErrObjectFormat), errors.Is(err, git.ErrRepositoryNotFound), errors.Is(err, git.ErrRedirect),
		errors.Is(err, git.ErrTLS), errors.Is(err, git.ErrTooLarge), errors.Is(err, artifact.ErrTooLarge), errors.Is(err, artifact.ErrMalformed):
		return waits(sourcev1.GitOperationFailedReason)
	default:
		return loop.Retry(sourcev1.GitOperationFailedReason, err)
	}
}
