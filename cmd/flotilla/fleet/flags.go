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

// Discovery asks for many small documents at once.
const (
	discoveryBurst = 300
	discoveryQPS   = 50
)

// Flags say which control plane is meant, and which namespace.
//
// The zero value is ready: it means what $KUBECONFIG or ~/.kube/config says. A
// Flags is filled by the flags of one call and read after; it is safe to read
// from several goroutines.
type Flags struct {
	// Kubeconfig is the file that leads to the control plane; empty means
	// $KUBECONFIG or ~/.kube/config.
	Kubeconfig string
	// Context is the context of the control plane in that file; empty means the
	// current one.
	Context string
	// Namespace is the namespace that was asked for; empty means that of the
	// context. The default is in Factory().ToRawKubeConfigLoader().Namespace().
	Namespace string

	more      *genericclioptions.ConfigFlags
	interrupt <-chan struct{} // closed when the user has enough; nil: never

	heard atomic.Bool // the control plane has answered

	mutex     sync.Mutex
	factories map[string]cmdutil.Factory // by cluster; that of the hub has no name
}

// AddTo adds --kubeconfig, --karmada-context and -n/--namespace. All commands
// have them from the root: a command adds them only where it says more about them.
func (f *Flags) AddTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.Kubeconfig, "kubeconfig", "", "file that leads to the control plane; default is $KUBECONFIG or ~/.kube/config")
	flags.StringVar(&f.Context, "karmada-context", "", "context of the control plane in that file; default is the current one")
	flags.StringVarP(&f.Namespace, "namespace", "n", "", "namespace; default is that of the context")
}

// AddConnectionTo adds kubectl's other flags about how to connect: who to be,
// what to trust, how long to wait. They hold for the control plane, and through
// it for the members.
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

// Config leads to the control plane, without a limit to the rate of requests.
// The caller may change what it returns.
func (f *Flags) Config() (*rest.Config, error) {
	return f.getter("", 0).ToRESTConfig()
}

// Client reads and writes the kinds of the control plane.
func (f *Flags) Client() (client.Client, error) {
	cfg, err := f.Config()
	if err != nil {
		return nil, err
	}
	return client.New(cfg, client.Options{Scheme: scheme.New()})
}

// Factory is kubectl's, on the control plane. There is one for all callers; what
// it discovers is kept.
func (f *Flags) Factory() cmdutil.Factory { return f.kept("") }

// Member is kubectl's factory on a member, through the proxy of the control
// plane: whoever calls needs nothing but credentials of the control plane. What it
// discovers is kept for each member apart. Whether there is such a cluster shows
// with the first request.
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

// factory builds kubectl's factory on a member, or on the hub where cluster is
// empty. Requests end after timeout; 0 sets no end.
func (f *Flags) factory(cluster string, timeout time.Duration) cmdutil.Factory {
	// Commands of kubectl's that stream take it for granted that a rest.Config
	// is ready for the core group; this makes it so.
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

// connection copies what AddConnectionTo's flags say.
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

// proxied is the address of a member behind the control plane that cfg leads to.
func proxied(cfg *rest.Config, cluster string) string {
	host := cfg.Host
	if hub, _, err := rest.DefaultServerUrlFor(cfg); err == nil {
		host = hub.String() // has a scheme: only then may a path follow
	}
	return fmt.Sprintf("%s/apis/%s/clusters/%s/proxy", strings.TrimRight(host, "/"), clusterv1alpha1.GroupVersion, url.PathEscape(cluster))
}
