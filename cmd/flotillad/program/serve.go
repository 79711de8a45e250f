package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/api/crds"
	"github.com/flotilla-io/flotilla/cmd/flotillad/gctuner"
	"github.com/flotilla-io/flotilla/controlplane"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/telemetry"
	"github.com/flotilla-io/flotilla/internal/timerslack"
	"github.com/flotilla-io/flotilla/reconciler"
)

// serveGarbage is how many bytes of garbage a control plane keeps before it collects, unless
// its live heap is larger. A higher value saves collections, but costs as much for the pages
// that it touches.
const serveGarbage = 192 << 20

// shortestCertificate leaves an agent time to ask for the next one.
const shortestCertificate = 10 * time.Second

// allowLoopback is the name of the flag that allows clusters on the control plane's machine.
const allowLoopback = "allow-loopback-clusters"

// sealKeyFile is the name of the flag for the key file that replicas share.
const sealKeyFile = "seal-key-file"

// serveOptions are the flags of serve.
type serveOptions struct {
	plane controlplane.Options
	loops loopOptions
	logs  telemetry.LogOptions
	hosts []string
	// loopbackClusters allows requests to clusters on this machine. Without the flag they are
	// allowed if the server itself is reachable only from this machine.
	loopbackClusters bool
	// minFreeDisk is a quantity of bytes.
	minFreeDisk string
	flags       *pflag.FlagSet
}

// newServeCommand returns the command that runs a whole control plane in this process.
func newServeCommand(own Options) *cobra.Command {
	opts := &serveOptions{}
	opts.plane.Version = telemetry.BuildVersion(own.Version).Program
	opts.loops.take(own)
	cmd := &cobra.Command{
		Use:   "serve --data-dir DIR",
		Short: "Run a control plane: its store, its API server and its loops",
		Long: `Run a control plane in this process: etcd, a Kubernetes-compatible API server with
the kinds of a fleet, and the loops that carry applications to clusters.

DIR/admin.kubeconfig is the administrator's way in. A second start on the same DIR
goes on where the first ended. SIGTERM stops it cleanly. With --etcd-servers any
number of replicas may run on one store; one of them runs the loops. They have their
CAs and keys in common, sealed in the store: give each the file that --seal-key-file
of the first start names.

The flags of all of Karmada's components are taken, too, as far as they mean anything
here: flotillad flags lists what each does.`,
		Args: command.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return opts.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	opts.addFlags(cmd.Flags())
	return cmd
}

func (o *serveOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.plane.DataDir, "data-dir", "", "folder that keeps the control plane; made when missing (required)")
	flags.StringVar(&o.plane.BindAddress, "bind-address", "127.0.0.1", "IP address to listen on")
	flags.IntVar(&o.plane.SecurePort, "secure-port", 6443, "port of the API server; 0 takes a free one")
	flags.StringSliceVar(&o.hosts, "advertise-host", nil, "further names and addresses that clients know the control plane by")
	flags.StringSliceVar(&o.plane.Etcd.Servers, "etcd-servers", nil, "URLs of an etcd cluster to use instead of an own store in --data-dir")
	flags.StringVar(&o.plane.Etcd.Prefix, "etcd-prefix", "/registry", "path of all keys in the store")
	flags.StringVar(&o.plane.Etcd.CAFile, "etcd-cafile", "", "CA of the etcd cluster")
	flags.StringVar(&o.plane.Etcd.CertFile, "etcd-certfile", "", "client certificate for the etcd cluster")
	flags.StringVar(&o.plane.Etcd.KeyFile, "etcd-keyfile", "", "key of the client certificate")
	flags.StringVar(&o.plane.SealKeyFile, sealKeyFile, "", "with --etcd-servers: file of the key that CAs and keys are sealed with in the store, the same for all replicas; the first start makes it (default seal.key in --data-dir)")
	flags.BoolVar(&o.plane.Rules.AllowNoExecuteTaintPolicy, "allow-no-execute-taint-policy", false, "accept ClusterTaintPolicies whose taints evict workloads (effect NoExecute)")
	flags.BoolVar(&o.plane.Rules.AllowKarmadactlRegister, "allow-karmadactl-register", false,
		"let karmadactl register bring clusters in, with Karmada's own agent: it gets the rights of Flotilla's, and a certificate for 90 days at most")
	flags.DurationVar(&o.plane.Certificates.Duration, "agent-certificate-duration", controlplane.DefaultAgentCertificateDuration,
		"the most that certificates are good for that are signed on request, as those of agents are; agents of Flotilla ask for 90 days")
	flags.DurationVar(&o.plane.Certificates.ExpiredGrace, "expired-agent-grace", controlplane.DefaultExpiredAgentGrace,
		"how long after its end the certificate of an agent still gets the next one, and nothing else")
	flags.BoolVar(&o.loopbackClusters, allowLoopback, false,
		"let requests through to clusters on this machine (default: if --bind-address is a loopback address)")
	flags.StringVar(&o.minFreeDisk, "min-free-disk", "128Mi", "how much must be free on the disk of --data-dir: with less, nothing new is stored there, "+
		"and reading and deleting go on; half as much is held in reserve; 0 watches nothing")
	o.flags = flags
	o.logs.AddFlags(flags)
	o.loops.addFlags(flags) // last: it adds Karmada's other flags
}

func (o *serveOptions) run(ctx context.Context, out, errOut io.Writer) error {
	if err := o.validate(); err != nil {
		return err
	}
	begin := time.Now()
	if !onScreen(out) {
		o.plane.Hooks.Starting = func() {
			_, _ = io.WriteString(out, starting("the control plane", o.plane.DataDir, o.plane.BindAddress, o.plane.SecurePort, "a free port"))
		}
	}
	defer gctuner.Tune(serveGarbage)()
	defer gctuner.ReleaseIdle(clock.RealClock{})()
	var shows func(time.Time, string)
	greet := greeting{first: o.first(), before: lastAddress(filepath.Join(o.plane.DataDir, "admin.kubeconfig"))}
	if onScreen(errOut) && !o.flags.Changed("v") && !o.flags.Changed("logging-format") {
		file, err := openLog(o.plane.DataDir, serveLog)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		screen, restore, err := divert(file)
		if err != nil {
			return err
		}
		defer restore()
		shown := whileRunning{screen, ctx.Done()}
		greet.log, o.logs.Screen, shows, errOut = file.Name(), shown, shown.line, file
	}
	logger, err := o.logs.Start(errOut)
	if err != nil {
		return command.Usage(err)
	}
	o.loops.warn(errOut)
	lastWords(os.Stderr)
	// Kubernetes' servers and controllers log through their context; the loops get their own
	// logger back.
	ctx = klog.NewContext(ctx, klog.Background())
	if o.plane.Definitions, err = crds.All(); err != nil {
		return err
	}
	o.plane.Clock, o.plane.Hosts, o.plane.Log = clock.RealClock{}, o.hosts, logger
	rest := timerslack.NewRest(clock.RealClock{})
	o.plane.Hooks.Busy = rest.Busy
	claims := &reconciler.Claims{}
	o.plane.Claim = claims.Of
	plane, err := controlplane.New(ctx, o.plane)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w; choose another --secure-port", err)
	}
	if err != nil {
		return o.explainFullDisk(err)
	}
	o.loops.dataDir, o.loops.log = o.plane.DataDir, logger
	o.loops.sources.own = o.addresses(plane.URL())
	o.loops.plane = inProcess{claims: claims, shared: plane.Kinds().Shared, watch: plane.Kinds().Watch, diskFull: plane.DiskFull, opened: plane.Opened, place: plane.Place, busy: rest.Busy, karmadactl: o.plane.Rules.AllowKarmadactlRegister, screen: shows}
	o.loops.leaderElect = len(o.plane.Etcd.Servers) > 0 && reconciler.Any(o.loops.controllers) // none would keep it from others
	if !reconciler.Any(o.loops.controllers) {
		plane.Opened = 0 // loops in another process may have written before
	}
	go func() {
		select {
		case <-plane.Ready():
			greet.took, greet.url, greet.kubeconfig = time.Since(begin), plane.URL(), plane.KubeconfigFile()
			_, _ = io.WriteString(out, greet.text())
			rest.Run(ctx)
		case <-ctx.Done():
		}
	}()
	return o.explainFullDisk(plane.Run(ctx, o.loops.run))
}

// explainFullDisk adds to the error of a full disk what to do.
func (o *serveOptions) explainFullDisk(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w: make room in %s, then start it again", err, o.plane.DataDir)
	}
	return err
}

// first reports whether the data directory is empty or missing.
func (o *serveOptions) first() bool {
	entries, err := os.ReadDir(o.plane.DataDir)
	return len(entries) == 0 && (err == nil || errors.Is(err, os.ErrNotExist))
}

// addresses returns the addresses of the control plane and its store, by all host names that
// the flags give it.
func (o *serveOptions) addresses(at string) []string {
	own := append([]string{at}, o.plane.Etcd.Servers...)
	_, port, err := net.SplitHostPort(hostPort(at))
	if err != nil {
		return own
	}
	for _, host := range o.hosts {
		own = append(own, net.JoinHostPort(host, port))
	}
	return own
}

// validate returns an error for flags that cannot work, before anything starts.
func (o *serveOptions) validate() error {
	switch {
	case o.plane.DataDir == "":
		return command.Usage(errors.New("--data-dir is missing: name the folder that keeps the control plane"))
	case net.ParseIP(o.plane.BindAddress) == nil:
		return command.Usage(fmt.Errorf("--bind-address %q is no IP address", o.plane.BindAddress))
	case o.plane.SecurePort < 0 || o.plane.SecurePort > 65535:
		return command.Usage(fmt.Errorf("--secure-port %d is no port", o.plane.SecurePort))
	}
	switch {
	case o.plane.Certificates.Duration < shortestCertificate:
		return command.Usage(fmt.Errorf("--agent-certificate-duration %s is too short: agents could not renew in time; at least %s", o.plane.Certificates.Duration, shortestCertificate))
	case o.plane.Certificates.ExpiredGrace < time.Second:
		return command.Usage(fmt.Errorf("--expired-agent-grace %s is too short: at least 1s", o.plane.Certificates.ExpiredGrace))
	case o.plane.SealKeyFile != "" && len(o.plane.Etcd.Servers) == 0:
		return command.Usage(fmt.Errorf("--%s is for replicas on a store elsewhere: name it with --etcd-servers", sealKeyFile))
	}
	o.plane.Rules.AllowNoExecuteTaintPolicy = o.plane.Rules.AllowNoExecuteTaintPolicy || o.loops.failover.on()
	if err := o.loops.validate(ofKubernetes); err != nil {
		return err
	}
	o.plane.Rules.RefuseLoopbackClusters = !o.loopbackClusters
	if !o.flags.Changed(allowLoopback) {
		o.plane.Rules.RefuseLoopbackClusters = !net.ParseIP(o.plane.BindAddress).IsLoopback()
	}
	free, err := resource.ParseQuantity(o.minFreeDisk)
	if err != nil || free.Sign() < 0 {
		return command.Usage(fmt.Errorf("--min-free-disk %q is no amount of bytes: write such as 128Mi, or 0 to watch nothing", o.minFreeDisk))
	}
	o.plane.Rules.MinFreeDisk = free.Value()
	o.plane.FeatureGates = o.loops.features.Kubernetes
	o.plane.Rules.IgnoreQuotas = !o.loops.features.QuotaEnforcement
	return nil
}

// ofKubernetes reports whether Kubernetes' own servers have a feature gate.
func ofKubernetes(gate string) bool {
	_, known := utilfeature.DefaultMutableFeatureGate.GetAll()[featuregate.Feature(gate)]
	return known
}
