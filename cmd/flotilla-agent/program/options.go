package program

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flotilla-io/flotilla/agent/selfregistration"
	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/registration"
)

// options are the flags. They have the same names as those of Karmada's agent where it has
// them.
type options struct {
	hub         hubOptions
	member      memberOptions
	status      statusOptions
	lease       leaseOptions
	clusterName string
	dataDir     string
	workers     int
	metrics     string
	health      string
	version     string
}

// hubOptions configure the connection to the hub.
type hubOptions struct {
	kubeconfig, context string
	namespace           string
	threshold           float64
	checking            time.Duration
	enrolment           registration.Discovery
	pause               time.Duration // longest pause between attempts to reach the hub; 0 means the default
}

// memberOptions describe the member, and how to reach it.
type memberOptions struct {
	kubeconfig, context string
	namespace           string
	endpoint, proxy     string
	report              []string
	provider, region    string
	zones               []string
}

// statusOptions configure how the member's health is determined.
type statusOptions struct {
	period, failure, success time.Duration
}

type leaseOptions struct {
	duration time.Duration
	fraction float64
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.hub.kubeconfig, "karmada-kubeconfig", "", "file that leads to the hub; with --bootstrap-token it is made, by default in --data-dir, where it is found again")
	flags.StringVar(&o.hub.context, "karmada-context", "", "context of --karmada-kubeconfig; empty is its current one")
	flags.StringVar(&o.clusterName, "cluster-name", "", "name of the cluster on the hub (required)")
	flags.StringVar(&o.member.kubeconfig, "kubeconfig", "", "file that leads to the member; empty is the cluster that this runs in")
	flags.StringVar(&o.member.context, "context", "", "context of --kubeconfig; empty is its current one")
	flags.StringVar(&o.dataDir, "data-dir", "", "folder that keeps what the hub said, for times without it; default is one in the user's cache, named after the cluster")
	flags.StringVar(&o.member.namespace, "cluster-namespace", workv1alpha2.NamespaceKarmadaCluster, "namespace in the member for the accounts that are reported")
	flags.StringSliceVar(&o.member.report, "report-secrets", []string{selfregistration.KubeCredentials, selfregistration.KubeImpersonator},
		"which credentials of the member the hub gets: "+selfregistration.KubeCredentials+", "+selfregistration.KubeImpersonator+", or "+selfregistration.None)
	flags.StringVar(&o.member.endpoint, "cluster-api-endpoint", "", "URL at which the hub reaches the member's API; default is the one in --kubeconfig, or none")
	flags.StringVar(&o.member.proxy, "proxy-server-address", "", "URL of a proxy between the hub and the member")
	flags.StringVar(&o.member.provider, "cluster-provider", "", "who provides the cluster; counts if its token says the same, or once an administrator of the hub has approved it")
	flags.StringVar(&o.member.region, "cluster-region", "", "region of the cluster; counts as --cluster-provider does")
	flags.StringSliceVar(&o.member.zones, "cluster-zones", nil, "zones of the cluster; count as --cluster-provider does")
	flags.DurationVar(&o.status.period, "cluster-status-update-frequency", 10*time.Second, "how often the member's health is asked for")
	flags.DurationVar(&o.status.success, "cluster-success-threshold", 30*time.Second, "how long the member must be well before it counts as ready again")
	flags.DurationVar(&o.status.failure, "cluster-failure-threshold", 30*time.Second, "how long the member must fail before it counts as not ready")
	flags.DurationVar(&o.lease.duration, "cluster-lease-duration", 40*time.Second, "how long the cluster's Lease on the hub holds")
	flags.Float64Var(&o.lease.fraction, "cluster-lease-renew-interval-fraction", 0.25, "part of --cluster-lease-duration after which the Lease is renewed")
	flags.IntVar(&o.workers, "concurrent-work-syncs", 5, "how many Works are worked on side by side")
	flags.StringVar(&o.metrics, "metrics-bind-address", "127.0.0.1:8080", "where /metrics is served; 0 or nothing turns it off")
	flags.StringVar(&o.health, "health-probe-bind-address", "127.0.0.1:10357", "where /healthz and /readyz are served; 0 or nothing turns it off")
	flags.StringVar(&o.hub.namespace, "karmada-kubeconfig-namespace", workv1alpha2.NamespaceKarmadaSystem,
		"namespace in the member of the Secret "+hubSecret+", which keeps the way to the hub where the agent runs in the member")
	flags.DurationVar(&o.hub.checking, "cert-rotation-checking-interval", 5*time.Minute, "how often the agent's certificate is looked at")
	flags.Float64Var(&o.hub.threshold, "cert-rotation-remaining-time-threshold", 0.33, "part of the certificate's life that is left when the next one is asked for")
	flags.StringVar(&o.hub.enrolment.Endpoint, "hub-endpoint", "", "with --bootstrap-token: host and port of the hub")
	flags.StringVar(&o.hub.enrolment.Token, "bootstrap-token", "", "token by which to get the first certificate; see flotilla token create")
	flags.StringSliceVar(&o.hub.enrolment.CAHashes, "discovery-token-ca-cert-hash", nil, "with --bootstrap-token: hash of the hub's authority, as sha256:HEX")
	flags.BoolVar(&o.hub.enrolment.UnsafeSkipCAVerification, "discovery-token-unsafe-skip-ca-verification", false,
		"with --bootstrap-token: trust whoever knows the token")
	o.addUnused(flags)
}

// addUnused adds the flags of Karmada's agent that have no effect here, so that its manifests
// work.
func (o *options) addUnused(flags *pflag.FlagSet) {
	for name, why := range map[string]string{
		"kube-api-qps":             "requests to the hub are not throttled",
		"kube-api-burst":           "requests to the hub are not throttled",
		"cluster-api-qps":          "requests to the member are bounded by how fast it answers",
		"cluster-api-burst":        "requests to the member are bounded by how fast it answers",
		"concurrent-cluster-syncs": "there is one cluster",
	} {
		flags.String(name, "", "ignored: "+why)
		if err := flags.MarkHidden(name); err != nil {
			panic(err) // it is defined above
		}
	}
}

// validate returns an error for flags that are wrong, before anything starts.
func (o *options) validate() error {
	switch {
	case o.clusterName == "":
		return command.Usage(errors.New("--cluster-name is missing: say which cluster this is"))
	case (o.hub.enrolment.Token == "") != (o.hub.enrolment.Endpoint == ""):
		return command.Usage(errors.New("--bootstrap-token and --hub-endpoint go together"))
	case o.hub.threshold <= 0 || o.hub.threshold >= 1 || o.hub.checking < time.Second:
		return command.Usage(errors.New("--cert-rotation-remaining-time-threshold must be between 0 and 1, and --cert-rotation-checking-interval a second at least"))
	case o.lease.duration < time.Second || o.lease.fraction <= 0 || o.lease.fraction >= 1:
		return command.Usage(errors.New("the Lease must hold for a second at least, and be renewed after a part of that between 0 and 1"))
	case o.workers < 1:
		return command.Usage(errors.New("--concurrent-work-syncs must be at least 1"))
	case o.status.period <= 0 || o.status.success < 0 || o.status.failure < 0:
		return command.Usage(errors.New("--cluster-status-update-frequency must be more than nothing, and thresholds not less"))
	}
	if problems := validation.IsDNS1123Label(o.clusterName); len(problems) > 0 || len(o.clusterName) > clusterv1alpha1.ClusterNameMaxLength {
		return command.Usage(fmt.Errorf("--cluster-name %q is not a name for a cluster: %s", o.clusterName,
			strings.Join(append(problems, fmt.Sprintf("at most %d characters are allowed", clusterv1alpha1.ClusterNameMaxLength)), "; ")))
	}
	if err := selfregistration.Check(o.member.report); err != nil {
		return command.Usage(fmt.Errorf("--report-secrets: %w", err))
	}
	for flag, address := range map[string]string{"--cluster-api-endpoint": o.member.endpoint, "--proxy-server-address": o.member.proxy} {
		if parsed, err := url.Parse(address); address != "" && (err != nil || parsed.Host == "" || parsed.User != nil) {
			return command.Usage(fmt.Errorf("%s is not a URL with a host and without a user", flag))
		}
	}
	if err := o.defaultDataDir(); err != nil {
		return err
	}
	if o.hub.kubeconfig != "" || o.hub.enrolment.Token != "" {
		return nil
	}
	if _, err := os.Stat(o.hubFile()); err != nil { // the file from an earlier run with a token
		return command.Usage(errors.New("--karmada-kubeconfig is missing: name the file that leads to the hub, or give --bootstrap-token and --hub-endpoint"))
	}
	return nil
}

// defaultDataDir chooses the folder for what the hub sent, unless a flag sets it. The agent
// acts on what it finds there, so it never chooses a folder that others may write to.
func (o *options) defaultDataDir() error {
	if o.dataDir != "" {
		return nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return command.Usage(fmt.Errorf("--data-dir is missing, and this user has no folder for it: %w", err))
	}
	o.dataDir = filepath.Join(dir, "flotilla-agent", o.clusterName)
	return nil
}

// hubFile returns the path of the hub's kubeconfig.
func (o *options) hubFile() string {
	if o.hub.kubeconfig != "" {
		return o.hub.kubeconfig
	}
	return filepath.Join(o.dataDir, "hub.kubeconfig")
}

// readConfig reads a kubeconfig, or the in-cluster configuration of a pod if file is empty.
func readConfig(flag, file, context string) (*rest.Config, error) {
	if file == "" {
		cfg, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("%s is missing, and this does not run in a cluster: %w", flag, err)
		}
		return cfg, nil
	}
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: file}, &clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", flag, err)
	}
	return cfg, nil
}
