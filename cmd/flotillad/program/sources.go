package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/utils/ptr"

	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/tenure"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/reconciler"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/build"
)

// sourceOptions are the flags about sources and forges.
type sourceOptions struct {
	// artifactAddress is where artifacts are served; empty means the port of the last run,
	// or a free one.
	artifactAddress string
	// receiverAddress is where Receivers are reached; empty means nowhere.
	receiverAddress string
	// given is the value of --source-networks, networks the parsed value.
	given    []string
	networks []netip.Prefix
	// proxies are those of the environment.
	proxies func(*url.URL) (*url.URL, error)
	// givenLimits is the value of --namespace-limits, limits the parsed value.
	givenLimits map[string]string
	limits      tenancy.Limits
	// revisions configures how revisions are applied and reported.
	revisions reconciler.Revisions
	// own are the known addresses and URLs of the control plane, without those at which the
	// loops listen.
	own []string
	// builds runs builds in other processes; nil means that all run in this one.
	builds build.Runner
}

func (o *sourceOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.artifactAddress, "artifact-address", "",
		"IP address and port that artifacts are served on; default is loopback with the port of the last run, or a free one")
	flags.StringVar(&o.receiverAddress, "receiver-address", "",
		"IP address and port that the webhooks of Receivers come in at, such as :9292, without TLS: put a proxy before it that has a certificate; nothing else answers there (default nowhere)")
	flags.StringSliceVar(&o.given, strings.TrimPrefix(egress.Flag, "--"), nil,
		"networks that Git servers and forges may be in, beyond public addresses, as address/bits (default none); loopback addresses need one within 127.0.0.0/8 or ::1/128, and the control plane's own ports are never reached")
	flags.StringToStringVar(&o.givenLimits, "namespace-limits", nil,
		"what each namespace may have that is not privileged, as name=quantity, 0 for as much as there is; what is not named has its default: "+tenancy.DefaultLimits().String())
	o.revisions.Brake = ptr.To(inventory.DefaultBrake())
	flags.Float64Var(&o.revisions.Brake.Share, "max-prune-share", o.revisions.Brake.Share,
		"part of a Kustomization's objects that one revision may delete, from 0 to 1: more, if it is also more than --max-prune-count, has to be allowed by a person")
	flags.IntVar(&o.revisions.Brake.Count, "max-prune-count", o.revisions.Brake.Count,
		"objects of a Kustomization that one revision may always delete, unless they are all there is, or the last workload")
	flags.BoolVar(&o.revisions.StrictVariables, "strict-variables", false,
		"refuse manifests with a variable that spec.postBuild gives no value and that has no default; else it is replaced by nothing")
	flags.StringVar(&o.revisions.StatusURL, "status-url", "",
		"http or https address that commit statuses link to, with the namespace and name of the Kustomization appended")
}

func (o *sourceOptions) validate() (err error) {
	if o.networks, err = egress.ParseNetworks(o.given); err != nil {
		return command.Usage(fmt.Errorf("%s: %w", egress.Flag, err))
	}
	if o.proxies, err = egress.Environment(); err != nil {
		return command.Usage(err)
	}
	if o.limits, err = tenancy.ParseLimits(o.givenLimits); err != nil {
		return command.Usage(fmt.Errorf("--namespace-limits: %w", err))
	}
	for flag, address := range map[string]string{"--artifact-address": o.artifactAddress, "--receiver-address": o.receiverAddress} {
		if address == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(address); err != nil {
			return command.Usage(fmt.Errorf("%s: %q has no port, or is no address: write it such as :9292 or 127.0.0.1:9292", flag, address))
		}
	}
	brake := o.revisions.Brake
	if !(brake.Share >= 0 && brake.Share <= 1) { // refuses NaN as well
		return command.Usage(fmt.Errorf("--max-prune-share: %v is not a part, from 0 to 1", brake.Share))
	}
	if brake.Count < 0 {
		return command.Usage(fmt.Errorf("--max-prune-count: %d is less than none", brake.Count))
	}
	if o.revisions.StatusURL == "" {
		return nil
	}
	u, err := url.Parse(o.revisions.StatusURL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return command.Usage(fmt.Errorf("--status-url: %q is no address such as https://fleet.example.com/kustomizations", o.revisions.StatusURL))
	case u.User != nil:
		return command.Usage(errors.New("--status-url: everybody who sees a commit would see its user and password: leave them out"))
	default:
		return nil
	}
}

// dialer returns a dialer for sources and forges. With held, it connects only while this
// replica holds the lease, so that an old leader posts no statuses. It refuses to connect to
// the control plane: to its known addresses, and to the given addresses and URLs, some of
// which may be empty.
func (o *sourceOptions) dialer(leadership *tenure.Tenure, own ...string) egress.Dialer {
	out := egress.Dialer{Networks: o.networks, Proxies: o.proxies}
	if leadership != nil {
		out.Dial = leadership.Dial(nil)
	}
	for _, address := range append(own, o.own...) {
		if at := hostPort(address); at != "" {
			out.Own = append(out.Own, at)
		}
	}
	return out
}

// hostPort returns the host and port of an address or URL; empty if it has none, as the URL
// of a Unix socket.
func hostPort(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		port := cmp.Or(u.Port(), map[string]string{"http": "80"}[u.Scheme], "443")
		address = net.JoinHostPort(u.Hostname(), port)
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return ""
	}
	return address
}

// serveArtifacts opens the store and serves it over HTTP, so that other tools find the
// artifacts by the addresses in the sources' status.
func (o *loopOptions) serveArtifacts(listener net.Listener) (*artifact.Store, func(), error) {
	store, err := artifact.NewStore(filepath.Join(o.dataDir, "artifacts"), artifact.Options{BaseURL: "http://" + listener.Addr().String(), DiskFull: o.plane.diskFull})
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open the artifact store: %w", err), listener.Close())
	}
	server := &http.Server{Handler: store.Handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	return store, func() {
		_ = server.Close()
		_ = store.Close()
	}, nil
}

// listen listens on the given address. Without one it uses the port of the last run, so that
// the addresses in statuses stay valid, or a free one if there was none or it is in use.
func (o *loopOptions) listen(ctx context.Context) (net.Listener, error) {
	if err := os.MkdirAll(o.dataDir, 0o700); err != nil {
		return nil, err
	}
	config := &net.ListenConfig{}
	if o.sources.artifactAddress != "" {
		return config.Listen(ctx, "tcp", o.sources.artifactAddress)
	}
	memory := filepath.Join(o.dataDir, "artifact-address")
	last, err := os.ReadFile(memory)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(last) > 0 {
		if listener, err := config.Listen(ctx, "tcp", strings.TrimSpace(string(last))); err == nil {
			return listener, nil
		}
	}
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(memory, []byte(listener.Addr().String()), 0o600); err != nil {
		o.log.Error(err, "The next run will offer artifacts at another address")
	}
	return listener, nil
}
