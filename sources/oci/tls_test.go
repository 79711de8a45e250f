package oci_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/flotilla-io/flotilla/sources/oci"
)

// authority signs certificates of servers.
type authority struct {
	t           *testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(2 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.certificate, a.key = a.issue(template)
	return a
}

func (a *authority) issue(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	parent, by := a.certificate, a.key
	if parent == nil {
		parent, by = template, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		a.t.Fatal(err)
	}
	out, err := x509.ParseCertificate(raw)
	if err != nil {
		a.t.Fatal(err)
	}
	return out, key
}

// TestServersThatAreNotWhoTheySay: a registry whose certificate does not hold, or that speaks TLS as nobody should, is not asked.
func TestServersThatAreNotWhoTheySay(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	access := oci.Access{}
	var err error
	if access.TLS, err = oci.ParseTLS(map[string][]byte{"ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ours.certificate.Raw})}); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		by          *authority
		from, until time.Duration
		of          net.IP
		newest      uint16
		want        string // empty: it is asked
	}{
		"all is well":             {by: ours, from: -time.Hour, until: time.Hour, of: net.IPv4(127, 0, 0, 1)},
		"the oldest TLS there is": {by: ours, from: -time.Hour, until: time.Hour, of: net.IPv4(127, 0, 0, 1), newest: tls.VersionTLS12},
		"another authority":       {by: theirs, from: -time.Hour, until: time.Hour, of: net.IPv4(127, 0, 0, 1), want: "x509: certificate signed by unknown authority"},
		"it has expired":          {by: ours, from: -time.Hour, until: -time.Minute, of: net.IPv4(127, 0, 0, 1), want: "x509: certificate has expired or is not yet valid"},
		"it is yet to come":       {by: ours, from: time.Minute, until: time.Hour, of: net.IPv4(127, 0, 0, 1), want: "x509: certificate has expired or is not yet valid"},
		"it is another server's":  {by: ours, from: -time.Hour, until: time.Hour, of: net.IPv4(127, 0, 0, 9), want: "x509: certificate is for other names"},
		"TLS 1.1":                 {by: ours, from: -time.Hour, until: time.Hour, of: net.IPv4(127, 0, 0, 1), newest: tls.VersionTLS11, want: "protocol version not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			f := unstarted(t)
			certificate, key := tc.by.issue(&x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(tc.from), NotAfter: time.Now().Add(tc.until), IPAddresses: []net.IP{tc.of}, KeyUsage: x509.KeyUsageDigitalSignature})
			f.server = httptest.NewUnstartedServer(f)
			f.server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}}, MinVersion: tls.VersionTLS10, MaxVersion: tc.newest} //nolint:gosec // what is refused
			f.server.Config.ErrorLog = log.New(io.Discard, "", 0)
			f.server.StartTLS()
			t.Cleanup(f.server.Close)
			f.push("latest", pack(t, nil))
			f.asked = nil
			remote, err := oci.NewRemote(f.url(), access, oci.Options{Egress: reach})
			if err != nil {
				t.Fatal(err)
			}
			defer remote.Close()
			_, err = remote.Resolve(t.Context(), oci.Ref{})
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, oci.ErrTLS) || !strings.Contains(err.Error(), tc.want) || len(f.asked) > 0 {
				t.Errorf("%v, want %s; asked: %v", err, tc.want, f.asked)
			}
		})
	}
}

// TestAServerThatHangsUp: one that speaks no TLS may close the connection rather than answer; what is for such is named, until
// it has answered once.
func TestAServerThatHangsUp(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1024))
			_ = conn.Close()
		}
	}()
	for _, insecure := range []bool{false, true} {
		remote, err := oci.NewRemote("oci://"+listener.Addr().String()+"/app", oci.Access{Insecure: insecure, Hints: oci.Hints{Insecure: "--insecure-registry"}}, oci.Options{Egress: reach})
		if err != nil {
			t.Fatal(err)
		}
		_, err = remote.Resolve(t.Context(), oci.Ref{})
		if err == nil || strings.HasSuffix(err.Error(), "; if the server does not speak TLS: --insecure-registry is for such") == insecure {
			t.Errorf("insecure %t: %v", insecure, err)
		}
		remote.Close()
	}
}
