package oci

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/egress"
)

// Options configure access to registries. Zero fields take the default.
type Options struct {
	// Egress decides which addresses are reached.
	Egress egress.Dialer
	// Timeout is for all that one call asks for. Default 60 s.
	Timeout time.Duration
	// Clock returns the time by which tokens end. Default: the system's.
	Clock clock.PassiveClock
	// Limits bound answers.
	Limits Limits
}

// Limits bound answers of a registry. Zero fields take the default.
type Limits struct {
	// Manifest is the size of a manifest, or of a page of tags, in bytes. Default 4 MiB.
	Manifest int64
	// Layer is the size of a layer, as it is sent, in bytes. Default 50 MiB.
	Layer int64
	// Tags is how many tags of a repository are looked at. Default 100,000.
	Tags int
}

func (o Options) withDefaults() Options {
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Limits.Manifest == 0 {
		o.Limits.Manifest = 4 << 20
	}
	if o.Limits.Layer == 0 {
		o.Limits.Layer = 50 << 20
	}
	if o.Limits.Tags == 0 {
		o.Limits.Tags = 100_000
	}
	return o
}

// Access is how a registry is spoken to.
type Access struct {
	// Login authenticates.
	Login Login
	// TLS has a client certificate, and the authorities to trust; nil means the system's.
	TLS *tls.Config
	// Proxy is the proxy of the source's owner; nil for none. It comes before those that Egress has. See egress.ParseProxy.
	Proxy *url.URL
	// Insecure speaks HTTP.
	Insecure bool
	// Writes says that things will be written, which Send does: the registry is asked for leave to do that from the beginning.
	Writes bool
	// Hints are the next steps that errors name.
	Hints Hints
}

// Hints are the next steps that errors name: those who read them write things in different places. The zero value names the fields
// of an OCIRepository.
type Hints struct {
	// Login is what to do where a login is wanted and there is none, and Denied where one is not accepted.
	Login, Denied string
	// Absent is what to do where something is not found, and Authority where a certificate is not trusted.
	Absent, Authority string
	// Insecure is what has HTTP spoken.
	Insecure string
}

// fields are the hints of an OCIRepository.
func fields(host string) Hints {
	return Hints{
		Login:     "the registry wants a login, name a Secret that has one for " + host + " in spec.secretRef",
		Denied:    "check the login for the registry in the Secret, and what it may read",
		Absent:    "check spec.url and spec.ref, and the credentials if the repository is private",
		Authority: "put the authority in ca.crt of the Secret of spec.certSecretRef",
		Insecure:  "spec.insecure",
	}
}

// Remote is one repository of a registry. It remembers how the registry wants to be asked, so that the next call asks once; it is
// for one goroutine at a time.
type Remote struct {
	repo     name.Repository
	registry *registry
	opts     Options
}

// NewRemote returns the repository that a URL such as oci://ghcr.io/org/app names; it opens no connection. Errors: ErrURL.
func NewRemote(address string, access Access, opts Options) (*Remote, error) {
	repo, err := repository(address)
	if err != nil {
		return nil, err
	}
	base := &url.URL{Scheme: "https", Host: repo.RegistryStr()}
	if access.Insecure {
		base.Scheme = "http"
	}
	opts = opts.withDefaults()
	hints := access.Hints
	if hints == (Hints{}) {
		hints = fields(base.Host)
	}
	return &Remote{repo: repo, opts: opts, registry: &registry{
		base: base, repository: repo.RepositoryStr(), login: access.Login, clock: opts.Clock, client: newClient(base, access, opts.Egress),
		hints: hints, writes: access.Writes,
	}}, nil
}

// Place returns the registry and the repository that a URL names, by which Logins are chosen. Errors: ErrURL.
func Place(address string) (host, path string, err error) {
	repo, err := repository(address)
	if err != nil {
		return "", "", err
	}
	return repo.RegistryStr(), repo.RepositoryStr(), nil
}

// Close closes what connections there are.
func (r *Remote) Close() { r.registry.client.CloseIdleConnections() }

// Resolve asks which artifact a reference stands for: one request, if the registry is known already and the reference is no
// range of versions, and none for a digest. Errors: ErrRef, ErrNotFound, ErrUnauthorized, BusyError and others.
func (r *Remote) Resolve(ctx context.Context, ref Ref) (Target, error) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	if err := ref.Check(); err != nil {
		return Target{}, err
	}
	if ref.Digest != "" {
		return Target{Digest: ref.Digest}, nil
	}
	target := Target{Tag: ref.Tag}
	var err error
	if ref.SemVer != "" {
		if target.Tag, err = r.highest(ctx, ref); err != nil {
			return Target{}, r.about("list the tags", err)
		}
	}
	if target.Tag == "" {
		target.Tag = DefaultTag
	}
	if target.Digest, err = r.digest(ctx, target.Tag); errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("%w; which tags there are: flotilla list artifacts oci://%s", err, r.repo.Name())
	}
	if err != nil {
		return Target{}, r.about("ask for the tag "+target.Tag, err)
	}
	return target, nil
}

// about adds to an error what was asked for.
func (r *Remote) about(what string, err error) error {
	return fmt.Errorf("%s of %s: %w", what, r.repo.Name(), err)
}

// digest asks for the digest of a tag.
func (r *Remote) digest(ctx context.Context, tag string) (string, error) {
	resp, err := r.registry.do(ctx, http.MethodHead, r.Path("manifests", tag))
	switch {
	case err == nil:
		_ = resp.Body.Close()
		if digest := resp.Header.Get("Docker-Content-Digest"); digests.MatchString(digest) {
			return digest, nil
		}
	case !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrStatus):
		return "", err
	}
	// Some registries do not answer HEAD, or leave out the digest.
	_, content, said, err := r.manifest(ctx, tag)
	if err != nil {
		return "", err
	}
	digest := digestOf(content)
	if said != "" && said != digest {
		return "", fmt.Errorf("%w: the manifest", ErrDigest)
	}
	return digest, nil
}

// manifest returns a manifest by its tag or its digest, and what the registry says that its digest is.
func (r *Remote) manifest(ctx context.Context, reference string) (mediaType string, content []byte, digest string, err error) {
	resp, err := r.registry.do(ctx, http.MethodGet, r.Path("manifests", reference))
	if err != nil {
		return "", nil, "", err
	}
	defer resp.Body.Close()
	content, err = read(resp.Body, r.opts.Limits.Manifest, "the manifest")
	return resp.Header.Get("Content-Type"), content, resp.Header.Get("Docker-Content-Digest"), err
}

// read reads an answer.
func read(body io.Reader, limit int64, what string) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, egress.Fault(err)
	}
	if int64(len(content)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes: %w", what, limit, ErrTooLarge)
	}
	return content, nil
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// highest returns the tag of the highest version within a range.
func (r *Remote) highest(ctx context.Context, ref Ref) (string, error) {
	within, err := ref.versions()
	if err != nil {
		return "", err
	}
	best := ""
	if err := each(ctx, r, func(tag string) { best = within.better(best, tag) }); err != nil {
		if errors.Is(err, errEndless) {
			err = fmt.Errorf("%w; name a tag in spec.ref.tag", err)
		}
		return "", err
	}
	if best == "" {
		return "", fmt.Errorf("no version within %q of spec.ref.semver: %w", ref.SemVer, ErrNotFound)
	}
	return best, nil
}

// errEndless is a list of tags that is not read to its end.
var errEndless = fmt.Errorf("a list without an end: %w", ErrTooLarge)

// Tags returns the tags of the repository, in the registry's order. Errors: those of Resolve, and ErrTooLarge.
func (r *Remote) Tags(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	var out []string
	if err := each(ctx, r, func(tag string) { out = append(out, tag) }); err != nil {
		return nil, r.about("list the tags", err)
	}
	return out, nil
}

// each calls a function with each tag of a repository.
func each(ctx context.Context, r *Remote, see func(tag string)) error {
	seen := 0
	for next := r.Path("tags", "list"); next != nil; {
		var page struct {
			Tags []string `json:"tags"`
		}
		link, err := r.tags(ctx, next, &page)
		if err != nil {
			return err
		}
		if seen += len(page.Tags); seen > r.opts.Limits.Tags || link != "" && len(page.Tags) == 0 {
			return fmt.Errorf("more than %d tags, or %w", r.opts.Limits.Tags, errEndless)
		}
		for _, tag := range page.Tags {
			see(tag)
		}
		if next, err = after(next, link); err != nil {
			return err
		}
	}
	return nil
}

// tags reads one page of tags, and returns the header that leads to the next.
func (r *Remote) tags(ctx context.Context, at *url.URL, page any) (link string, err error) {
	resp, err := r.registry.do(ctx, http.MethodGet, at)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	content, err := read(resp.Body, r.opts.Limits.Manifest, "a list of tags")
	if err != nil {
		return "", err
	}
	if json.Unmarshal(content, page) != nil {
		return "", fmt.Errorf("%w: the list of tags is no JSON that is understood", ErrMalformed)
	}
	return resp.Header.Get("Link"), nil
}

// after returns the next page of a list: the same list, from elsewhere. It is nil after the last.
func after(at *url.URL, link string) (*url.URL, error) {
	target, params, found := strings.Cut(strings.TrimPrefix(link, "<"), ">")
	if link == "" || !found || !strings.Contains(params, "next") {
		return nil, nil
	}
	to, err := at.Parse(target)
	if err != nil || !sameOrigin(to, at) || to.Path != at.Path || to.RawQuery == at.RawQuery {
		return nil, fmt.Errorf("%w: the next page of tags is another list", ErrMalformed)
	}
	return &url.URL{Scheme: at.Scheme, Host: at.Host, Path: at.Path, RawQuery: to.RawQuery}, nil
}

// Path returns the URL of something in the repository, for Send.
func (r *Remote) Path(what, which string) *url.URL {
	u := *r.registry.base
	u.Path = "/v2/" + r.registry.repository + "/" + what + "/" + which
	return &u
}

// Manifest returns the manifest of a digest. An index leads to that of linux/amd64. Errors: ErrDigest, ErrMalformed, ErrLayer,
// ErrTooLarge and those of Resolve.
func (r *Remote) Manifest(ctx context.Context, digest string) (Manifest, error) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	m, next, err := parsed(ctx, r, digest)
	if err == nil && next != nil {
		if m, next, err = parsed(ctx, r, next.Digest); err == nil && next != nil {
			err = fmt.Errorf("%w: the index leads to another index", ErrMalformed)
		}
	}
	if err != nil {
		return Manifest{}, r.about("read the manifest "+digest, err)
	}
	return m, nil
}

// Describe returns what the manifest or index of a digest is. Errors: those of Manifest.
func (r *Remote) Describe(ctx context.Context, digest string) (Descriptor, error) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	mediaType, content, err := r.verified(ctx, digest)
	if err != nil {
		return Descriptor{}, r.about("read the manifest "+digest, err)
	}
	var says document
	if json.Unmarshal(content, &says) == nil && says.MediaType != "" {
		mediaType = says.MediaType // which the digest vouches for
	}
	mediaType, _, _ = strings.Cut(mediaType, ";")
	return Descriptor{MediaType: mediaType, Digest: digest, Size: int64(len(content))}, nil
}

// parsed reads a manifest, or the entry of an index that it leads to.
func parsed(ctx context.Context, r *Remote, digest string) (Manifest, *Descriptor, error) {
	mediaType, content, err := r.verified(ctx, digest)
	if err != nil {
		return Manifest{}, nil, err
	}
	return parse(mediaType, content)
}

// verified returns a manifest, which is what its digest says.
func (r *Remote) verified(ctx context.Context, digest string) (mediaType string, content []byte, err error) {
	mediaType, content, _, err = r.manifest(ctx, digest)
	if err == nil && digestOf(content) != digest {
		err = fmt.Errorf("%w: the manifest", ErrDigest)
	}
	return mediaType, content, err
}

// Layer returns the bytes of a layer, as they were sent: what the digest vouches for. Errors: ErrDigest, ErrTooLarge and those of
// Resolve.
func (r *Remote) Layer(ctx context.Context, layer Descriptor) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	if err := layer.check("a layer"); err != nil {
		return nil, err
	}
	content, err := r.blob(ctx, layer)
	if err != nil {
		return nil, r.about("read the layer "+layer.Digest, err)
	}
	return content, nil
}

func (r *Remote) blob(ctx context.Context, layer Descriptor) ([]byte, error) {
	if layer.Size > r.opts.Limits.Layer {
		return nil, fmt.Errorf("it has more than %d bytes: %w", r.opts.Limits.Layer, ErrTooLarge)
	}
	resp, err := r.registry.do(ctx, http.MethodGet, r.Path("blobs", layer.Digest))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(io.LimitReader(resp.Body, layer.Size+1))
	switch {
	case err != nil:
		return nil, egress.Fault(err)
	case int64(len(content)) != layer.Size, digestOf(content) != layer.Digest:
		return nil, fmt.Errorf("%w: the layer", ErrDigest)
	default:
		return content, nil
	}
}
