package bucket

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/sourceignore"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/places"
	"github.com/flotilla-io/flotilla/policies/unserved"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/fetching"
	"github.com/flotilla-io/flotilla/sources/s3"
)

// state is what the phases of a reconcile have found out about one source.
type state struct {
	object   *sourcev1.Bucket
	key      client.ObjectKey
	interval time.Duration
	secrets  fetching.Secrets
	known    *known
	// objects are those that belong to the artifact, and revision is what they are called.
	objects  []s3.Object
	revision string
	// current means that their artifact is stored already; inUse are older artifacts in use.
	current bool
	inUse   []artifact.Used
	// fetched is how many objects were transferred, and artifact the new artifact; nil until it is stored.
	fetched  int
	artifact *meta.Artifact
	// storing means that the fault is one of our storage, not of the server.
	storing bool
}

// outcome returns the metric's reason for a reconcile without an error.
func (s *state) outcome() string {
	if s.artifact != nil {
		return fetching.ReasonNewArtifact
	}
	return "UpToDate"
}

// refuse returns an error for fields that are not supported, rather than ignoring them.
func (r *Reconciler) refuse(_ context.Context, s *state) (loop.Next, error) {
	if _, why := unserved.Bucket(s.object.Spec, r.opts.Clouds); why != "" {
		return loop.Next{}, loop.Stalled(fetching.ReasonUnsupported, errors.New(why))
	}
	return loop.Next{}, nil
}

// limit refuses a source beyond its namespace's limit.
func (r *Reconciler) limit(ctx context.Context, s *state) (loop.Next, error) {
	return loop.Next{}, r.limits.Sources(ctx, s.object, s.interval)
}

// within bounds what one phase asks of the server by spec.timeout.
func (s *state) within(ctx context.Context) (context.Context, context.CancelFunc) {
	timeout := defaultTimeout
	if s.object.Spec.Timeout != nil {
		timeout = s.object.Spec.Timeout.Duration
	}
	return context.WithTimeout(ctx, timeout)
}

// late names spec.timeout in an error that it caused.
func late(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: it took longer than spec.timeout, set that to more", err)
	}
	return err
}

// exclude asks for the exclusions in the root of the bucket, where the list of objects does not say whether they have changed.
func exclude(ctx context.Context, s *state) (loop.Next, error) {
	if strings.HasPrefix(sourceignore.IgnoreFile, s.object.Spec.Prefix) {
		return loop.Next{}, nil
	}
	ctx, cancel := s.within(ctx)
	defer cancel()
	content, version, err := s.known.remote.Find(ctx, sourceignore.IgnoreFile, s.known.rulesVersion, artifact.MaxIgnoreFile)
	switch {
	case errors.Is(err, s3.ErrSame):
	case errors.Is(err, s3.ErrNotFound), errors.Is(err, s3.ErrUnauthorized): // keys may be for what is below the prefix alone
		s.known.rules, s.known.rulesVersion = nil, ""
	case err != nil:
		return loop.Next{}, s.classify(late(err))
	default:
		s.known.rules, s.known.rulesVersion = content, version
	}
	return loop.Next{}, nil
}

// list asks for the list of objects, and finds out whether their artifact is stored.
func (r *Reconciler) list(ctx context.Context, s *state) (loop.Next, error) {
	ctx, cancel := s.within(ctx)
	defer cancel()
	all, err := s.known.remote.List(ctx, s.object.Spec.Prefix)
	if err == nil {
		err = s.listed(ctx, all)
	}
	if err == nil {
		err = s.choose(all, r.opts.Limits)
	}
	if err != nil {
		return loop.Next{}, s.classify(late(err))
	}
	s.revision = s3.Revision(s.objects)
	have := s.object.Status.Artifact
	s.current = have.HasRevision(s.revision) && r.store.Owns(ownerOf(s.key), have.Digest) && r.store.Has(have.Digest)
	if s.current {
		s.known.made(have.Digest, s.revision, s.objects)
	}
	return loop.Next{}, nil
}

// listed reads the exclusions in the root of the bucket again if the list says that they have changed.
func (s *state) listed(ctx context.Context, all []s3.Object) error {
	if !strings.HasPrefix(sourceignore.IgnoreFile, s.object.Spec.Prefix) {
		return nil
	}
	for _, o := range all {
		switch {
		case o.Key != sourceignore.IgnoreFile:
		case o.Version() == s.known.rulesVersion:
			return nil
		case o.Size > artifact.MaxIgnoreFile:
			return fmt.Errorf("%s: %w", o.Key, artifact.ErrTooLarge)
		default:
			content, err := s.known.remote.Get(ctx, o)
			if err == nil {
				s.known.rules, s.known.rulesVersion = content, o.Version()
			}
			return err
		}
	}
	s.known.rules, s.known.rulesVersion = nil, ""
	return nil
}

// errNone means that no object belongs to the artifact.
var errNone = errors.New("no objects")

// choose takes the objects that belong to the artifact, within the limits. What ends with a slash stands for a folder.
func (s *state) choose(all []s3.Object, limits artifact.Limits) error {
	exclusions, err := artifact.NewExclusions(s.known.rules, s.object.Spec.Ignore)
	if err != nil {
		return err
	}
	var names []string
	var sizes []int64
	for _, o := range all {
		if strings.HasSuffix(o.Key, "/") || o.Key == sourceignore.IgnoreFile || exclusions.Has(o.Key) {
			continue
		}
		s.objects, names, sizes = append(s.objects, o), append(names, o.Key), append(sizes, o.Size)
	}
	if len(s.objects) == 0 {
		return fmt.Errorf("%w in bucket %s that spec.prefix, spec.ignore and .sourceignore leave: check these; the last artifact stays", errNone, s.object.Spec.BucketName)
	}
	if err := artifact.CheckNames(names); err != nil {
		return fmt.Errorf("the objects of bucket %s are no tree of files: %w: rename that, or exclude it with spec.ignore", s.object.Spec.BucketName, err)
	}
	return limits.Check(sizes)
}

// use finds the artifacts in use, in addition to the latest one.
func (r *Reconciler) use(ctx context.Context, s *state) (loop.Next, error) {
	var err error
	s.inUse, err = r.opts.InUse(ctx, s.key)
	return loop.Next{}, err
}

// fetch transfers the objects that have changed, and stores them with the others, unless that is stored already.
func (r *Reconciler) fetch(ctx context.Context, s *state) (loop.Next, error) {
	if s.current {
		return loop.Next{}, nil
	}
	fits := func(size int64) error {
		return r.limits.Artifact(s.object, sourcev1.BucketKind, s.inUse, s.interval, size)
	}
	// Where not even one byte fits into the limit, nothing is transferred.
	if err := fits(1); err != nil {
		return loop.Next{}, err
	}
	files, err := r.kept(ctx, s)
	if err != nil {
		return loop.Next{}, err
	}
	if err := s.transfer(ctx, files); err != nil {
		return loop.Next{}, s.classify(err)
	}
	ctx, leave, err := places.Compute(ctx)
	if err != nil {
		return loop.Next{}, err
	}
	defer leave()
	stored, err := r.store.PutWithin(ctx, ownerOf(s.key), files, fits, fetching.Digests(s.inUse)...)
	if fetching.IsLimit(err) {
		return loop.Next{}, err
	}
	if err != nil {
		s.storing = true
		return loop.Next{}, loop.Retry(sourcev1.ArchiveOperationFailedReason, err)
	}
	s.artifact = &meta.Artifact{
		Digest: stored.Digest, Path: stored.Path, URL: stored.URL, Size: ptr.To(stored.Size),
		Revision: s.revision, LastUpdateTime: metav1.NewTime(r.opts.Clock.Now()),
	}
	s.known.made(stored.Digest, s.revision, s.objects)
	return loop.Next{}, nil
}

// kept returns the files of the last artifact whose objects are still of the same version.
func (r *Reconciler) kept(ctx context.Context, s *state) (artifact.Files, error) {
	out := artifact.Files{}
	if s.known.digest == "" || !r.store.Owns(ownerOf(s.key), s.known.digest) || !r.store.Has(s.known.digest) {
		return out, nil
	}
	ctx, leave, err := places.Compute(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	last, err := r.store.Open(ctx, s.known.digest)
	if err != nil {
		return out, nil //nolint:nilerr // what is broken is fetched anew
	}
	for _, o := range s.objects {
		if file, found := last[o.Key]; found && !file.Link && s.known.versions[o.Key] == o.Version() && int64(len(file.Data)) == o.Size {
			out[o.Key] = file
		}
	}
	return out, nil
}

// atOnce is how many objects of a source are transferred side by side.
const atOnce = 4

// transfer adds the objects that are missing in files.
func (s *state) transfer(ctx context.Context, files artifact.Files) error {
	ctx, cancel := s.within(ctx)
	defer cancel()
	var missing []s3.Object
	for _, o := range s.objects {
		if _, found := files[o.Key]; !found {
			missing = append(missing, o)
		}
	}
	contents := make([][]byte, len(missing))
	group, all := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, o := range missing {
		group.Go(func() error {
			var err error
			contents[i], err = s.known.remote.Get(all, o)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return late(err)
	}
	for i, o := range missing {
		files[o.Key] = artifact.File{Data: contents[i]}
	}
	s.fetched = len(missing)
	return nil
}

// classify returns the error with what is to be done about it: what only a change of the object can fix stalls; what a change
// elsewhere fixes is tried again after the interval; what may be transient is tried again soon.
func (s *state) classify(err error) error {
	waits := func(reason string) error { return loop.Waiting(reason, s.interval, err) }
	switch {
	case errors.Is(err, egress.ErrNotAllowed):
		return loop.Stalled(fetching.ReasonAddress, err)
	case errors.Is(err, s3.ErrPlace):
		return loop.Stalled(sourcev1.URLInvalidReason, err)
	case errors.Is(err, s3.ErrCredentials), errors.Is(err, s3.ErrUnauthorized), errors.Is(err, egress.ErrProxyUnauthorized):
		return waits(sourcev1.AuthenticationFailedReason)
	case errors.Is(err, s3.ErrNotFound), errors.Is(err, s3.ErrRedirect), errors.Is(err, s3.ErrTLS), errors.Is(err, s3.ErrTooLarge), errors.Is(err, s3.ErrMalformed),
		errors.Is(err, artifact.ErrTooLarge), errors.Is(err, artifact.ErrMalformed), errors.Is(err, errNone):
		return waits(sourcev1.BucketOperationFailedReason)
	default:
		return loop.Retry(sourcev1.BucketOperationFailedReason, err)
	}
}
