package git

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"sync/atomic"
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
	target := plain(addr)
	local := target.IsPrivate() || target.IsLoopback() || sharedSpace.Contains(target)
	switch {
	case Reserved(addr):
		return fmt.Errorf("%w: %s is a link-local or reserved address", ErrRedirect, addr)
	case own && !local:
		g.originPublic.Store(true)
	case !own && local && g.originPublic.Load():
		return fmt.Errorf("%w: from a public host to the private address %s", ErrRedirect, addr)
	}
	return nil
}

var (
	// sharedSpace is used like private addresses by providers and overlays.
	sharedSpace = netip.MustParsePrefix("100.64.0.0/10")
	// translated is where IPv4 addresses are reached by IPv6.
	translated = netip.MustParsePrefix("64:ff9b::/96")
	// metadata are where clouds tell machines their credentials, if not by a
	// link-local address.
	metadata = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200")}
)

// Reserved says whether no server that somebody names can be at an address:
// it is link-local, where machines get their credentials, or no single host's.
func Reserved(addr netip.Addr) bool {
	addr = plain(addr)
	return addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified() || slices.Contains(metadata, addr)
}

// plain returns the IPv4 address that an IPv6 one stands for, if it does.
func plain(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if translated.Contains(addr) {
		bytes := addr.As16()
		return netip.AddrFrom4([4]byte(bytes[12:]))
	}
	return addr
}
