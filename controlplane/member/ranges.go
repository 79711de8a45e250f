package member

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
)

// podRange is one of the 1,024 parts of 10.0.0.0/9, serviceRange one of the 2,048 parts of 10.128.0.0/9.
const (
	podBits, podParts         = 19, 1024
	serviceBits, serviceParts = 20, 2048
)

// rangesOf returns the ranges of pods and Services that follow from a member's name.
func rangesOf(name string) (pods, services netip.Prefix) {
	sum := sha256.Sum256([]byte(name)) // names that differ in little get ranges that differ in much
	pods = part(10<<24, podBits, binary.BigEndian.Uint32(sum[:4])%podParts)
	services = part(10<<24|1<<23, serviceBits, binary.BigEndian.Uint32(sum[4:8])%serviceParts)
	return pods, services
}

// part is the n-th range of the given length, counted from base.
func part(base uint32, bits int, n uint32) netip.Prefix {
	var address [4]byte
	binary.BigEndian.PutUint32(address[:], base+n<<(32-bits))
	return netip.PrefixFrom(netip.AddrFrom4(address), bits)
}

// nodeRange is the range of the pods of node n, or an error where the members' range has no room left.
func nodeRange(pods netip.Prefix, n int) (netip.Prefix, error) {
	if n >= 1<<(nodeMaskSize-pods.Bits()) {
		return netip.Prefix{}, fmt.Errorf("%w: pod range %s has no room for %d nodes", ErrInvalid, pods, n+1)
	}
	base := pods.Addr().As4()
	return part(binary.BigEndian.Uint32(base[:]), nodeMaskSize, uint32(n)), nil
}

// parseRange reads an IPv4 range of at most the given length.
func parseRange(what, text string, longest int) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil || !prefix.Addr().Is4() {
		return netip.Prefix{}, fmt.Errorf("%w: %s %q is not an IPv4 range such as 10.1.0.0/19", ErrInvalid, what, text)
	}
	if prefix.Bits() > longest || prefix.Bits() < 8 {
		return netip.Prefix{}, fmt.Errorf("%w: %s %q: the prefix must be within 8 and %d", ErrInvalid, what, text, longest)
	}
	return prefix.Masked(), nil
}
