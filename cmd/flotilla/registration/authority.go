package registration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/registration"
)

// published is what the control plane publishes about itself for new clusters.
type published struct {
	// hash is the hash of its authority.
	hash string
	// address is the HOST:PORT for other machines, from its first --advertise-host; empty if it
	// publishes none.
	address string
}

// readPublished reads what the control plane publishes for new clusters.
func readPublished(ctx context.Context, cfg *rest.Config) (published, error) {
	hub, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return published{}, err
	}
	info, err := hub.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(ctx, bootstrapapi.ConfigMapClusterInfo, metav1.GetOptions{})
	if err != nil {
		return published{}, fmt.Errorf("read how clusters get to know the control plane: %w", fleet.Describe(err))
	}
	known, err := clientcmd.Load([]byte(info.Data[bootstrapapi.KubeConfigKey]))
	if err != nil {
		return published{}, errors.New("the ConfigMap kube-public/cluster-info of the control plane cannot be read")
	}
	for _, cluster := range known.Clusters {
		bundle, err := cert.ParseCertsPEM(cluster.CertificateAuthorityData)
		if err != nil {
			continue
		}
		out := published{hash: registration.CAHash(bundle[0])}
		if at, err := url.Parse(cluster.Server); err == nil {
			out.address = at.Host
		}
		return out, nil
	}
	return published{}, errors.New("the ConfigMap kube-public/cluster-info of the control plane holds no authority")
}

// elsewhere returns the address of the control plane for clusters: the published one, or here, the
// user's own, if that is empty or a loopback address.
func (p published) elsewhere(here string) string {
	if p.address == "" || isLoopback(p.address) {
		return here
	}
	return p.address
}

// isLoopback reports whether HOST:PORT is a loopback address.
func isLoopback(address string) bool {
	host := (&url.URL{Host: address}).Hostname()
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
