// Package origin decides what a repository may lead to on other hosts, which it
// names in its files or its server in answers.
//
// In go URLs; out come whether two are of one origin, which is whom credentials
// are for, and how hosts that others name may be reached. It sends nothing.
package origin

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/internal/addresses"
	"github.com/flotilla-io/flotilla/internal/egress"
)

// Same reports whether two URLs have one scheme, host and port.
func Same(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

// Address returns the host and port of a URL.
func Address(u *url.URL) string { return net.JoinHostPort(u.Hostname(), port(u)) }

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "http":
		return "80"
	case u.Scheme == "ssh":
		return "22"
	default:
		return "443"
	}
}

// Beyond returns the dialer for other hosts that a repository names. One that is at
// a public address, or may be, leads to public addresses alone: otherwise a
// stranger on the internet could lead us into our own network.
func Beyond(ctx context.Context, dialer egress.Dialer, of *url.URL) egress.Dialer {
	at, err := dialer.Resolve(ctx, Address(of))
	if err != nil || slices.ContainsFunc(at, func(to netip.AddrPort) bool { return addresses.KindOf(to.Addr()) == addresses.Public }) {
		dialer.Networks = nil
	}
	return dialer
}
