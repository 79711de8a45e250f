package registration

import (
	"context"
	"errors"
	"fmt"
	"net"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/registration"
)

// authorityHash returns the hash of the authority by which clusters get to know
// the control plane.
func authorityHash(ctx context.Context, cfg *rest.Config) (string, error) {
	hub, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return "", err
	}
	info, err := hub.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(ctx, bootstrapapi.ConfigMapClusterInfo, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read how clusters get to know the control plane: %w", fleet.Describe(err))
	}
	known, err := clientcmd.Load([]byte(info.Data[bootstrapapi.KubeConfigKey]))
	if err != nil {
		return "", errors.New("the ConfigMap kube-public/cluster-info of the control plane cannot be read")
	}
	for _, cluster := range known.Clusters {
		bundle, err := cert.ParseCertsPEM(cluster.CertificateAuthorityData)
		if err != nil {
			continue
		}
		return registration.CAHash(bundle[0]), nil
	}
	return "", errors.New("the ConfigMap kube-public/cluster-info of the control plane holds no authority")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
