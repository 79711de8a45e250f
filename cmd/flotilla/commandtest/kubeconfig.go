package commandtest

import (
	"net"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig writes a kubeconfig for a server, without credentials, and returns its path. The
// namespace of its context may be empty.
func Kubeconfig(t testing.TB, server, namespace string) string {
	t.Helper()
	return write(t, clientcmdapi.Config{
		CurrentContext: "c",
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: server}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", Namespace: namespace}},
	})
}

// Changed writes a copy of a kubeconfig with other credentials for all its users,
// and returns its path.
func Changed(t testing.TB, kubeconfig string, credentials func(*clientcmdapi.AuthInfo)) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := clientcmdapi.FlattenConfig(config); err != nil { // paths are relative to the file that was read
		t.Fatal(err)
	}
	for _, info := range config.AuthInfos {
		credentials(info)
	}
	return write(t, *config)
}

func write(t testing.TB, config clientcmdapi.Config) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// Nobody returns an address on which nobody listens.
func Nobody(t testing.TB) string {
	t.Helper()
	closed, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer closed.Close()
	return closed.Addr().String()
}
