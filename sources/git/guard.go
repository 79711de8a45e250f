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
)

// dialGuard decides by address, once resolved, where connections may go. The
// repository's own host may be anywhere but link-local; a host that a redirect
// names may be private only if the repository's own host is. This stops a
// server on the internet from making us talk to our own network.
type dialGuard struct {
	origin string // host:port of the repository
	opts   Options
	// originPublic is set once the repository's own host resolved to a
	// public address.
	originPublic atomic.Bool
}

func newDialGuard(origin *url.URL, opts Options) *dialGuard {
	return &dialGuard{origin: net.JoinHostPort(origin.Hostname(), portOf(origin)), opts: opts}
}

func (g *dialGuard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := g.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	own := address == g.origin
	var faults []error
	for _, addr := range addrs {
		addr = addr.Unmap()
		if err := g.check(addr, own); err != nil {
			return nil, fmt.Errorf("%s: %w", host, err)
		}
		conn, err := g.opts.Dial(ctx, network, net.JoinHostPort(addr.String(), port))
		if err == nil {
			return conn, nil
		}
		faults = append(faults, err)
	}
	return nil, errors.Join(faults...)
}

func (g *dialGuard) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	addrs, err := g.opts.LookupNetIP(ctx, "ip", host)
	if err == nil && len(addrs) == 0 {
		err = fmt.Errorf("no address for host %q", host)
	}
	return addrs, err
}

func (g *dialGuard) check(addr netip.Addr, own bool) error {
	target := addresses.Plain(addr)
	local := target.IsPrivate() || target.IsLoopback() || sharedSpace.Contains(target)
	switch {
	case addresses.Reserved(addr):
		return fmt.Errorf("%w: %s is a link-local or reserved address", ErrRedirect, addr)
	case own && !local:
		g.originPublic.Store(true)
	case !own && local && g.originPublic.Load():
		return fmt.Errorf("%w: from a public host to the private address %s", ErrRedirect, addr)
	}
	return nil
}

// sharedSpace is used like private addresses by providers and overlays.
var sharedSpace = netip.MustParsePrefix("100.64.0.0/10")
