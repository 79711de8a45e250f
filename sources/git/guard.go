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

// dialGuard decides by address, once resolved, where connections may go: where
// the Dialer lets them, and from a public host on to public hosts only, whatever
// networks are allowed. This stops a server on the internet from making us talk to
// our own network.
type dialGuard struct {
	origin string // host:port of the repository
	egress egress.Dialer
	// originPublic is set once the repository's own host resolved to a
	// public address.
	originPublic atomic.Bool
}

func newDialGuard(origin *url.URL, opts Options) *dialGuard {
	return &dialGuard{origin: net.JoinHostPort(origin.Hostname(), portOf(origin)), egress: opts.Egress}
}

func (g *dialGuard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	own := address == g.origin
	at, err := g.egress.Resolve(ctx, address)
	if err != nil && !own {
		return nil, redirected(err)
	}
	if err != nil {
		return nil, err
	}
	for _, to := range at {
		if err := g.check(to.Addr(), own); err != nil {
			return nil, err
		}
	}
	return g.egress.Connect(ctx, network, address, at)
}

// elsewhere is what messages call a host that an answer has named.
const elsewhere = "a host that it redirects to"

// redirected is an error about a host that is part of an answer: its name is not
// shown.
func redirected(err error) error {
	var refused *egress.NotAllowedError
	var unknown *net.DNSError
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("%w: %w", ErrRedirect, &egress.NotAllowedError{Host: elsewhere, Name: refused.Name, Kind: refused.Kind, Own: refused.Own})
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
