package egress_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/flotilla-io/flotilla/internal/egress"
)

// TestGuard checks where a server may lead.
func TestGuard(t *testing.T) {
	hosts := map[string]string{"public.test": "1.1.1.1", "other.test": "8.8.8.8", "inside.test": "10.1.2.3", "beside.test": "10.1.2.4", "hidden.test": "192.168.1.1"}
	for name, tc := range map[string]struct {
		origin, to string
		want       error
	}{
		"to itself":                                   {"public.test:443", "public.test:443", nil},
		"from a public host to another":               {"public.test:443", "other.test:443", nil},
		"from a public host into an allowed network":  {"public.test:443", "inside.test:443", egress.ErrRedirect},
		"from a public host to another port inside":   {"public.test:443", "inside.test:8443", egress.ErrRedirect},
		"within an allowed network":                   {"inside.test:443", "beside.test:443", nil},
		"from there to a public host":                 {"inside.test:443", "public.test:443", nil},
		"to where nobody may go":                      {"inside.test:443", "hidden.test:443", egress.ErrNotAllowed},
		"from behind a proxy into an allowed network": {"absent.test:443", "inside.test:443", egress.ErrRedirect},
		"to what is not there":                        {"inside.test:443", "gone.test:443", egress.ErrNotAllowed},
		"to the machine's metadata":                   {"inside.test:443", "169.254.169.254:80", egress.ErrNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			guard := &egress.Guard{Origin: tc.origin, Dialer: egress.Dialer{
				Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
				Machine:  func() ([]netip.Addr, error) { return nil, nil },
				LookupNetIP: func(_ context.Context, _, host string) ([]netip.Addr, error) {
					if at, known := hosts[host]; known {
						return []netip.Addr{netip.MustParseAddr(at)}, nil
					}
					return nil, &net.DNSError{IsNotFound: true, Name: host}
				},
			}}
			if _, err := guard.Judge(t.Context(), tc.origin); err != nil && !egress.IsAbsent(err) {
				t.Fatal(err)
			}
			_, err := guard.Judge(t.Context(), tc.to)
			if !errors.Is(err, tc.want) {
				t.Errorf("the error is %v, want %v", err, tc.want)
			}
			host, _, _ := net.SplitHostPort(tc.to)
			if err != nil && strings.Contains(err.Error(), host) {
				t.Errorf("the error names the host that a response named: %v", err)
			}
		})
	}
}
