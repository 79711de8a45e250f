// Package origin decides what a repository may lead to on other hosts, which it
// names in its files or its server in answers.
//
// In go URLs; out come the one that a short form stands for, whether two are of one origin, which is whom credentials
// are for, and how hosts that others name may be reached. It sends nothing.
package origin

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/internal/addresses"
	"github.com/flotilla-io/flotilla/internal/egress"
)

// short matches the short form of an SSH address, user@host:path.
var short = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_.-]*)@([A-Za-z0-9_][A-Za-z0-9_.-]*):([^:].*)$`)

// Long returns the URL of a repository that is named in the short form of SSH, user@host:path; empty for another text.
func Long(raw string) string {
	m := short.FindStringSubmatch(raw)
	if m == nil || strings.Contains(raw, "://") {
		return ""
	}
	return (&url.URL{Scheme: "ssh", User: url.User(m[1]), Host: m[2], Path: "/" + strings.TrimPrefix(m[3], "/")}).String()
}

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
