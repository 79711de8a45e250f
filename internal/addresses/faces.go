package addresses

import "net/netip"

var (
	// translatedHere is translated for the use of one network (RFC 8215).
	translatedHere = netip.MustParsePrefix("64:ff9b:1::/48")
	// compatible and translatable are what became of IPv4 addresses on their way
	// to IPv6 (RFC 4291, RFC 2765).
	compatible   = netip.MustParsePrefix("::/96")
	translatable = netip.MustParsePrefix("::ffff:0:0:0/96")
	// sixToFour has the IPv4 address in the middle (RFC 3056), teredo the
	// complement of it at the end (RFC 4380).
	sixToFour = netip.MustParsePrefix("2002::/16")
	teredo    = netip.MustParsePrefix("2001::/32")
	// one is ::1, which is not 0.0.0.1.
	one = netip.IPv6Loopback()
)

// Faces returns the addresses at which a connection to an address may end: the
// address itself, unless it only stands for another, and the IPv4 address that
// is written into it for a gateway.
func Faces(addr netip.Addr) []netip.Addr {
	plain := Plain(addr)
	if plain.Is4() {
		return []netip.Addr{plain}
	}
	bytes := plain.As16()
	switch {
	case plain == one, plain.IsUnspecified():
		return []netip.Addr{plain}
	case compatible.Contains(plain), translatable.Contains(plain), translatedHere.Contains(plain), isatap(bytes):
		return []netip.Addr{plain, last4(plain)}
	case sixToFour.Contains(plain):
		return []netip.Addr{plain, netip.AddrFrom4([4]byte(bytes[2:6]))}
	case teredo.Contains(plain):
		last := last4(plain).As4()
		for i := range last {
			last[i] = ^last[i]
		}
		return []netip.Addr{plain, netip.AddrFrom4(last), netip.AddrFrom4([4]byte(bytes[4:8]))}
	default:
		return []netip.Addr{plain}
	}
}

// isatap reports whether an address ends in an IPv4 one by RFC 5214.
func isatap(bytes [16]byte) bool {
	return bytes[8]&^2 == 0 && bytes[9] == 0 && bytes[10] == 0x5e && bytes[11] == 0xfe
}

func last4(addr netip.Addr) netip.Addr {
	bytes := addr.As16()
	return netip.AddrFrom4([4]byte(bytes[12:]))
}
