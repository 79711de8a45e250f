package addresses_test

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/flotilla-io/flotilla/internal/addresses"
)

func TestReserved(t *testing.T) {
	for address, want := range map[string]bool{
		"169.254.169.254": true, "::ffff:169.254.169.254": true, "64:ff9b::a9fe:a9fe": true, "fe80::1%eth0": true,
		"fd00:ec2::254": true, "100.100.100.200": true, "0.0.0.0": true, "224.0.0.1": true,
		"127.0.0.1": false, "10.0.0.1": false, "100.64.0.1": false, "64:ff9b::808:808": false, "2001:db8::1": false,
	} {
		at := netip.MustParseAddr(address)
		if got := addresses.Reserved(at); got != want {
			t.Errorf("Reserved(%s) = %t, want %t", address, got, want)
		}
		if err := addresses.Refuse("tcp", netip.AddrPortFrom(at, 443).String(), nil); errors.Is(err, addresses.ErrReserved) != want {
			t.Errorf("Refuse(%s) = %v, want an error: %t", address, err, want)
		}
	}
}
