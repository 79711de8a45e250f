package registration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/contexts"
	"github.com/flotilla-io/flotilla/internal/join"
)

// Commands returns the commands of this package.
func Commands(f *fleet.Flags) []*cobra.Command {
	return []*cobra.Command{newJoin(f), newUnjoin(f), newToken(f), newRegister(), newUnregister(f)}
}

// memberFlags are the flags of join, unjoin and unregister for the connection to a member.
type memberFlags struct {
	kubeconfig, context, namespace string
	allow                          join.Allow
}

func (m *memberFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&m.kubeconfig, "cluster-kubeconfig", "", "file that leads to the member cluster")
	flags.StringVar(&m.context, "cluster-context", "", "context of the member cluster in that file; default is the current one")
	flags.StringVar(&m.namespace, "cluster-namespace", workv1alpha2.NamespaceKarmadaCluster, "namespace for accounts in the member and for credentials in the control plane")
	flags.BoolVar(&m.allow.Programs, "allow-exec", false, "accept a kubeconfig that runs a program on this machine to log in")
	flags.BoolVar(&m.allow.Insecure, "allow-insecure-tls", false, "accept a kubeconfig that does not check the member's certificate")
}

func (m *memberFlags) connect() (*rest.Config, client.Client, error) {
	cfg, err := join.Load(m.kubeconfig, m.context, m.allow)
	if err != nil {
		return nil, nil, withoutFile(err, "--cluster-kubeconfig names the file that leads to the cluster")
	}
	c, err := join.Connect(cfg)
	return cfg, c, err
}

// withoutFile adds what to do to an error that says that there is no such file.
func withoutFile(err error, next string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w; %s", err, next)
	}
	return err
}

// connect leads to what is called so, by one context of a kubeconfig. Without a
// path it looks where kubectl does.
func connect(what, path, context string) (*rest.Config, client.Client, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context})
	cfg, err := loader.ClientConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("find %s: %w", what, contexts.Explain(loader, context, err))
	}
	cfg.QPS = -1
	c, err := client.New(cfg, client.Options{Scheme: scheme.New()})
	if err != nil {
		return nil, nil, fmt.Errorf("connect to %s at %s: %w", what, cfg.Host, err)
	}
	return cfg, c, nil
}

// described explains an error of the control plane. It returns those of the member unchanged.
func described(f *fleet.Flags, err error) error {
	var request *url.Error
	cfg, failed := f.Config()
	if failed != nil || !errors.As(err, &request) || !strings.HasPrefix(request.URL, cfg.Host) {
		return err
	}
	return fleet.Describe(err)
}

// noCluster explains an error for a missing cluster.
func noCluster(ctx context.Context, hub client.Reader, name string, err error) error {
	if apierrors.IsNotFound(err) {
		return fleet.NoCluster(ctx, hub, name)
	}
	return err
}

// interrupted reports whether the user has interrupted the call.
func interrupted(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

func warn(out io.Writer, err error) error {
	_, err = fmt.Fprintf(out, "warning: %s\n", err)
	return err
}
