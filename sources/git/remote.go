package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/flotilla-io/flotilla/internal/egress"
)

const (
	schemeHTTP  = "http"
	schemeHTTPS = "https"
	schemeSSH   = "ssh"
)

// Limits bound what a remote may send. Zero fields take the default.
type Limits struct {
	// Refs is the maximum size of the list of refs, in bytes. Default 32 MiB.
	Refs int64
	// Pack is the maximum size of a transfer, in bytes. Default 256 MiB.
	Pack int64
	// Objects is the maximum number of objects in a transfer. Default 500,000.
	Objects int
	// Object is the maximum size of one unpacked object, in bytes. Default 64 MiB.
	Object int64
	// Unpacked is the maximum size of all unpacked objects, in bytes. Default 1
	// GiB.
	Unpacked int64
}

func (l Limits) withDefaults() Limits {
	orElse(&l.Refs, 32<<20)
	orElse(&l.Pack, 256<<20)
	orElse(&l.Objects, 500_000)
	orElse(&l.Object, 64<<20)
	orElse(&l.Unpacked, 1<<30)
	return l
}

func orElse[T comparable](v *T, fallback T) {
	var zero T
	if *v == zero {
		*v = fallback
	}
}

// Options configure a Remote.
type Options struct {
	// Timeout bounds each operation. Zero means 60 s.
	Timeout time.Duration
	// TempDir is the folder where transfers are spooled; empty means the system's.
	TempDir string
	// Limits bound what a remote may send.
	Limits Limits
	// Egress opens connections. Its zero value reaches public addresses only.
	Egress egress.Dialer
}

// defaultTimeout is Flux's.
const defaultTimeout = 60 * time.Second

// Remote is a repository on a server. It keeps no connection between calls and
// may be used from several goroutines.
type Remote struct {
	url  *url.URL
	name string // the URL without user information, for messages
	cred Credentials
	opts Options
}

// NewRemote returns the repository at rawURL, which is http, https or ssh.
// Credentials in an http(s) URL are used if cred has none. Errors: ErrURL,
// ErrCredentials.
func NewRemote(rawURL string, cred Credentials, opts Options) (*Remote, error) {
	u, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	if u.Scheme == schemeSSH && cred.signer == nil {
		return nil, fmt.Errorf("%w: ssh needs a Secret with the keys identity and known_hosts", ErrCredentials)
	}
	if u.User.Username() != "" && u.Scheme != schemeSSH && cred.Username == "" && cred.BearerToken == "" {
		cred.Username = u.User.Username() // without a password, it is a token
		cred.Password, _ = u.User.Password()
	}
	orElse(&opts.Timeout, defaultTimeout)
	opts.Limits = opts.Limits.withDefaults()
	return &Remote{url: u, name: MaskURL(rawURL), cred: cred, opts: opts}, nil
}

// parseURL parses an http, https or ssh URL with a host and a path. Errors:
// ErrURL.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: want https://host/path or ssh://user@host/path; user@host:path is not a URL", ErrURL)
	}
	switch {
	case u.Scheme != schemeHTTP && u.Scheme != schemeHTTPS && u.Scheme != schemeSSH:
		return nil, fmt.Errorf("%w: %q must start with https://, http:// or ssh://", ErrURL, MaskURL(raw))
	case u.Hostname() == "" || strings.HasPrefix(u.Hostname(), "-"):
		return nil, fmt.Errorf("%w: %q names no host", ErrURL, MaskURL(raw))
	case strings.Trim(u.Path, "/") == "" || strings.HasPrefix(u.Path, "/-") && u.Scheme == schemeSSH:
		return nil, fmt.Errorf("%w: %q names no repository on the host", ErrURL, MaskURL(raw))
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%w: %q goes on after the repository, remove what follows '?' or '#'", ErrURL, MaskURL(raw))
	case strings.ContainsAny(u.Path, "\x00\r\n"):
		return nil, fmt.Errorf("%w: control characters in the path", ErrURL)
	}
	return u, nil
}

// connection is one conversation with a service of the remote.
type connection interface {
	// refs reads the refs that the remote advertises; it must be called first, and
	// only once.
	refs(ctx context.Context) (*packp.AdvRefs, error)
	// exchange sends one request and returns the response, which the caller
	// closes.
	exchange(ctx context.Context, request func(io.Writer) error) (io.ReadCloser, error)
	// close ends the conversation.
	close()
}

const (
	uploadPack  = "git-upload-pack"
	receivePack = "git-receive-pack"
)

func (r *Remote) connect(ctx context.Context, service string) (connection, error) {
	if r.url.Scheme == schemeSSH {
		return r.connectSSH(ctx, service)
	}
	return r.connectHTTP(service), nil
}

// Resolve returns the commit that ref points at. It transfers only the remote's
// list of refs; for a Ref with a Commit it sends no request.
//
// Errors: ErrRef, ErrRefNotFound, ErrUnauthorized, ErrRepositoryNotFound,
// ErrHostKey, ErrTLS, ErrRedirect, ErrTooLarge and ErrMalformed, and
// egress.NotAllowedError; anything else is a transport fault and may be retried.
func (r *Remote) Resolve(ctx context.Context, ref Ref) (Commit, error) {
	if c, ok, err := ref.fixed(); ok || err != nil {
		return c, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	conn, err := r.connect(ctx, uploadPack)
	if err != nil {
		return Commit{}, r.wrap(ctx, "list refs", err)
	}
	defer conn.close()
	adv, err := r.advertisement(ctx, conn)
	if err != nil {
		return Commit{}, r.wrap(ctx, "list refs", err)
	}
	c, err := ref.find(advertised{refs: adv.References, peeled: adv.Peeled})
	if err != nil {
		return Commit{}, r.wrap(ctx, "resolve", err)
	}
	return c, nil
}

// advertisement returns the refs of the remote; an empty repository has none.
func (r *Remote) advertisement(ctx context.Context, conn connection) (*packp.AdvRefs, error) {
	adv, err := conn.refs(ctx)
	if errors.Is(err, packp.ErrEmptyAdvRefs) {
		return packp.NewAdvRefs(), nil
	}
	return adv, err
}

// Fetch transfers one commit's tree. The caller must close the Tree.
func (r *Remote) Fetch(ctx context.Context, c Commit) (*Tree, error) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	t, err := r.fetch(ctx, c)
	if err != nil {
		return nil, r.wrap(ctx, "fetch "+c.Revision().Short(), err)
	}
	return t, nil
}

func (r *Remote) fetch(ctx context.Context, c Commit) (*Tree, error) {
	if !commitHash.MatchString(c.Hash) {
		return nil, fmt.Errorf("%w: commit %q must be 40 lower-case hex digits", ErrRef, c.Hash)
	}
	conn, err := r.connect(ctx, uploadPack)
	if err != nil {
		return nil, err
	}
	defer conn.close()
	adv, err := r.advertisement(ctx, conn)
	if err != nil {
		return nil, err
	}
	want, shallow, err := r.wants(adv, c)
	if err != nil {
		return nil, err
	}
	tag := plumbing.ZeroHash
	if h, ok := adv.References[c.Reference]; ok && c.Tag != "" && h.String() == c.Tag {
		tag = h
		if !slices.Contains(want, h) {
			want = append(want, h)
		}
	}
	p, err := r.transfer(ctx, conn, adv.Capabilities, want, shallow)
	if err != nil {
		return nil, err
	}
	t, err := newTree(p, plumbing.NewHash(c.Hash), tag)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		err = fmt.Errorf("commit %s: %w; it is in no history that the server offers, change spec.ref.commit or name its branch", c.Hash, ErrRefNotFound)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return t, nil
}

// wants returns the hashes to request in order to get the commit, and whether
// without history. Where the server does not serve the commit by its hash, it is
// the whole history that should contain it.
func (r *Remote) wants(adv *packp.AdvRefs, c Commit) ([]plumbing.Hash, bool, error) {
	hash := plumbing.NewHash(c.Hash)
	shallow := adv.Capabilities.Supports(capability.Shallow)
	if adv.Capabilities.Supports(capability.AllowReachableSHA1InWant) {
		return []plumbing.Hash{hash}, shallow, nil
	}
	if tip, ok := tipOf(adv, hash); ok {
		return []plumbing.Hash{tip}, shallow, nil
	}
	if c.Reference != "" {
		if h, ok := adv.References[c.Reference]; ok {
			return []plumbing.Hash{h}, false, nil
		}
		return nil, false, fmt.Errorf("%s: %w", strings.TrimPrefix(c.Reference, branchPrefix), ErrRefNotFound)
	}
	seen := map[plumbing.Hash]bool{}
	var all []plumbing.Hash
	for name, h := range adv.References {
		if (strings.HasPrefix(name, branchPrefix) || strings.HasPrefix(name, tagPrefix)) && !seen[h] {
			seen[h] = true
			all = append(all, h)
		}
	}
	if len(all) == 0 {
		return nil, false, fmt.Errorf("commit %s: %w; the repository is empty", c.Hash, ErrRefNotFound)
	}
	return all, false, nil
}

// tipOf returns the hash to request for a commit that a ref points at. A server
// may serve the commit of an annotated tag only with the tag, so for one it is
// the tag's hash.
func tipOf(adv *packp.AdvRefs, commit plumbing.Hash) (tip plumbing.Hash, found bool) {
	for name, hash := range adv.References {
		switch {
		case hash == commit:
			return hash, true
		case adv.Peeled[name] == commit:
			tip, found = hash, true
		}
	}
	return tip, found
}

// wrap adds the operation and the URL to an error, and makes timeouts readable.
func (r *Remote) wrap(ctx context.Context, what string, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s of %s: no answer within %s: %w", what, r.name, r.opts.Timeout, context.DeadlineExceeded)
	}
	return fmt.Errorf("%s of %s: %w", what, r.name, err)
}
