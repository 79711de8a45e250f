package git

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"

	"github.com/flotilla-io/flotilla/internal/privatekey"
	"github.com/flotilla-io/flotilla/sources/git/hostkey"
	"github.com/flotilla-io/flotilla/sources/githubapp"
)

// Credentials authenticate to a remote. The zero value is anonymous. They print
// as a fixed word, so that no log or error shows them by accident.
type Credentials struct {
	// Username and Password are for basic authentication.
	Username, Password string
	// BearerToken is for token authentication; it excludes Username.
	BearerToken string
	// App is the GitHub App whose token is to be used; nil for none. See WithToken.
	App *githubapp.App
	// TLS has the client certificate and the certificate authorities to trust; nil
	// means the system's authorities.
	TLS *tls.Config

	// tlsDigest is of what TLS was made from; empty for none.
	tlsDigest []byte
	// sshDigest is of the public key of the signer, and of knownHosts; empty for none.
	sshDigest  []byte
	signer     ssh.Signer
	knownHosts []byte
}

// String returns a fixed text, so that the content is not printed.
func (Credentials) String() string { return "(credentials)" }

// GoString returns a fixed text, so that the content is not printed.
func (Credentials) GoString() string { return "(credentials)" }

// ParseCredentials reads the data of a Secret in Flux's format for a repository
// at rawURL.
//
// For http(s): username and password, bearerToken, or the keys of a GitHub App; ca.crt; tls.crt with
// tls.key. For ssh: identity and known_hosts, both required; password for an
// encrypted identity. Errors: ErrURL, otherwise ErrCredentials, which names keys
// but no values.
func ParseCredentials(rawURL string, secret map[string][]byte) (Credentials, error) {
	u, err := parseURL(rawURL)
	if err != nil {
		return Credentials{}, err
	}
	var c Credentials
	if u.Scheme == schemeSSH {
		err = c.readSSH(secret)
	} else {
		err = c.readHTTP(secret)
	}
	if errors.Is(err, githubapp.ErrSecret) {
		return Credentials{}, &appError{err}
	}
	if err != nil {
		return Credentials{}, fmt.Errorf("%w: %w", ErrCredentials, err)
	}
	return c, nil
}

// appError is an ErrCredentials that says itself that it is about an App that is not usable.
type appError struct{ error }

// Unwrap returns ErrCredentials, and what is wrong.
func (e *appError) Unwrap() []error { return []error{ErrCredentials, e.error} }

// WithToken returns the credentials with a token of their App.
func (c Credentials) WithToken(token string) Credentials {
	c.Username, c.Password = githubapp.User, token
	return c
}

func (c *Credentials) readHTTP(secret map[string][]byte) error {
	if githubapp.In(secret) {
		app, err := githubapp.Parse(secret)
		if err != nil {
			return err
		}
		c.App = &app
	}
	c.Username, c.Password = string(secret["username"]), string(secret["password"])
	c.BearerToken = string(secret["bearerToken"])
	switch {
	case c.BearerToken != "" && (c.Username != "" || c.Password != ""):
		return errors.New("keys bearerToken and username/password exclude each other")
	case c.App != nil && c.Username+c.Password+c.BearerToken != "":
		return errors.New("the keys of a GitHub App exclude username/password and bearerToken")
	case (c.Username == "") != (c.Password == ""):
		return errors.New("keys username and password go together")
	}
	return c.readTLS(secret)
}

func (c *Credentials) readTLS(secret map[string][]byte) error {
	ca := firstOf(secret, "ca.crt", "caFile")
	cert, key := firstOf(secret, "tls.crt", "certFile"), firstOf(secret, "tls.key", "keyFile")
	if len(ca)+len(cert)+len(key) == 0 {
		return nil
	}
	digest := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", ca, cert, key))
	c.tlsDigest = digest[:]
	c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	if len(ca) > 0 {
		c.TLS.RootCAs = x509.NewCertPool()
		if !c.TLS.RootCAs.AppendCertsFromPEM(ca) {
			return errors.New("key ca.crt holds no PEM certificate")
		}
	}
	if (len(cert) > 0) != (len(key) > 0) {
		return errors.New("keys tls.crt and tls.key go together")
	}
	if len(cert) == 0 {
		return nil
	}
	if err := privatekey.CheckText(key); err != nil {
		return fmt.Errorf("key tls.key: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return errors.New("keys tls.crt and tls.key are not a PEM certificate and its key")
	}
	c.TLS.Certificates = []tls.Certificate{pair}
	return nil
}

func (c *Credentials) readSSH(secret map[string][]byte) error {
	if len(secret["identity"]) == 0 {
		return errors.New("key identity is missing: put the private SSH key there")
	}
	if err := privatekey.CheckText(secret["identity"]); err != nil {
		return fmt.Errorf("key identity: %w", err)
	}
	if len(secret["known_hosts"]) == 0 {
		return errors.New("key known_hosts is missing: a host is never trusted on first use, put the output of ssh-keyscan there")
	}
	c.knownHosts = secret["known_hosts"]
	if _, err := hostkey.Parse(c.knownHosts); err != nil {
		return err
	}
	var err error
	if password := secret["password"]; len(password) > 0 {
		c.signer, err = ssh.ParsePrivateKeyWithPassphrase(secret["identity"], password)
	} else {
		c.signer, err = ssh.ParsePrivateKey(secret["identity"])
	}
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return errors.New("key identity is encrypted: put its passphrase in the key password")
	case err != nil:
		return errors.New("key identity is not a private SSH key, or the key password does not open it")
	}
	digest := sha256.Sum256(fmt.Appendf(nil, "%q %q", c.signer.PublicKey().Marshal(), c.knownHosts))
	c.sshDigest = digest[:]
	return nil
}

func firstOf(secret map[string][]byte, keys ...string) []byte {
	for _, key := range keys {
		if v := secret[key]; len(v) > 0 {
			return v
		}
	}
	return nil
}
