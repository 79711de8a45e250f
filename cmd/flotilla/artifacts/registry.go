package artifacts

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/oci"
)

// registryFlags are the flags about the way to a registry.
type registryFlags struct {
	creds, provider string
	insecure        bool
	timeout         time.Duration
	clock           clock.Clock
}

func (f *registryFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.creds, "creds", "", "login for the registry, as USER:PASSWORD; default is what docker login has kept")
	flags.StringVar(&f.provider, "provider", "generic", "whose registry it is; only generic is known: clouds log in by a credential helper of Docker's")
	flags.BoolVar(&f.insecure, "insecure-registry", false, "speak HTTP with the registry, without TLS")
	flags.DurationVar(&f.timeout, "timeout", 5*time.Minute, "how long all of it may take")
	_ = cmd.RegisterFlagCompletionFunc("provider", cobra.FixedCompletions([]string{"generic"}, cobra.ShellCompDirectiveNoFileComp))
}

// place is an artifact, and the way to it.
type place struct {
	// url is that of the repository, and name the same without the scheme.
	url, name, host string
	ref             oci.Ref
	remote          *oci.Remote
	timeout         time.Duration
}

// everywhere are the networks that a user may reach from his own machine.
var everywhere = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"),
}

// open finds the way to an artifact; the caller closes place.remote.
func (f *registryFlags) open(ctx context.Context, address string, writes bool) (*place, error) {
	url, ref, err := oci.ParseArtifact(address)
	if err != nil {
		return nil, command.Usage(err)
	}
	host, repository, err := oci.Place(url)
	if err != nil {
		return nil, command.Usage(err)
	}
	if f.provider != "generic" {
		return nil, command.Usage(fmt.Errorf("there is no --provider %s here: use generic, and the cloud's credential helper for Docker, such as docker-credential-ecr-login", f.provider))
	}
	login, err := f.login(ctx, host, repository)
	if err != nil {
		return nil, err
	}
	proxies, err := egress.Environment()
	if err != nil {
		return nil, err
	}
	access := oci.Access{Login: login, Insecure: f.insecure || onThisMachine(host) && !speaksTLS(ctx, host), Writes: writes, Hints: hints(host, writes)}
	remote, err := oci.NewRemote(url, access, oci.Options{
		Egress: egress.Dialer{Networks: everywhere, Proxies: proxies}, Timeout: f.timeout, Clock: f.clock,
	})
	if err != nil {
		return nil, command.Usage(err)
	}
	return &place{url: url, name: strings.TrimPrefix(url, "oci://"), host: host, ref: ref, remote: remote, timeout: f.timeout}, nil
}

// hints are the next steps of errors.
func hints(host string, writes bool) oci.Hints {
	may := "read"
	if writes {
		may = "write"
	}
	return oci.Hints{
		Login:     host + " wants a login: docker login " + host + ", or --creds USER:PASSWORD",
		Denied:    "check the login for " + host + " (--creds, or docker login " + host + "), and whether it may " + may + " there",
		Absent:    "check the address, and the login if the repository is private",
		Authority: "if it is one of your own, name the file with its authority in SSL_CERT_FILE",
		Insecure:  "--insecure-registry",
	}
}

// login returns what a registry gets of the user.
func (f *registryFlags) login(ctx context.Context, host, repository string) (oci.Login, error) {
	if f.creds == "" {
		return environment().Login(ctx, host, repository)
	}
	name, password, found := strings.Cut(f.creds, ":")
	if !found || name == "" || password == "" {
		return oci.Login{}, command.Usage(errors.New("--creds is not USER:PASSWORD"))
	}
	return oci.Login{Username: name, Password: password}, nil
}

// onThisMachine reports whether a registry is one that somebody tries things with, which has no certificate.
func onThisMachine(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	addr, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return name == "localhost" || err == nil && addr.IsLoopback()
}

// speaksTLS reports whether a server of this machine answers as one that speaks TLS; it does if it is not known.
func speaksTLS(ctx context.Context, host string) bool {
	if _, _, err := net.SplitHostPort(host); err != nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := new(tls.Dialer).DialContext(ctx, "tcp", host)
	if err == nil {
		_ = conn.Close()
	}
	var plain tls.RecordHeaderError
	return !errors.As(err, &plain)
}

// explain says what a user can do about an error.
func (p *place) explain(err error) error {
	var refused *egress.NotAllowedError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s took longer than %s: --timeout is how long it may take", p.host, p.timeout)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing listens at %s: is the registry up, and is it the right port?", p.host)
	case errors.As(err, &refused):
		return fmt.Errorf("there is no host %s that can be reached: is it spelled right, and the network up?", refused.Host)
	default:
		return err
	}
}
