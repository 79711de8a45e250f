package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/cli/flag"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/flotilla-io/flotilla/cmd/flotillad/estimator"
	"github.com/flotilla-io/flotilla/cmd/flotillad/features"
	"github.com/flotilla-io/flotilla/cmd/flotillad/karmada"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/telemetry"
)

// serverPort is the name of the flag for the port of the estimator.
const serverPort = "server-port"

// estimatorOptions are the flags of estimator.
type estimatorOptions struct {
	cluster, kubeconfig string
	bindAddress         string
	port                int
	files               estimator.Files
	qps                 float32
	burst, parallelism  int
	addresses           listenOptions
	gates               map[string]bool
	features            features.Gates
	// unused logs which flags of Karmada's were set and have no effect.
	unused func() []string
	logs   telemetry.LogOptions
}

// newEstimatorCommand returns the command that serves estimates for one member.
func newEstimatorCommand() *cobra.Command {
	opts := &estimatorOptions{addresses: listenOptions{metrics: ":8080", health: ":10351"}}
	cmd := &cobra.Command{
		Use:   "estimator --cluster-name NAME --kubeconfig FILE",
		Short: "Answer how much fits on one member, for schedulers elsewhere",
		Long: `Answer how much fits on one member, node by node, for schedulers that run elsewhere and do not see it: those of
Flotilla and Karmada. It speaks the gRPC of Karmada's estimator, and watches the nodes, pods and quotas of the
member; it writes nothing.

Whoever asks shows a certificate that --grpc-client-ca-file signs. A scheduler finds it by the Service
karmada-scheduler-estimator-NAME in the namespace karmada-system of its control plane, of the type ExternalName.
/readyz says whether all of the member is known. Flags of Karmada's estimator mean here what they mean there.`,
		Args: command.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return opts.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	opts.addFlags(cmd.Flags())
	return cmd
}

func (o *estimatorOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.cluster, "cluster-name", "", "name of the member, as its Cluster is named; questions about others are refused (required)")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "file that leads to the member; without it, the member is the one that this runs in as a pod")
	flags.StringVar(&o.bindAddress, "bind-address", "0.0.0.0", "IP address to listen on; without a certificate only one of this machine")
	flags.IntVar(&o.port, serverPort, 10352, "port that questions come in at; 0 takes a free one")
	flags.StringVar(&o.files.Cert, "grpc-auth-cert-file", "", "certificate of this server")
	flags.StringVar(&o.files.Key, "grpc-auth-key-file", "", "key of the certificate")
	flags.StringVar(&o.files.ClientCA, "grpc-client-ca-file", "", "CA of those who may ask")
	flags.BoolVar(&o.files.AnyClient, "insecure-skip-grpc-client-verify", false, "answer whoever asks")
	flags.Float32Var(&o.qps, "kube-api-qps", 20, "requests to the member in a second")
	flags.IntVar(&o.burst, "kube-api-burst", 30, "requests to the member that may be made at once beyond that")
	flags.IntVar(&o.parallelism, "parallelism", 16, "questions that are answered at the same time; others wait")
	flags.StringVar(&o.addresses.metrics, "metrics-bind-address", o.addresses.metrics, "where /metrics is served; 0 or nothing turns it off")
	flags.StringVar(&o.addresses.health, "health-probe-bind-address", o.addresses.health, "where /healthz and /readyz are served; 0 or nothing turns it off")
	flags.BoolVar(&o.addresses.profile, "enable-pprof", false, "serve profiles of this process to everybody who reaches --profiling-bind-address")
	flags.StringVar(&o.addresses.profiles, "profiling-bind-address", "127.0.0.1:6060", "where --enable-pprof serves profiles")
	flags.Var(flag.NewMapStringBool(&o.gates), "feature-gates",
		"what to switch on or off, as name=true or name=false: "+string(features.QuotaEstimate)+" heeds quotas, "+string(features.OvercommitProtection)+
			" heeds what schedulers say is to run and is not seen yet")
	o.logs.AddFlags(flags)
	o.unused = karmada.Add(flags) // last: it adds Karmada's other flags
}

// validate returns an error for flags that are wrong, before anything starts.
func (o *estimatorOptions) validate() (err error) {
	switch {
	case o.cluster == "":
		return command.Usage(errors.New("--cluster-name is missing: name the member as its Cluster is named"))
	case net.ParseIP(o.bindAddress) == nil:
		return command.Usage(fmt.Errorf("--bind-address %q is no IP address", o.bindAddress))
	case o.port < 0 || o.port > 65535:
		return command.Usage(fmt.Errorf("--%s %d is no port", serverPort, o.port))
	case o.parallelism < 1 || o.parallelism > mostWorkers:
		return command.Usage(fmt.Errorf("--parallelism %d must be between 1 and %d", o.parallelism, mostWorkers))
	case o.files.Open() && !net.ParseIP(o.bindAddress).IsLoopback():
		return command.Usage(errors.New("--grpc-auth-cert-file and --grpc-auth-key-file are missing: without, everybody in the network could ask; --bind-address 127.0.0.1 serves this machine alone"))
	}
	if o.features, err = features.Read(o.gates, nil); err != nil {
		return command.Usage(fmt.Errorf("--feature-gates: %w", err))
	}
	return nil
}

// config returns the connection to the member.
func (o *estimatorOptions) config() (*rest.Config, error) {
	cfg, err := rest.InClusterConfig()
	if o.kubeconfig != "" {
		cfg, err = clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	}
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, command.Usage(errors.New("--kubeconfig is missing: name the file that leads to the member"))
	}
	if err != nil {
		return nil, fmt.Errorf("read --kubeconfig: %w", err)
	}
	cfg.QPS, cfg.Burst = o.qps, o.burst
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return cfg, nil
}

func (o *estimatorOptions) run(ctx context.Context, out, errOut io.Writer) (err error) {
	begin := time.Now()
	if err := o.validate(); err != nil {
		return err
	}
	secured, err := o.files.Credentials()
	if err != nil {
		return command.Usage(err)
	}
	cfg, err := o.config()
	if err != nil {
		return err
	}
	log, err := o.logs.Start(errOut)
	if err != nil {
		return command.Usage(err)
	}
	if set := o.unused(); len(set) > 0 {
		_, _ = fmt.Fprintf(errOut, "warning: without effect here: %s; flotillad flags lists what is\n", strings.Join(set, ", "))
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("connect to the member: %w", err)
	}
	address := net.JoinHostPort(o.bindAddress, strconv.Itoa(o.port))
	defer func() {
		err = command.Taken(err, map[string]string{serverPort: address, "metrics-bind-address": o.addresses.metrics, "health-probe-bind-address": o.addresses.health, "profiling-bind-address": o.addresses.profiled()})
	}()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen for questions: %w", err)
	}
	defer func() { _ = listener.Close() }()
	member := estimator.NewMember(client, o.features.QuotaEstimate, clock.RealClock{})
	server := estimator.New(member, estimator.Options{Cluster: o.cluster, Assumed: o.features.OvercommitProtection, Parallelism: o.parallelism, Metrics: metrics.Registry})
	mgr, err := o.manager(cfg, log, member)
	if err != nil {
		return err
	}
	err = errors.Join(mgr.Add(manager.RunnableFunc(member.Start)), mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		return server.Serve(logr.NewContext(ctx, log), listener, secured)
	})), mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		select {
		case <-member.Known():
			_, _ = fmt.Fprintf(out, "the estimator of %s is ready after %.1fs: %s\n", o.cluster, time.Since(begin).Seconds(), listener.Addr())
		case <-ctx.Done():
		}
		return nil
	})))
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// manager returns a manager that serves metrics and health, and runs the parts of the process.
func (o *estimatorOptions) manager(cfg *rest.Config, log logr.Logger, member *estimator.Member) (ctrl.Manager, error) {
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Logger:                 log,
		Metrics:                metricsserver.Options{BindAddress: orNone(o.addresses.metrics)},
		HealthProbeBindAddress: orNone(o.addresses.health),
		PprofBindAddress:       orNone(o.addresses.profiled()),
	})
	if err != nil {
		return nil, fmt.Errorf("connect to the member: %w", err)
	}
	known := func(*http.Request) error {
		select {
		case <-member.Known():
			return nil
		default:
			return errors.New("nodes, pods and quotas of the member are not known yet")
		}
	}
	return mgr, errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("member", known))
}

// orNone returns the address for a manager. It replaces an empty one by "0", because empty
// would mean the manager's own default.
func orNone(address string) string {
	if address == "" {
		return "0"
	}
	return address
}
