package git

import (
	"bytes"
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/fluxcd/pkg/ssh/knownhosts"
	"golang.org/x/crypto/ssh"
	cryptoknownhosts "golang.org/x/crypto/ssh/knownhosts"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/git/wire"
)

// sshConnection runs one Git service on the server in an SSH session.
type sshConnection struct {
	remote *Remote
	client *ssh.Client
	stdin  io.WriteCloser
	stdout io.Reader
	stderr *firstBytes
	done   chan struct{} // closed when the service has ended
	goesOn bool          // it takes more than one request
	stop   func() bool
}

// defaultSSHUser is the user that hosting services expect.
const defaultSSHUser = "git"

// minRSABits is the smallest RSA host key that is trusted.
const minRSABits = 2048

// hostKeyAlgorithms are the signature algorithms accepted from a server: none
// with SHA-1.
var hostKeyAlgorithms = []string{
	ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
	ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256,
}

func (r *Remote) connectSSH(ctx context.Context, service string) (connection, error) {
	address := r.url.Host
	if r.url.Port() == "" {
		address = net.JoinHostPort(r.url.Hostname(), "22")
	}
	raw, err := r.dialSSH(ctx, address)
	if err != nil {
		return nil, err
	}
	// Pending reads and writes end only when the socket is closed.
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	client, err := r.handshake(ctx, raw, address)
	if err != nil {
		stop()
		_ = raw.Close()
		return nil, err
	}
	c := &sshConnection{remote: r, client: client, stop: stop, stderr: new(firstBytes), done: make(chan struct{})}
	if err := c.start(service); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// dialSSH connects to a server. Proxies of the environment are for http(s).
func (r *Remote) dialSSH(ctx context.Context, address string) (net.Conn, error) {
	if r.opts.Proxy != nil {
		return r.opts.Egress.Tunnel(ctx, r.opts.Proxy, address)
	}
	return r.opts.Egress.DialContext(ctx, "tcp", address)
}

func (r *Remote) handshake(ctx context.Context, raw net.Conn, address string) (*ssh.Client, error) {
	known, err := parseKnownHosts(r.cred.knownHosts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCredentials, err)
	}
	var trust error
	config := &ssh.ClientConfig{
		User:              r.sshUser(),
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(r.cred.signer)},
		HostKeyAlgorithms: known.algorithms(address, raw.RemoteAddr()),
		HostKeyCallback: func(host string, addr net.Addr, key ssh.PublicKey) error {
			trust = known.check(host, addr, key)
			return trust
		},
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := raw.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	conn, channels, requests, err := ssh.NewClientConn(raw, address, config)
	switch {
	case trust != nil:
		return nil, trust
	case err != nil && strings.Contains(err.Error(), "unable to authenticate"):
		return nil, fmt.Errorf("%w: the server does not accept the Secret's identity for user %q; register its public key there", ErrUnauthorized, config.User)
	case err != nil && strings.Contains(err.Error(), "no common algorithm for host key"):
		return nil, fmt.Errorf("%w: the server offers no host key of the kinds in known_hosts, or only SHA-1 ones; renew known_hosts with ssh-keyscan", ErrHostKeyChanged)
	case err != nil:
		return nil, fmt.Errorf("SSH handshake: %w", handshakeFault(err))
	}
	return ssh.NewClient(conn, channels, requests), nil
}

// handshakeFault returns an error that shows nothing of the response: the server
// need not speak SSH.
func handshakeFault(err error) error {
	var algorithms *ssh.AlgorithmNegotiationError
	if errors.As(err, &algorithms) {
		return errors.New("the server knows none of the algorithms that are used here")
	}
	return egress.Fault(err)
}

func (r *Remote) sshUser() string {
	if name := r.url.User.Username(); name != "" {
		return name
	}
	return defaultSSHUser
}

func (c *sshConnection) start(service string) error {
	session, err := c.client.NewSession()
	if err != nil {
		return err
	}
	if c.stdin, err = session.StdinPipe(); err != nil {
		return err
	}
	if c.stdout, err = session.StdoutPipe(); err != nil {
		return err
	}
	session.Stderr = c.stderr
	if service == uploadPack {
		// Many servers pass no variables on, and speak the older version; the answer
		// says which.
		ask := struct{ Name, Value string }{"GIT_PROTOCOL", wire.Version2}
		if _, err := session.SendRequest("env", false, ssh.Marshal(ask)); err != nil {
			return err
		}
	}
	if err := session.Start(service + " " + shellQuote(c.remote.url.Path)); err != nil {
		return err
	}
	go func() {
		defer close(c.done)
		_ = session.Wait() // how it ended is read from its output
	}()
	return nil
}

// shellQuote quotes s as one word for the shell on the server.
func shellQuote(s string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(s) + "'"
}

func (c *sshConnection) greet(ctx context.Context) (*wire.Greeting, bool, error) {
	greeting, err := wire.ReadGreeting(c.stdout, c.remote.opts.Limits.Refs)
	if !errors.Is(err, wire.ErrSilent) && !errors.Is(err, io.ErrUnexpectedEOF) {
		c.goesOn = err == nil && greeting.V2
		return greeting, false, err
	}
	select { // the reason follows on stderr
	case <-c.done:
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	if words := c.stderr.String(); words != "" {
		return nil, false, classify(words)
	}
	return nil, false, fmt.Errorf("%w: the server ended the session without a word, check the path in spec.url", ErrMalformed)
}

func (c *sshConnection) exchange(_ context.Context, request func(io.Writer) error) (io.ReadCloser, error) {
	if err := request(c.stdin); err != nil {
		return nil, err
	}
	if c.goesOn {
		return io.NopCloser(c.stdout), nil
	}
	if err := c.stdin.Close(); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return io.NopCloser(c.stdout), nil
}

func (c *sshConnection) forget() {}

func (c *sshConnection) close() {
	c.stop()
	_ = c.client.Close()
}

// firstBytes keeps the first maxStderr bytes written to it.
type firstBytes struct{ bytes.Buffer }

// maxStderr is how much of a server's error text is kept, in bytes.
const maxStderr = 4 << 10

// Write keeps what fits and discards the rest.
func (b *firstBytes) Write(p []byte) (int, error) {
	if room := maxStderr - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// knownHosts looks up which keys a host may show.
type knownHosts struct{ lookup ssh.HostKeyCallback }

func parseKnownHosts(text []byte) (knownHosts, error) {
	lookup, _, err := knownhosts.New(text)
	if err != nil {
		return knownHosts{}, errors.New("key known_hosts does not parse: put the output of ssh-keyscan there")
	}
	return knownHosts{lookup: lookup}, nil
}

// algorithms returns the signature algorithms to offer: those of the key types
// that are known for the host, so that a server with several keys shows a known
// one.
func (k knownHosts) algorithms(address string, remote net.Addr) []string {
	var unknown *cryptoknownhosts.KeyError
	if !errors.As(k.lookup(address, remote, noKey{}), &unknown) || len(unknown.Want) == 0 {
		return hostKeyAlgorithms
	}
	kinds := map[string]bool{}
	for _, known := range unknown.Want {
		kinds[known.Key.Type()] = true
	}
	var out []string
	for _, algorithm := range hostKeyAlgorithms {
		isRSA := algorithm == ssh.KeyAlgoRSASHA512 || algorithm == ssh.KeyAlgoRSASHA256
		if kinds[algorithm] || (isRSA && kinds[ssh.KeyAlgoRSA]) {
			out = append(out, algorithm)
		}
	}
	if len(out) == 0 {
		return hostKeyAlgorithms
	}
	return out
}

func (k knownHosts) check(host string, addr net.Addr, key ssh.PublicKey) error {
	if bits := rsaBits(key); bits > 0 && bits < minRSABits {
		return fmt.Errorf("%w: %s shows an RSA key of %d bits, at least %d are needed", ErrHostKey, host, bits, minRSABits)
	}
	err := k.lookup(host, addr, key)
	var fault *cryptoknownhosts.KeyError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &fault) && len(fault.Want) > 0:
		return fmt.Errorf("%w: %s now shows %s; if that is expected, renew known_hosts in the Secret", ErrHostKeyChanged, host, ssh.FingerprintSHA256(key))
	case errors.As(err, &fault):
		return fmt.Errorf("%w: %s shows %s, which known_hosts in the Secret does not have; add it once you have verified it", ErrHostKeyUnknown, host, ssh.FingerprintSHA256(key))
	default:
		return fmt.Errorf("%w: %w", ErrHostKey, err)
	}
}

func rsaBits(key ssh.PublicKey) int {
	if crypto, ok := key.(ssh.CryptoPublicKey); ok {
		if public, ok := crypto.CryptoPublicKey().(*rsa.PublicKey); ok {
			return public.N.BitLen()
		}
	}
	return 0
}

// noKey is a key that no host has; looking it up returns the keys that are known
// for a host.
type noKey struct{}

// Type returns a type that no key has.
func (noKey) Type() string { return "none" }

// Marshal returns bytes that no key has.
func (noKey) Marshal() []byte { return []byte("none") }

// Verify returns an error for every signature.
func (noKey) Verify([]byte, *ssh.Signature) error { return errors.New("not a key") }
