package main

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
)

// hubFlags name the control plane.
type hubFlags struct {
	kubeconfig string
	context    string
}

func (f *hubFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "file that leads to the control plane; default is $KUBECONFIG or ~/.kube/config")
	flags.StringVar(&f.context, "karmada-context", "", "context of the control plane in that file; default is the current one")
}

func (f *hubFlags) connect() (client.Client, error) {
	cfg, err := loadConfig(f.kubeconfig, f.context)
	if err != nil {
		return nil, fmt.Errorf("find the control plane: %w", err)
	}
	return newClient(cfg)
}

// memberFlags name a member cluster.
type memberFlags struct {
	kubeconfig string
	context    string
	namespace  string
}

func (f *memberFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubeconfig, "cluster-kubeconfig", "", "file that leads to the member cluster")
	flags.StringVar(&f.context, "cluster-context", "", "context of the member cluster in that file; default is the current one")
	flags.StringVar(&f.namespace, "cluster-namespace", "karmada-cluster", "namespace for accounts in the member and for credentials in the control plane")
}

func (f *memberFlags) connect() (*rest.Config, client.Client, error) {
	cfg, err := loadConfig(f.kubeconfig, f.context)
	if err != nil {
		return nil, nil, fmt.Errorf("find the member cluster: %w", err)
	}
	member, err := newClient(cfg)
	return cfg, member, err
}

// loadConfig reads one context of a kubeconfig. Without a path it looks where
// kubectl does.
func loadConfig(path, context string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	overrides := &clientcmd.ConfigOverrides{CurrentContext: context}
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, err
	}
	cfg.QPS = -1
	return cfg, nil
}

func newClient(cfg *rest.Config) (client.Client, error) {
	c, err := client.New(cfg, client.Options{Scheme: scheme.New()})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", cfg.Host, err)
	}
	return c, nil
}
