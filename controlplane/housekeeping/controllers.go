package housekeeping

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/config"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
)

// ErrStillRunning says that the context ended and some controllers had not returned within StopTimeout.
var ErrStillRunning = errors.New("controllers are still running after the stop timeout")

const (
	userAgent          = "kube-controller-manager"
	defaultStopTimeout = 3 * time.Second
)

// ControllerOptions says which controllers run and what they work with.
type ControllerOptions struct {
	// Config reaches the API server with all rights. Its client limits count for each controller by itself.
	Config *rest.Config
	// Controllers are upstream's names; "*" stands for all that are on by default, "-name" takes one away.
	// Empty means HubControllers.
	Controllers []string
	// ServiceAccountKeyFile is the private key that token Secrets are signed with. Without it they stay empty.
	ServiceAccountKeyFile string
	// RootCAFile is published to every namespace and put into token Secrets. Without it neither happens.
	RootCAFile string
	// SigningCertFile and SigningKeyFile sign approved CertificateSigningRequests. Without them none is signed.
	// The certificate is one, not a bundle; both are read again when they change.
	SigningCertFile, SigningKeyFile string
	// SigningDuration is the most that a certificate signed so is good for; zero means upstream's year.
	SigningDuration time.Duration
	// Nodes is for clusters that have nodes; nil leaves its controllers at upstream's defaults.
	Nodes *NodeOptions
	// StopTimeout is how long a stop waits for the controllers. Zero means 3 s.
	StopTimeout time.Duration
}

// NodeOptions are the settings of the controllers that look after nodes.
type NodeOptions struct {
	// PodCIDR is handed out to the nodes in parts of 2^(32-NodeMaskSize) addresses.
	PodCIDR string
	// NodeMaskSize is the prefix length of the part of one node.
	NodeMaskSize int32
	// ServiceCIDR is kept out of what is handed out.
	ServiceCIDR string
	// MonitorGracePeriod is how long a node may be silent until it counts as unhealthy.
	MonitorGracePeriod time.Duration
}

// HubControllers names the controllers of a control plane without nodes: none that makes ReplicaSets, Pods,
// Jobs or endpoints out of templates.
func HubControllers() []string {
	return []string{
		names.NamespaceController,
		names.GarbageCollectorController,
		names.ResourceQuotaController,
		names.ServiceAccountController,
		names.ServiceAccountTokenController,
		names.RootCACertificatePublisherController,
		names.CertificateSigningRequestSigningController,
		names.CertificateSigningRequestCleanerController,
		names.ClusterRoleAggregationController,
		names.BootstrapSignerController,
		names.TokenCleanerController,
		names.TTLAfterFinishedController,
	}
}

// MemberControllers names the controllers of a whole cluster: everything that is on by default and the two that
// upstream leaves to the installer, but not the one that waits for machines to attach volumes.
func MemberControllers() []string {
	return []string{"*", names.BootstrapSignerController, names.TokenCleanerController, "-" + names.PersistentVolumeAttachDetachController}
}

// RunControllers runs the controllers until the context ends, which is a nil error. The API server must answer
// already; an unknown name or an unreadable key is an error before any controller starts.
func RunControllers(ctx context.Context, opts ControllerOptions) error {
	if len(opts.Controllers) == 0 {
		opts.Controllers = HubControllers()
	}
	if opts.StopTimeout == 0 {
		opts.StopTimeout = defaultStopTimeout
	}
	cfg, err := newConfig(opts)
	if err != nil {
		return fmt.Errorf("configure controllers: %w", err)
	}
	// What was started for controllers that then cannot be built ends here too.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	env, err := newEnvironment(ctx, cfg, wholeCluster(opts.Controllers))
	if err != nil {
		return fmt.Errorf("prepare controllers: %w", err)
	}
	controllers, err := env.build(ctx)
	if err != nil {
		return fmt.Errorf("build controllers: %w", err)
	}
	env.start(ctx)
	if !app.RunControllers(ctx, env.context, controllers, 0, opts.StopTimeout) {
		return ErrStillRunning
	}
	return nil
}

func wholeCluster(controllers []string) bool { return slices.Contains(controllers, "*") }

// newConfig makes upstream's completed configuration without reading a kubeconfig and without a server of its own.
func newConfig(opts ControllerOptions) (*config.CompletedConfig, error) {
	upstream, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, err
	}
	// Upstream gives some settings their defaults in its flags alone.
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	upstream.KubeCloudShared.AddFlags(flags)
	upstream.NodeLifecycleController.AddFlags(flags)
	upstream.SecureServing.BindPort = 0
	upstream.ControllerShutdownTimeout = opts.StopTimeout
	upstream.Generic.Controllers = opts.Controllers
	upstream.Generic.LeaderElection.LeaderElect = false
	upstream.SAController.ServiceAccountKeyFile = opts.ServiceAccountKeyFile
	upstream.SAController.RootCAFile = opts.RootCAFile
	upstream.CSRSigningController.ClusterSigningCertFile = opts.SigningCertFile
	upstream.CSRSigningController.ClusterSigningKeyFile = opts.SigningKeyFile
	if opts.SigningDuration > 0 {
		upstream.CSRSigningController.ClusterSigningDuration.Duration = opts.SigningDuration
	}
	if nodes := opts.Nodes; nodes != nil {
		upstream.KubeCloudShared.AllocateNodeCIDRs = true
		upstream.KubeCloudShared.ClusterCIDR = nodes.PodCIDR
		upstream.NodeIPAMController.ServiceCIDR = nodes.ServiceCIDR
		upstream.NodeIPAMController.NodeCIDRMaskSize = nodes.NodeMaskSize
		upstream.NodeLifecycleController.NodeMonitorGracePeriod = metav1.Duration{Duration: nodes.MonitorGracePeriod}
	}
	known, off, aliases := app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()
	if err := upstream.Validate(known, off, aliases); err != nil {
		return nil, errors.New(strings.TrimSpace(err.Error()))
	}

	restConfig := rest.CopyConfig(opts.Config)
	restConfig.DisableCompression = true
	restConfig.ContentType = "application/vnd.kubernetes.protobuf"
	restConfig.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(restConfig, userAgent))
	if err != nil {
		return nil, err
	}
	c := &config.Config{
		Client:                    client,
		Kubeconfig:                restConfig,
		ControllerShutdownTimeout: opts.StopTimeout,
		ComponentGlobalsRegistry:  upstream.ComponentGlobalsRegistry,
	}
	if err := upstream.ApplyTo(c, known, off, aliases); err != nil {
		return nil, err
	}
	return c.Complete(), nil
}

// noHealth takes the health checks of the controllers, which nobody asks for: there is no server of our own.
type noHealth struct{}

func (noHealth) AddHealthChecker(...healthz.HealthChecker) {}
