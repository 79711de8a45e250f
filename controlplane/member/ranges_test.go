package member

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
)

func TestRangesOf(t *testing.T) {
	pods, services := rangesOf("north")
	if again, _ := rangesOf("north"); again != pods {
		t.Errorf("the same name has the ranges %s and %s", pods, again)
	}
	seen := map[netip.Prefix]int{}
	for n := range 200 {
		pods, services = rangesOf(fmt.Sprintf("member-%d", n))
		seen[pods]++
		seen[services]++
		if !netip.MustParsePrefix("10.0.0.0/9").Contains(pods.Addr()) || !netip.MustParsePrefix("10.128.0.0/9").Contains(services.Addr()) {
			t.Errorf("member %d has the ranges %s and %s", n, pods, services)
		}
		if pods != pods.Masked() || services != services.Masked() || pods.Overlaps(services) {
			t.Errorf("member %d has the ranges %s and %s", n, pods, services)
		}
	}
	if len(seen) < 350 {
		t.Errorf("200 members have only %d different ranges", len(seen))
	}
}

func TestNodeRange(t *testing.T) {
	pods := netip.MustParsePrefix("10.1.0.0/23")
	cases := map[int]string{0: "10.1.0.0/25", 1: "10.1.0.128/25", 3: "10.1.1.128/25"}
	for n, want := range cases {
		if got, err := nodeRange(pods, n); err != nil || got.String() != want {
			t.Errorf("node %d has %s, %v; want %s", n, got, err, want)
		}
	}
	if got, err := nodeRange(pods, 4); !errors.Is(err, ErrInvalid) {
		t.Errorf("a fifth node has %s, %v", got, err)
	}
}

func TestAddressFrom(t *testing.T) {
	base := netip.MustParseAddr("203.0.113.0")
	for n := range 1000 {
		address := netip.MustParseAddr(addressFrom(base, fmt.Sprintf("default/%d", n)))
		if last := address.As4()[3]; last == 0 || last == 255 {
			t.Errorf("%d has the address %s", n, address)
		}
	}
}

func TestStages(t *testing.T) {
	stages, err := loadStages()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for ref, list := range stages {
		got[ref.APIGroup+" "+ref.Kind] = len(list)
	}
	if got["v1 Node"] != 1 || got["v1 Pod"] != 5 || len(got) != 2 {
		t.Errorf("stages by kind: %v", got)
	}
	if _, err := parseStages([]byte("kind: Stage\nspec: {resourceRef: {kind: Pod}, netx: 1}")); err == nil {
		t.Error("a misspelt field is taken")
	}
}
