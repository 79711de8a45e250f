package registration

import (
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

// Connection returns a connection to the control plane of hub with the
// credentials of an agent.
func Connection(hub *rest.Config, c Credentials) *rest.Config {
	out := rest.AnonymousClientConfig(hub)
	out.CertData, out.KeyData = c.Certificate, c.Key
	return out
}

// Kubeconfig returns the kubeconfig of a cluster's agent. It contains the private
// key, so it is a secret. Its only context is named after the cluster.
func Kubeconfig(hub *rest.Config, cluster string, c Credentials) ([]byte, error) {
	cfg := rest.CopyConfig(hub)
	if err := rest.LoadTLSFiles(cfg); err != nil {
		return nil, fmt.Errorf("read the authority of the control plane: %w", err)
	}
	out := clientcmdapi.NewConfig()
	out.Clusters[contextName] = &clientcmdapi.Cluster{
		Server: cfg.Host, CertificateAuthorityData: cfg.CAData, TLSServerName: cfg.ServerName, InsecureSkipTLSVerify: cfg.Insecure,
	}
	out.AuthInfos[cluster] = &clientcmdapi.AuthInfo{ClientCertificateData: c.Certificate, ClientKeyData: c.Key}
	out.Contexts[cluster] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: cluster}
	out.CurrentContext = cluster
	content, err := clientcmd.Write(*out)
	if err != nil {
		return nil, fmt.Errorf("write the kubeconfig of the agent: %w", err)
	}
	return content, nil
}

// contextName is the name of the control plane in the kubeconfig of an agent.
const contextName = "karmada-apiserver"

// backdated is how long before it was signed a certificate of the control plane
// begins.
const backdated = 5 * time.Minute

// Life returns the time in which a client certificate of the control plane is
// used. It begins when the certificate was signed, which is some minutes after
// its NotBefore: that matters for certificates that last for minutes.
func Life(certificate []byte) (from, to time.Time, err error) {
	parsed, err := cert.ParseCertsPEM(certificate)
	if err != nil {
		return from, to, fmt.Errorf("read the certificate: %w", err)
	}
	from, to = parsed[0].NotBefore, parsed[0].NotAfter
	if signed := from.Add(backdated); signed.Before(to) {
		from = signed
	}
	return from, to, nil
}
