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

// published is what the control plane says of itself to clusters that do not know it.
type published struct {
	// hash of its authority.
	hash string
	// address is HOST:PORT where other machines find it, as far as it knows: that of its
	// first --advertise-host. Empty if it says none.
	address string
}

// readPublished reads how clusters get to know the control plane.
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

// elsewhere returns where clusters find a control plane that the caller finds at an address:
// where it says itself, unless that is its own machine alone.
func (p published) elsewhere(here string) string {
	if p.address == "" || isLoopback(p.address) {
		return here
	}
	return p.address
}

// isLoopback reports whether HOST:PORT is this machine alone.
func isLoopback(address string) bool {
	host := (&url.URL{Host: address}).Hostname()
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
