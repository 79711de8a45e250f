package pki

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/controlplane/datadir"
)

// checkEvery is how often Run checks whether something must be renewed.
const checkEvery = time.Hour

// Identity is the user and groups in a client certificate.
type Identity struct {
	// User is the user name that the API server sees.
	User string
	// Groups are the groups that the API server sees; the order is kept.
	Groups []string
}

// Store is the folder of authorities, certificates and keys of one server.
// Its methods may be called concurrently.
type Store struct {
	dir        string
	clock      clock.WithTicker
	common     Common // nil for the only server
	main       *authority
	frontProxy *authority

	mu    sync.Mutex
	items []item // the files that Run renews
}

// An item is one file to keep up to date.
type item interface {
	// ensure writes the file if it is not as it should be at the given time.
	ensure(s *Store, now time.Time) error
}

// Open creates the folder's authorities and service-account key, or reads them.
func Open(dir string, clk clock.WithTicker) (*Store, error) {
	s := newStore(dir, clk)
	if err := s.ensureOwn(clk.Now()); err != nil {
		return nil, fmt.Errorf("pki: %w", err)
	}
	return s, nil
}

func newStore(dir string, clk clock.WithTicker) *Store {
	s := &Store{dir: dir, clock: clk}
	s.main = &authority{name: "flotilla-ca", certFile: s.path("ca.crt"), keyFile: s.path("ca.key"), signerFile: s.path("ca-signer.crt")}
	s.frontProxy = &authority{name: "flotilla-front-proxy-ca", certFile: s.path("front-proxy-ca.crt"), keyFile: s.path("front-proxy-ca.key")}
	return s
}

// CAFile holds the certificates that clients and the server trust: more than
// one while a renewed authority and its predecessor overlap.
func (s *Store) CAFile() string { return s.main.certFile }

// SignerCAFile holds only the current signing certificate: the API's certificate signers
// refuse a bundle. It is replaced when the authority is renewed.
func (s *Store) SignerCAFile() string { return s.main.signerFile }

// CAKeyFile holds the key of the certificates in CAFile, for the API's certificate signers.
func (s *Store) CAKeyFile() string { return s.main.keyFile }

// FrontProxyCAFile holds the certificates with which aggregated servers verify the calls
// that the API server makes on behalf of others.
func (s *Store) FrontProxyCAFile() string { return s.frontProxy.certFile }

// ServiceAccountKeyFile holds the key that signs service-account tokens.
func (s *Store) ServiceAccountKeyFile() string { return s.path("service-account.key") }

// ServiceAccountPublicKeyFile holds the key that verifies service-account tokens.
func (s *Store) ServiceAccountPublicKeyFile() string { return s.path("service-account.pub") }

// Server returns the file with a serving certificate and its key for the given DNS names
// and IP addresses. name is the name of the file, without extension.
func (s *Store) Server(name string, hosts ...string) (file string, err error) {
	c := &certificate{file: s.path(name + ".pem"), signer: s.main, subject: pkix.Name{CommonName: name}, usage: x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			c.ips = append(c.ips, ip)
		} else {
			c.names = append(c.names, host)
		}
	}
	return c.file, s.add(c)
}

// Client returns the file with a client certificate and its key.
func (s *Store) Client(name string, id Identity) (file string, err error) {
	c := &certificate{file: s.path(name + ".pem"), signer: s.main, subject: id.subject(), usage: x509.ExtKeyUsageClientAuth}
	return c.file, s.add(c)
}

// FrontProxyClient returns the file with the certificate with which the API server
// authenticates itself to aggregated servers and webhooks.
func (s *Store) FrontProxyClient(user string) (file string, err error) {
	c := &certificate{file: s.path("front-proxy-client.pem"), signer: s.frontProxy, subject: pkix.Name{CommonName: user}, usage: x509.ExtKeyUsageClientAuth}
	return c.file, s.add(c)
}

// Run renews files after two thirds of their validity, until ctx ends. It passes errors to
// report and retries at the next check.
func (s *Store) Run(ctx context.Context, report func(error)) {
	ticker := s.clock.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			if err := s.renew(ctx); err != nil {
				report(err)
			}
		}
	}
}

func (s *Store) renew(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	if err := s.ensureAuthorities(ctx, now); err != nil {
		return fmt.Errorf("pki: %w", err)
	}
	for _, it := range s.items {
		if err := it.ensure(s, now); err != nil {
			return fmt.Errorf("pki: %w", err)
		}
	}
	return nil
}

func (s *Store) ensureAuthorities(ctx context.Context, now time.Time) error {
	if s.common == nil {
		return s.ensureOwn(now)
	}
	return s.agree(ctx, now)
}

// ensureOwn creates or renews the authorities and the service-account key in the folder.
func (s *Store) ensureOwn(now time.Time) error {
	return errors.Join(s.main.ensure(now), s.frontProxy.ensure(now), s.ensureServiceAccountKey())
}

// add ensures a file now, and adds it to those that Run renews.
func (s *Store) add(it item) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := it.ensure(s, s.clock.Now()); err != nil {
		return fmt.Errorf("pki: %w", err)
	}
	s.items = append(s.items, it)
	return nil
}

func (s *Store) ensureServiceAccountKey() error {
	key, err := ensureKey(s.ServiceAccountKeyFile())
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("encode service-account key: %w", err)
	}
	_, err = datadir.WriteFile(s.ServiceAccountPublicKeyFile(), encodePublicKey(der))
	return err
}

func (s *Store) path(name string) string { return filepath.Join(s.dir, name) }

func (id Identity) subject() pkix.Name {
	return pkix.Name{CommonName: id.User, Organization: id.Groups}
}

// A certificate is an item: a certificate and its key in one file.
type certificate struct {
	file    string
	signer  *authority
	subject pkix.Name
	usage   x509.ExtKeyUsage
	names   []string
	ips     []net.IP
}

func (c *certificate) ensure(_ *Store, now time.Time) error {
	content, err := os.ReadFile(c.file)
	if err == nil && c.stands(content, now) {
		return nil
	}
	if content, err = c.signer.issue(c.template(now)); err != nil {
		return fmt.Errorf("certificate %s: %w", filepath.Base(c.file), err)
	}
	_, err = datadir.WriteFile(c.file, content)
	return err
}

// stands reports whether the content is a readable certificate with its key, as wanted and
// not due for renewal.
func (c *certificate) stands(content []byte, now time.Time) bool {
	found, err := cert.ParseCertsPEM(content)
	if err != nil {
		return false
	}
	if _, err := keyutil.ParsePrivateKeyPEM(content); err != nil {
		return false
	}
	have := found[0]
	return c.signer.signed(have) && now.Before(renewal(have)) && now.After(have.NotBefore) &&
		have.Subject.CommonName == c.subject.CommonName && sameSet(have.Subject.Organization, c.subject.Organization) &&
		slices.Equal(have.ExtKeyUsage, []x509.ExtKeyUsage{c.usage}) &&
		sameSet(have.DNSNames, c.names) && sameSet(texts(have.IPAddresses), texts(c.ips))
}

func (c *certificate) template(now time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject:     c.subject,
		NotBefore:   now.Add(-backdate),
		NotAfter:    now.Add(certificateLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{c.usage},
		DNSNames:    c.names,
		IPAddresses: c.ips,
	}
}

func texts(ips []net.IP) []string {
	out := make([]string, 0, len(ips))
	for _, ip := range ips {
		out = append(out, ip.String())
	}
	return out
}

func sameSet(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}
