package git

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/git/wire"
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
	// Proxy is the proxy of the repository's owner; nil for none. It comes before
	// those that Egress has. See egress.ParseProxy.
	Proxy *url.URL
	// Kept has what earlier Remotes have opened and learned; nil means that each
	// operation begins with nothing.
	Kept *Kept
	// Since lets Resolve take what others have resolved with Kept, of the same
	// repository with the same credentials, if they asked after this time. Zero means
	// that nobody else's counts.
	Since time.Time
}

// defaultTimeout is Flux's.
const defaultTimeout = 60 * time.Second

// Remote is a repository on a server. It may be used from several goroutines.
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

// Resolve returns the commit that ref points at. It asks for no more refs than
// that takes, where the server lets it choose; for a Ref with a Commit it sends no
// request.
//
// Errors: ErrRef, ErrRefNotFound, ErrUnauthorized, ErrRepositoryNotFound,
// ErrHostKey, ErrTLS, ErrRedirect, ErrTooLarge, ErrObjectFormat and ErrMalformed,
// and egress.NotAllowedError; anything else is a transport fault and may be
// retried.
func (r *Remote) Resolve(ctx context.Context, ref Ref) (Commit, error) {
	if c, ok, err := ref.fixed(); ok || err != nil {
		return c, err
	}
	if r.opts.Kept == nil || r.opts.Since.IsZero() {
		return resolve(ctx, r, ref)
	}
	type question struct {
		of      identity
		ref     Ref
		timeout time.Duration
	}
	key := question{identityOfAll(r), ref, r.opts.Timeout}
	return r.opts.Kept.resolved.Get(ctx, key, r.opts.Since, func(ctx context.Context) (Commit, error) { return resolve(ctx, r, ref) })
}

func resolve(ctx context.Context, r *Remote, ref Ref) (Commit, error) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	var commit Commit
	var fault error
	err := r.converse(ctx, uploadPack, func(c *conversation) error {
		refs, err := c.list(ctx, c.limits.Refs, ref.prefix())
		if err != nil {
			return err
		}
		commit, fault = ref.find(refs)
		if errors.Is(fault, ErrRefNotFound) {
			fault = fmt.Errorf("%w%s", fault, ref.hint(func() wire.Refs { return c.branches(ctx) }))
		}
		return nil
	})
	if err != nil {
		return Commit{}, r.wrap(ctx, "list refs", err)
	}
	if fault != nil {
		return Commit{}, r.wrap(ctx, "resolve", fault)
	}
	commit.listed = true
	return commit, nil
}

// Fetch transfers one commit's tree, or what is new in it where Kept has objects of the
// repository. The caller must close the Tree. Errors: as Resolve.
func (r *Remote) Fetch(ctx context.Context, c Commit) (*Tree, error) {
	return r.fetch(ctx, c, stock{wanted: anything}, byHash, byHistory)
}

func anything(string) bool { return true }

// FetchSome transfers one commit's tree, and of its files only the wanted ones
// where the server can leave out the others. Those cannot be read then. The caller
// must close the Tree. Errors: as Resolve.
func (r *Remote) FetchSome(ctx context.Context, c Commit, wanted func(file string) bool) (*Tree, error) {
	return r.fetch(ctx, c, stock{some: true, wanted: wanted}, without(wanted), byHash, byHistory)
}

// fetch requests a commit in one way after the other: a server may refuse what it
// says that it can do, or a commit that no ref points at.
func (r *Remote) fetch(ctx context.Context, c Commit, near stock, ways ...way) (*Tree, error) {
	if err := checkCommit(c.Hash); err != nil {
		return nil, r.wrap(ctx, "fetch", err)
	}
	near.remote = r
	end, err := near.begin(ctx, c)
	if err != nil {
		return nil, r.wrap(ctx, "fetch", err)
	}
	defer end()
	if t := near.tree(ctx, c); t != nil {
		return t, nil
	}
	if near.kept != nil && !near.kept.Grown(near.kept.Pack().Size()) {
		ways = append([]way{near.changes}, ways...)
	}
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	var t *Tree
	for _, request := range ways {
		err = r.converse(ctx, uploadPack, func(conv *conversation) (err error) {
			near.usable = conv.greeting.V2
			t, err = request(ctx, conv, c)
			return err
		})
		var refused *wire.Refusal
		if !errors.As(err, &refused) && !errors.Is(err, errNotThisWay) {
			break
		}
	}
	if err != nil {
		return nil, r.wrap(ctx, "fetch "+c.Revision().Short(), refusal(err))
	}
	near.keep(ctx, c, t)
	return t, nil
}

// wrap adds the operation and the URL to an error, and makes timeouts readable.
func (r *Remote) wrap(ctx context.Context, what string, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s of %s: no answer within %s: %w", what, r.name, r.opts.Timeout, context.DeadlineExceeded)
	}
	return fmt.Errorf("%s of %s: %w", what, r.name, err)
}
