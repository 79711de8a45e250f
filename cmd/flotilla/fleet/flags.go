package fleet

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
)

// Discovery requests many small documents at once.
const (
	discoveryBurst = 300
	discoveryQPS   = 50
)

// Flags select the control plane and the namespace.
//
// The zero value is ready for use and means the current context in $KUBECONFIG or
// ~/.kube/config. A Flags is filled when the flags of a call are parsed. After that it is
// safe to read from several goroutines.
type Flags struct {
	// Kubeconfig is the kubeconfig file of the control plane; empty means $KUBECONFIG or
	// ~/.kube/config.
	Kubeconfig string
	// Context is the context of the control plane in that file; empty means the
	// current one.
	Context string
	// Namespace is the namespace in the flag; empty means that of the context, which
	// Factory().ToRawKubeConfigLoader().Namespace() returns.
	Namespace string

	more      *genericclioptions.ConfigFlags
	interrupt <-chan struct{} // closed when the user interrupts; nil means never

	heard atomic.Bool // the control plane has answered

	mutex     sync.Mutex
	factories map[string]cmdutil.Factory // by cluster; "" for the hub
}

// AddTo adds --kubeconfig, --karmada-context and -n/--namespace. All commands inherit them from
// the root, so a command adds them only if it documents them differently.
func (f *Flags) AddTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.Kubeconfig, "kubeconfig", "", "file that leads to the control plane; default is $KUBECONFIG or ~/.kube/config")
	flags.StringVar(&f.Context, "karmada-context", "", "context of the control plane in that file; default is the current one")
	flags.StringVarP(&f.Namespace, "namespace", "n", "", "namespace; default is that of the context")
}

// AddConnectionTo adds kubectl's other flags about the connection: identity, trust and timeouts.
// They apply to the control plane, and through it to the members.
func (f *Flags) AddConnectionTo(flags *pflag.FlagSet) {
	f.more = genericclioptions.NewConfigFlags(false)
	// These three are our own; --cluster and -s mean something else here.
	f.more.KubeConfig, f.more.Context, f.more.Namespace, f.more.ClusterName = nil, nil, nil, nil
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.more.AddFlags(own)
	own.VisitAll(func(flag *pflag.Flag) {
		flag.Shorthand = ""
		flags.AddFlag(flag)
	})
}

// Config returns the configuration for the control plane, without a limit to the rate of
// requests. The caller may change it.
func (f *Flags) Config() (*rest.Config, error) {
	return f.getter("", 0).ToRESTConfig()
}

// Client returns a client for the kinds of the control plane.
func (f *Flags) Client() (client.Client, error) {
	cfg, err := f.Config()
	if err != nil {
		return nil, err
	}
	return client.New(cfg, client.Options{Scheme: scheme.New()})
}

// Factory returns kubectl's factory for the control plane. It is shared by all callers and keeps
// what it discovers.
func (f *Flags) Factory() cmdutil.Factory { return f.kept("") }

// Member returns kubectl's factory for a member, through the proxy of the control plane: the
// user needs only credentials of the control plane. It keeps what it discovers, for each member
// separately. If there is no such cluster, the first request fails.
func (f *Flags) Member(cluster string) cmdutil.Factory { return f.kept(cluster) }

func (f *Flags) kept(cluster string) cmdutil.Factory {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.factories == nil {
		f.factories = map[string]cmdutil.Factory{}
	}
	if f.factories[cluster] == nil {
		f.factories[cluster] = f.factory(cluster, 0)
	}
	return f.factories[cluster]
}

// Clusters returns the names of all member clusters, sorted.
func (f *Flags) Clusters(ctx context.Context) ([]string, error) {
	return f.clusters(ctx, 0)
}

func (f *Flags) clusters(ctx context.Context, timeout time.Duration) ([]string, error) {
	cfg, err := f.Config()
	if err != nil {
		return nil, err
	}
	if timeout > 0 {
		cfg.Timeout = timeout
	}
	hub, err := client.New(cfg, client.Options{Scheme: scheme.New()})
	if err != nil {
		return nil, err
	}
	list := metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(clusterv1alpha1.GroupVersion.WithKind("ClusterList"))
	if err := hub.List(ctx, &list); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names, nil
}

// factory builds kubectl's factory for a member, or for the hub if cluster is empty. Requests
// end after timeout; 0 means no limit.
func (f *Flags) factory(cluster string, timeout time.Duration) cmdutil.Factory {
	// Streaming commands of kubectl assume that a rest.Config is set up for the core
	// group; this does it.
	return cmdutil.NewFactory(cmdutil.NewMatchVersionFlags(f.getter(cluster, timeout)))
}

func (f *Flags) getter(cluster string, timeout time.Duration) getter {
	config := genericclioptions.NewConfigFlags(true).WithDiscoveryBurst(discoveryBurst).WithDiscoveryQPS(discoveryQPS)
	f.connection(config)
	config.KubeConfig, config.Context, config.Namespace = &f.Kubeconfig, &f.Context, &f.Namespace
	warnings := rest.NewWarningWriter(os.Stderr, rest.WarningWriterOptions{Deduplicate: true})
	config.WrapConfigFn = func(cfg *rest.Config) *rest.Config {
		cfg.QPS, cfg.WarningHandler = -1, warnings
		if timeout > 0 && (cfg.Timeout == 0 || cfg.Timeout > timeout) {
			cfg.Timeout = timeout
		}
		if f.interrupt != nil {
			cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &interruptible{next: next, done: f.interrupt} })
		}
		if cluster == "" {
			cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &hearing{next: next, flags: f} })
		}
		if cluster != "" {
			cfg.Host = proxied(cfg, cluster)
			cfg.Wrap(heedProxy)
		}
		return cfg
	}
	return getter{config}
}

// connection copies the values of AddConnectionTo's flags.
func (f *Flags) connection(to *genericclioptions.ConfigFlags) {
	if f.more == nil {
		return
	}
	to.CacheDir, to.AuthInfoName, to.Timeout, to.DisableCompression = f.more.CacheDir, f.more.AuthInfoName, f.more.Timeout, f.more.DisableCompression
	to.APIServer, to.TLSServerName, to.Insecure, to.CAFile = f.more.APIServer, f.more.TLSServerName, f.more.Insecure, f.more.CAFile
	to.CertFile, to.KeyFile, to.BearerToken = f.more.CertFile, f.more.KeyFile, f.more.BearerToken
	to.Impersonate, to.ImpersonateUID = f.more.Impersonate, f.more.ImpersonateUID
	to.ImpersonateGroup, to.ImpersonateUserExtra = f.more.ImpersonateGroup, f.more.ImpersonateUserExtra
}

// proxied returns the URL of a member behind the control plane of cfg.
func proxied(cfg *rest.Config, cluster string) string {
	host := cfg.Host
	if hub, _, err := rest.DefaultServerUrlFor(cfg); err == nil {
		host = hub.String() // has a scheme: only then may a path follow
	}
	return fmt.Sprintf("%s/apis/%s/clusters/%s/proxy", strings.TrimRight(host, "/"), clusterv1alpha1.GroupVersion, url.PathEscape(cluster))
}
