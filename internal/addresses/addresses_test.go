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

func TestKindOf(t *testing.T) {
	kinds := map[addresses.Kind][]string{
		addresses.Public: {
			"8.8.8.8", "172.32.0.1", "100.128.0.1", "192.0.1.1", "198.20.0.1", "223.255.255.255", "::ffff:8.8.8.8",
			"64:ff9b::808:808", "2606:4700::1111", "2001:4860:4860::8888", "2a00:1450:4001::1", "2620:4f:8000::1",
		},
		addresses.Private: {
			"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "100.127.255.255", // RFC 1918, RFC 6598
			"192.0.0.8", "192.0.2.1", "198.51.100.1", "203.0.113.1", "192.88.99.1", "198.18.0.1", "198.19.255.255", "240.0.0.1", "255.255.255.254",
			"fc00::1", "fd12:3456::1", "fec0::1", "100::1", "5f00::1", "4000::1", "e000::1", "2001:db8::1", "3fff:fff::1", // RFC 4193, and nobody's yet
			"2001:2::1", "2001:10::1", "2001:0:808:808::f7f7:f7f7", "2002:808:808::1", // benchmarks, Teredo, 6to4
			"::ffff:10.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::808:808", "::8.8.8.8", "::ffff:0:8.8.8.8", "2606:4700::5efe:a00:1",
		},
		addresses.Loopback: {
			"127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "::127.0.0.1", "::ffff:0:127.0.0.1",
			"64:ff9b:1::7f00:1", "2002:7f00:1::1", "2001:0:808:808::80ff:fffe", "2001:0:7f00:1::f7f7:f7f7", "2606:4700::200:5efe:7f00:1",
		},
		addresses.Nobodys: {
			"169.254.169.254", "0.0.0.0", "0.1.2.3", "255.255.255.255", "224.0.0.1", "239.1.1.1", "100.100.100.200",
			"::", "fe80::1", "fe80::1%eth0", "febf::1", "ff02::1", "fd00:ec2::254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe",
			"168.63.129.16", "192.0.0.192", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42", // where clouds serve credentials
			"2002:a9fe:a9fe::1", "2001:0:808:808::5601:5601", "64:ff9b:1::a9fe:a9fe", "::169.254.169.254", "::ffff:0:0", "fe80::5efe:808:808",
		},
	}
	for want, list := range kinds {
		for _, address := range list {
			if got := addresses.KindOf(netip.MustParseAddr(address)); got != want {
				t.Errorf("%s is %v, want %v", address, got, want)
			}
		}
	}
}

func FuzzKindOf(f *testing.F) {
	for _, seed := range []string{"\x7f\x00\x00\x01", "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, bytes []byte) {
		addr, ok := netip.AddrFromSlice(bytes)
		if !ok {
			return
		}
		kind := addresses.KindOf(addr)
		if mapped := netip.AddrFrom16(addr.As16()); addresses.KindOf(mapped) != kind {
			t.Errorf("%s is %v, and %s %v", addr, kind, mapped, addresses.KindOf(mapped))
		}
		if kind == addresses.Public && (!addr.Unmap().IsGlobalUnicast() || addr.Unmap().IsPrivate() || addr.Unmap().IsLoopback()) {
			t.Errorf("%s is %v", addr, kind)
		}
	})
}
