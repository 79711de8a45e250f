package egress_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/internal/egress"
)

// world resolves names by a table, and takes note of what is dialed.
type world struct {
	names  map[string][]string
	dialed []string
	fails  map[string]bool
}

func (w *world) lookup(_ context.Context, _, host string) ([]netip.Addr, error) {
	found, known := w.names[host]
	if host == "broken" {
		return nil, &net.DNSError{Err: "server misbehaving", Name: host, Server: "10.0.0.53:53", IsTemporary: true}
	}
	if !known {
		return nil, &net.DNSError{Err: "no such host", Name: host, Server: "10.0.0.53:53", IsNotFound: true}
	}
	out := []netip.Addr{}
	for _, addr := range found {
		out = append(out, netip.MustParseAddr(addr))
	}
	return out, nil
}

func (w *world) dial(_ context.Context, _, address string) (net.Conn, error) {
	w.dialed = append(w.dialed, address)
	if w.fails[address] {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	ours, theirs := net.Pipe()
	_ = theirs.Close()
	return ours, nil
}

func (w *world) dialer(t *testing.T, networks ...string) egress.Dialer {
	t.Helper()
	parsed, err := egress.ParseNetworks(networks)
	if err != nil {
		t.Fatal(err)
	}
	return egress.Dialer{
		Networks: parsed, Own: []string{"127.0.0.1:6443", ":8080", "etcd.example:2379", "198.18.0.9:2379"}, Dial: w.dial, LookupNetIP: w.lookup,
		Machine: func() ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("45.33.32.156"), netip.MustParseAddr("127.0.0.1")}, nil
		},
	}
}

func TestDialer(t *testing.T) {
	names := map[string][]string{
		"public": {"93.184.215.14"}, "both": {"2606:4700::1111", "93.184.215.14"}, "inside": {"10.1.2.3"}, "mixed": {"93.184.215.14", "10.1.2.3"},
		"localhost": {"127.0.0.1"}, "local": {"127.0.0.1"}, "local6": {"::1"}, "metadata": {"169.254.169.254"}, "empty": {}, "etcd.example": {"10.9.9.9"}, "hub": {"45.33.32.156"},
	}
	// unknown is what is reported of every name that cannot be used, whether it is one or not.
	const unknown = " is not there, or leads to where no source may be (private, loopback and reserved addresses, the control plane itself); an administrator can allow networks with flotillad serve --source-networks"
	loopback, inside, all := []string{"127.0.0.0/8"}, []string{"10.0.0.0/8"}, []string{"0.0.0.0/0", "::/0"}
	cases := map[string]struct {
		to       string
		networks []string
		dialed   []string // nothing: it is refused
		says     string
	}{
		"a public host":                                    {to: "public:443", dialed: []string{"93.184.215.14:443"}},
		"a public address":                                 {to: "[2606:4700::1111]:443", dialed: []string{"[2606:4700::1111]:443"}},
		"the first address that answers":                   {to: "both:1", dialed: []string{"[2606:4700::1111]:1", "93.184.215.14:1"}},
		"a private host":                                   {to: "inside:443", says: unknown},
		"a private host that is allowed":                   {to: "inside:443", networks: inside, dialed: []string{"10.1.2.3:443"}},
		"a private host in another network":                {to: "inside:443", networks: []string{"10.2.0.0/16"}, says: unknown},
		"a host with a private address, too":               {to: "mixed:443", says: unknown},
		"a private address by a gateway":                   {to: "[64:ff9b::a01:203]:443", says: "a private address"},
		"a private address by a gateway that is allowed":   {to: "[64:ff9b::a01:203]:443", networks: inside, dialed: []string{"[64:ff9b::a01:203]:443"}},
		"an address of 6to4, its network alone is allowed": {to: "[2002:a01:203::1]:443", networks: []string{"2002::/16"}, says: "a private address"},
		"an address of 6to4, both networks are allowed":    {to: "[2002:a01:203::1]:443", networks: []string{"2002::/16", "10.0.0.0/8"}, dialed: []string{"[2002:a01:203::1]:443"}},
		"loopback":                                           {to: "local:3000", says: unknown},
		"loopback in IPv6":                                   {to: "local6:3000", networks: loopback, says: unknown},
		"loopback, written as IPv6":                          {to: "[::ffff:127.0.0.1]:3000", says: "a loopback address"},
		"loopback where everything is allowed":               {to: "local:3000", networks: all, says: unknown},
		"loopback where it is allowed":                       {to: "local:3000", networks: loopback, dialed: []string{"127.0.0.1:3000"}},
		"loopback in IPv6 where it is allowed":               {to: "local6:3000", networks: []string{"::1/128"}, dialed: []string{"[::1]:3000"}},
		"metadata where everything is allowed":               {to: "metadata:80", networks: append(all, "169.0.0.0/8"), says: unknown},
		"nowhere":                                            {to: "0.0.0.0:80", networks: append(all, loopback...), says: "a link-local or reserved address"},
		"the API server where loopback is allowed":           {to: "local:6443", networks: loopback, says: unknown},
		"the API server by the machine's own address":        {to: "10.0.0.2:6443", networks: inside, says: "the control plane itself"},
		"the API server by the machine's public address":     {to: "hub:6443", networks: all, says: unknown},
		"the API server by another loopback address":         {to: "127.8.8.8:6443", networks: loopback, says: "the control plane itself"},
		"metrics where loopback is allowed":                  {to: "[::1]:8080", networks: append(loopback, "::1/128"), says: "the control plane itself"},
		"another port of the machine's own address":          {to: "10.0.0.2:3000", networks: inside, dialed: []string{"10.0.0.2:3000"}},
		"the machine's public address":                       {to: "hub:9100", says: unknown},
		"the machine's public address where it is allowed":   {to: "hub:9100", networks: []string{"45.33.32.156/32"}, dialed: []string{"45.33.32.156:9100"}},
		"the store on another machine":                       {to: "10.9.9.9:2379", networks: inside, says: "10.9.9.9 leads to the control plane itself"},
		"the store on another machine, by its address":       {to: "198.18.0.9:2379", networks: all, says: "the control plane itself"},
		"something else where the store is":                  {to: "10.9.9.9:443", networks: inside, dialed: []string{"10.9.9.9:443"}},
		"a port like that of metrics on another machine":     {to: "10.1.2.3:8080", networks: inside, dialed: []string{"10.1.2.3:8080"}},
		"a name that nobody knows":                           {to: "unknown:443", says: unknown},
		"a name without an address":                          {to: "empty:443", says: unknown},
		"the machine by the name that all have for it":       {to: "localhost:3000", says: "localhost leads to a loopback address; an administrator can allow that with flotillad serve --source-networks 127.0.0.0/8"},
		"the machine's public address by itself":             {to: "45.33.32.156:9100", says: "45.33.32.156 leads to the control plane's own machine; an administrator can allow that"},
		"a private address by itself":                        {to: "10.1.2.3:443", says: "10.1.2.3 leads to a private address; an administrator can allow that with flotillad serve --source-networks"},
		"metadata by its address":                            {to: "169.254.169.254:80", networks: all, says: "169.254.169.254 leads to a link-local or reserved address, where no source may be"},
		"a resolver that does not answer":                    {to: "broken:443", says: "lookup broken: server misbehaving"},
		"a port that is none":                                {to: "public:99999", says: `"99999" is no port`},
		"an address of another scope":                        {to: "[fe80::1%eth0]:443", networks: all, says: "a link-local or reserved address"},
		"an address that is not written as one is looked up": {to: "2130706433:443", says: unknown},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &world{names: names, fails: map[string]bool{"[2606:4700::1111]:1": true}}
			conn, err := w.dialer(t, tc.networks...).DialContext(t.Context(), "tcp", tc.to)
			if err == nil {
				_ = conn.Close()
			}
			if diff := cmp.Diff(tc.dialed, w.dialed); diff != "" {
				t.Errorf("dialed (-want +got):\n%s", diff)
			}
			if (err == nil) != (tc.says == "") || (err != nil && !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("error = %v, want one saying %q", err, tc.says)
			}
			var refused *egress.NotAllowedError
			if strings.Contains(tc.says, "leads to") && !errors.As(err, &refused) {
				t.Errorf("error = %T, want a NotAllowedError", err)
			}
			if host, _, _ := net.SplitHostPort(tc.to); tc.says == unknown && (err == nil || err.Error() != "address not allowed: "+host+unknown) {
				t.Errorf("error = %v, want nothing but that it is not there, or not allowed", err)
			}
			if err != nil && strings.Contains(err.Error(), "10.0.0.53") {
				t.Errorf("the resolver shows in: %v", err)
			}
		})
	}
}

// TestNamesThatLeadElsewhereLater: what was looked at is what is connected to.
func TestNamesThatLeadElsewhereLater(t *testing.T) {
	answers := []string{"93.184.215.14", "127.0.0.1"}
	w := &world{}
	d := w.dialer(t)
	d.LookupNetIP = func(context.Context, string, string) ([]netip.Addr, error) {
		next := netip.MustParseAddr(answers[0])
		answers = answers[1:]
		return []netip.Addr{next}, nil
	}
	conn, err := d.DialContext(t.Context(), "tcp", "rebound.example:6443")
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	var refused *egress.NotAllowedError
	if _, err := d.DialContext(t.Context(), "tcp", "rebound.example:6443"); !errors.As(err, &refused) {
		t.Errorf("the second time: %v", err)
	}
	if diff := cmp.Diff([]string{"93.184.215.14:6443"}, w.dialed); diff != "" {
		t.Errorf("dialed (-want +got):\n%s", diff)
	}
}

func TestTheSystemsAddresses(t *testing.T) {
	for _, address := range []string{"127.0.0.1:1", "localhost:1", "0.0.0.0:1"} {
		var refused *egress.NotAllowedError
		if _, err := new(egress.Dialer).DialContext(t.Context(), "tcp", address); !errors.As(err, &refused) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestParseNetworks(t *testing.T) {
	good := []string{"10.0.0.0/8", "127.0.0.0/8", "::1/128", "fd00::/8", "0.0.0.0/0", "::/0", "192.168.1.7/32", "100.64.0.0/10"}
	if got, err := egress.ParseNetworks(good); err != nil || len(got) != len(good) {
		t.Errorf("ParseNetworks = %v, %v", got, err)
	}
	for text, says := range map[string]string{
		"10.0.0.0": "write it as 10.0.0.0/8", "": "is no network", "intranet": "is no network", "10.0.0.0/33": "is no network",
		"10.0.0.7/8": "write 10.0.0.0/8, or 10.0.0.7/32", "::ffff:10.0.0.0/104": "IPv4", "169.254.0.0/16": "link-local", "169.254.169.254/32": "link-local",
		"fe80::/10": "link-local", "ff00::/8": "reserved", "0.0.0.0/32": "reserved", "100.100.100.200/32": "reserved",
	} {
		if _, err := egress.ParseNetworks([]string{text}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want an error saying %q", text, err, says)
		}
	}
}

func refusedCertificate(why error) error { return &tls.CertificateVerificationError{Err: why} }

func TestFaultsShowNoAnswer(t *testing.T) {
	const canary = "CANARY-8b1f"
	refused := &egress.NotAllowedError{Host: "h"}
	for err, want := range map[error]string{
		fmt.Errorf("malformed HTTP response %q", canary): egress.ErrAnswer.Error(),
		tls.RecordHeaderError{Msg: canary}:               "http: server gave HTTP response to HTTPS client",
		&net.OpError{Op: "read", Net: "tcp", Addr: &net.TCPAddr{Port: 1}, Err: os.NewSyscallError("read "+canary, syscall.ECONNRESET)}: "connection reset by peer",
		fmt.Errorf("%s: %w", canary, io.EOF):                                                                                                 "the server ended the connection: unexpected EOF",
		fmt.Errorf("%s: %w", canary, refused):                                                                                                refused.Error(),
		fmt.Errorf("%s: %w", canary, context.DeadlineExceeded):                                                                               "context deadline exceeded",
		fmt.Errorf("%s: %w", canary, context.Canceled):                                                                                       "context canceled",
		fmt.Errorf("%s: %w", canary, os.ErrDeadlineExceeded):                                                                                 "i/o timeout",
		fmt.Errorf("%s: %w", canary, tls.AlertError(40)):                                                                                     "tls: handshake failure",
		refusedCertificate(x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{canary}}, Host: canary}):                     "x509: certificate is for other names",
		refusedCertificate(x509.UnknownAuthorityError{Cert: &x509.Certificate{Subject: pkix.Name{CommonName: canary}}}):                      "x509: certificate signed by unknown authority",
		refusedCertificate(x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.Expired, Detail: canary}):                    "x509: certificate has expired or is not yet valid",
		refusedCertificate(x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.NameConstraintsWithoutSANs, Detail: canary}): "x509: certificate is not valid",
		refusedCertificate(errors.New(canary)):                                                                                               "x509: certificate is not valid",
	} {
		if got := egress.Fault(err); got.Error() != want {
			t.Errorf("Fault(%v) = %v, want %s", err, got, want)
		}
	}
	if err := egress.Fault(nil); err != nil {
		t.Errorf("Fault(nil) = %v", err)
	}
}
