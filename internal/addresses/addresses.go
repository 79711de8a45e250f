package addresses

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// Kind says who is at an address.
type Kind int

const (
	// Public addresses are somebody's on the internet.
	Public Kind = iota
	// Private addresses mean something in one network only, or have a special
	// purpose: all that is in the special-purpose registries of IANA, or was never
	// given out.
	Private
	// Loopback addresses are the machine's own.
	Loopback
	// Nobodys are no single host's, link-local, or where clouds show machines
	// their credentials: no server that somebody names can be there.
	Nobodys
)

// String describes an address of the kind.
func (k Kind) String() string {
	switch k {
	case Public:
		return "a public address"
	case Private:
		return "a private address"
	case Loopback:
		return "a loopback address"
	default:
		return "a link-local or reserved address"
	}
}

var (
	// translated is where IPv4 addresses are reached by IPv6 (RFC 6052).
	translated = netip.MustParsePrefix("64:ff9b::/96")
	// nobodys are link-local, no single host's, or where clouds show machines their
	// credentials.
	nobodys = prefixes("0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "255.255.255.255/32", "::/128", "fe80::/10", "ff00::/8",
		"fd00:ec2::/32",      // Amazon
		"fd20:ce::254/128",   // Google
		"fd00:42::42/128",    // Scaleway
		"168.63.129.16/32",   // Azure
		"192.0.0.192/32",     // Oracle
		"100.100.100.200/32", // Alibaba
	)
	// global is all that was ever given out of IPv6.
	global = netip.MustParsePrefix("2000::/3")
	// special are the ranges with a special purpose, beyond those that package
	// netip knows, and within what is global.
	special = prefixes(
		"100.64.0.0/10",   // shared between providers and customers
		"192.0.0.0/24",    // protocol assignments
		"192.0.2.0/24",    // documentation
		"192.88.99.0/24",  // 6to4 relays
		"198.18.0.0/15",   // benchmarks
		"198.51.100.0/24", // documentation
		"203.0.113.0/24",  // documentation
		"240.0.0.0/4",     // reserved
		"2001::/23",       // protocol assignments, Teredo among them
		"2001:db8::/32",   // documentation
		"2002::/16",       // 6to4
		"3fff::/20",       // documentation
	)
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, 0, len(list))
	for _, p := range list {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

// KindOf says what a connection to an address may end at: of an IPv6 address
// that leads to an IPv4 one, the kind that is harder to get to.
func KindOf(addr netip.Addr) Kind {
	worst := Public
	for _, face := range Faces(addr) {
		worst = max(worst, kindOf(face))
	}
	return worst
}

func kindOf(addr netip.Addr) Kind {
	contains := func(p netip.Prefix) bool { return p.Contains(addr) }
	switch {
	case slices.ContainsFunc(nobodys, contains):
		return Nobodys
	case addr.IsLoopback():
		return Loopback
	case addr.IsPrivate(), slices.ContainsFunc(special, contains), addr.Is6() && !global.Contains(addr):
		return Private
	default:
		return Public
	}
}

// Nothing reports whether a network has no address that a server could be at.
func Nothing(network netip.Prefix) bool {
	return slices.ContainsFunc(nobodys, func(p netip.Prefix) bool { return p.Bits() <= network.Bits() && p.Contains(network.Addr()) })
}

// ErrReserved says that a name has led to an address that is reserved.
var ErrReserved = errors.New("is a link-local or reserved address")

// Reserved reports whether no server that somebody names can be at an address:
// it is link-local, where machines get their credentials, or no single host's.
func Reserved(addr netip.Addr) bool { return KindOf(addr) == Nobodys }

// Plain returns the IPv4 address that an IPv6 one stands for, if it does.
func Plain(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if translated.Contains(addr) {
		return last4(addr)
	}
	return addr
}

// Refuse is the Control of a net.Dialer that connects to no reserved address. It
// looks at where a name has led, before the connection is made. Its error is
// ErrReserved.
func Refuse(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || Reserved(at.Addr()) {
		return fmt.Errorf("%s %w", address, ErrReserved)
	}
	return nil
}
