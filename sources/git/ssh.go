package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/git/hostkey"
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
	known, err := hostkey.Parse(r.cred.knownHosts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCredentials, err)
	}
	var trust error
	config := &ssh.ClientConfig{
		User:              r.sshUser(),
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(r.cred.signer)},
		HostKeyAlgorithms: known.Algorithms(address, raw.RemoteAddr()),
		HostKeyCallback: func(host string, addr net.Addr, key ssh.PublicKey) error {
			trust = known.Check(host, addr, key)
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
		return nil, fmt.Errorf("%w: the server offers no host key of the kinds in known_hosts, or only SHA-1 ones; renew known_hosts with ssh-keyscan", hostkey.ErrChanged)
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
