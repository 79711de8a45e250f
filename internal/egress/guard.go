package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"

	"github.com/flotilla-io/flotilla/internal/addresses"
)

// ErrRedirect means that a server named an address to which it may not lead.
var ErrRedirect = errors.New("redirect refused")

// elsewhere stands in messages for a host that a response named.
const elsewhere = "a host that it redirects to"

// Guard judges, for a Way, a server that a tenant names, and where that redirects. The Dialer decides on each address; and a server on a
// public address leads to no other, even in a network that is allowed: so one on the internet cannot send us into our own network.
type Guard struct {
	// Origin is the server, as host:port.
	Origin string
	Dialer Dialer

	public atomic.Bool // whether the origin has resolved to a public address
}

// Judge returns where a host is, given as host:port, or why no connection to it is allowed. Errors: those of Dialer; ErrRedirect, with
// no name that a response had.
func (g *Guard) Judge(ctx context.Context, address string) ([]netip.AddrPort, error) {
	own := address == g.Origin
	at, err := g.Dialer.Resolve(ctx, address)
	if err != nil && !own {
		return nil, redirected(err)
	}
	if IsAbsent(err) { // behind a proxy, where it is public if anything
		g.public.Store(true)
	}
	if err != nil {
		return nil, err
	}
	for _, to := range at {
		public := addresses.KindOf(to.Addr()) == addresses.Public
		switch {
		case own && public:
			g.public.Store(true)
		case !own && !public && g.public.Load():
			return nil, fmt.Errorf("%w: from a public host to a private address", ErrRedirect)
		}
	}
	return at, nil
}

// redirected returns an error about a host that a response named, without its name.
func redirected(err error) error {
	var refused *NotAllowedError
	var unknown *net.DNSError
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("%w: %w", ErrRedirect, refused.Of(elsewhere))
	case errors.As(err, &unknown):
		return &net.DNSError{Err: unknown.Err, Name: elsewhere}
	default:
		return Fault(err)
	}
}
