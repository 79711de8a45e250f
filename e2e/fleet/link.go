package fleet

import (
	"context"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// JoinByLink joins a member by a link that can be cut. Whoever asked for it closes the link.
func (f *Fleet) JoinByLink(ctx context.Context, name string, flags ...string) (*localfleet.Link, error) {
	file := filepath.Join(f.Dir, name+".kubeconfig")
	link, err := Through(ctx, f.Members[name].Kubeconfig, file)
	if err != nil {
		return nil, err
	}
	return link, f.Join(ctx, name, append([]string{"--cluster-kubeconfig", file}, flags...)...)
}

// Through writes a copy of a kubeconfig to a file that leads through a new link.
func Through(ctx context.Context, kubeconfig, file string) (*localfleet.Link, error) {
	host, err := Host(kubeconfig)
	if err != nil {
		return nil, err
	}
	link, err := localfleet.NewLink(ctx, host)
	if err != nil {
		return nil, err
	}
	return link, Leading(kubeconfig, link.Address(), file)
}

// Host is where a kubeconfig leads, as host:port.
func Host(kubeconfig string) (string, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(config.Host, "https://"), nil
}

// Leading writes a copy of a kubeconfig to a file that leads to another address.
func Leading(kubeconfig, address, file string) error {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return err
	}
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + address
	}
	return clientcmd.WriteToFile(*config, file)
}
