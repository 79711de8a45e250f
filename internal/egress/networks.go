package egress

import (
	"fmt"
	"net/netip"

	"github.com/flotilla-io/flotilla/internal/addresses"
)

var loopbacks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// withinLoopback reports whether a network is one of loopback addresses only.
func withinLoopback(network netip.Prefix) bool {
	for _, own := range loopbacks {
		if network.Bits() >= own.Bits() && own.Contains(network.Addr()) {
			return true
		}
	}
	return false
}

// ParseNetworks reads networks for a Dialer, each as address/bits. It refuses
// those that would mean something else than they say.
func ParseNetworks(list []string) ([]netip.Prefix, error) {
	out := make([]netip.Prefix, 0, len(list))
	for _, text := range list {
		network, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%q is no network: write it as 10.0.0.0/8 or fd00::/8", text)
		case network != network.Masked():
			return nil, fmt.Errorf("%q has bits beyond its length: write %s, or %s/%d for the one address", text, network.Masked(), network.Addr(), network.Addr().BitLen())
		case network.Addr().Is4In6():
			return nil, fmt.Errorf("%q is a network of IPv4 addresses: write it as one", text)
		case addresses.Nothing(network):
			return nil, fmt.Errorf("%q has link-local or reserved addresses, where no source may be", text)
		}
		out = append(out, network)
	}
	return out, nil
}
