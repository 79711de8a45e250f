package addresses

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

var (
	// translated is where IPv4 addresses are reached by IPv6.
	translated = netip.MustParsePrefix("64:ff9b::/96")
	// metadata are where clouds tell machines their credentials, if not by a
	// link-local address.
	metadata = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200")}
)

// ErrReserved says that a name has led to an address that is reserved.
var ErrReserved = errors.New("is a link-local or reserved address")

// Reserved says whether no server that somebody names can be at an address:
// it is link-local, where machines get their credentials, or no single host's.
func Reserved(addr netip.Addr) bool {
	addr = Plain(addr)
	return addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified() || slices.Contains(metadata, addr)
}

// Plain returns the IPv4 address that an IPv6 one stands for, if it does.
func Plain(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if translated.Contains(addr) {
		bytes := addr.As16()
		return netip.AddrFrom4([4]byte(bytes[12:]))
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
