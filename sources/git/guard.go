package git

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"sync/atomic"

	"github.com/flotilla-io/flotilla/internal/addresses"
	"github.com/flotilla-io/flotilla/internal/egress"
)

// dialGuard decides by the resolved address whether a connection is allowed: the
// Dialer must allow it, and a repository on a public host must not redirect to a
// host that is not public, even in an allowed network. So a server on the
// internet cannot direct us to our own network.
type dialGuard struct {
	origin string // host:port of the repository
	egress egress.Dialer
	// originPublic is set once the repository's own host has resolved to a public
	// address.
	originPublic atomic.Bool
}

func newDialGuard(origin *url.URL, opts Options) *dialGuard {
	return &dialGuard{origin: net.JoinHostPort(origin.Hostname(), portOf(origin)), egress: opts.Egress}
}

// judge returns where a host is, given as host:port, or why no connection to it is
// allowed.
func (g *dialGuard) judge(ctx context.Context, address string) ([]netip.AddrPort, error) {
	own := address == g.origin
	at, err := g.egress.Resolve(ctx, address)
	if err != nil && !own {
		return nil, redirected(err)
	}
	if egress.IsAbsent(err) { // behind a proxy, where it is public if anything
		g.originPublic.Store(true)
	}
	if err != nil {
		return nil, err
	}
	for _, to := range at {
		if err := g.check(to.Addr(), own); err != nil {
			return nil, err
		}
	}
	return at, nil
}

// elsewhere stands in messages for a host named by a redirect.
const elsewhere = "a host that it redirects to"

// redirected returns an error about a host that a response named, without its
// name.
func redirected(err error) error {
	var refused *egress.NotAllowedError
	var unknown *net.DNSError
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("%w: %w", ErrRedirect, refused.Of(elsewhere))
	case errors.As(err, &unknown):
		return &net.DNSError{Err: unknown.Err, Name: elsewhere}
	default:
		return egress.Fault(err)
	}
}

func (g *dialGuard) check(addr netip.Addr, own bool) error {
	public := addresses.KindOf(addr) == addresses.Public
	switch {
	case own && public:
		g.originPublic.Store(true)
	case !own && !public && g.originPublic.Load():
		return fmt.Errorf("%w: from a public host to a private address", ErrRedirect)
	}
	return nil
}
